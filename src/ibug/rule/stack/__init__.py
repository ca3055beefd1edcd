"""Stacks of experts: which there are, what they say of rows, and the weights that validation rows give them."""

from ibug.rule.stack._fineness import resolution, values_taken
from ibug.rule.stack._fit import (
    FEWEST_ROWS,
    SHRINKAGE,
    USUAL_BANDWIDTH,
    best_bandwidth,
    fit,
    from_distances,
    least_weight,
    normal_only,
    too_few,
)
from ibug.rule.stack._pooled import Pooled, pool
from ibug.rule.stack._stacked import Stacked
from ibug.rule.stack._statistics import BANDWIDTHS, Evidence, ExpertStatistics
from ibug.rule.stack._views import Experts, Nearest, scaled_k

__all__ = [
    "BANDWIDTHS",
    "FEWEST_ROWS",
    "SHRINKAGE",
    "USUAL_BANDWIDTH",
    "Evidence",
    "ExpertStatistics",
    "Experts",
    "Nearest",
    "Pooled",
    "Stacked",
    "best_bandwidth",
    "fit",
    "from_distances",
    "least_weight",
    "normal_only",
    "pool",
    "resolution",
    "scaled_k",
    "too_few",
    "values_taken",
]
