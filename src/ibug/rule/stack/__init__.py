"""Stacks of experts: which there are, what they say of rows, and the weights that validation rows give them."""

from ibug.rule.stack._fit import SHRINKAGE, fit, normal_only, too_few
from ibug.rule.stack._pooled import Pooled, pool, resolution
from ibug.rule.stack._stacked import Stacked
from ibug.rule.stack._statistics import BANDWIDTHS, Evidence, ExpertStatistics
from ibug.rule.stack._views import Experts, Nearest

__all__ = [
    "BANDWIDTHS",
    "SHRINKAGE",
    "Evidence",
    "ExpertStatistics",
    "Experts",
    "Nearest",
    "Pooled",
    "Stacked",
    "fit",
    "normal_only",
    "pool",
    "resolution",
    "too_few",
]
