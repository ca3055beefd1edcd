"""Stacks of experts: which there are, what they say of rows, and the weights that validation rows give them."""

from ibug.stacking._fit import SHRINKAGE, fit, normal_only
from ibug.stacking._pooled import Pooled, pool, resolution
from ibug.stacking._stacked import Stacked
from ibug.stacking._statistics import BANDWIDTHS, Evidence, Statistics
from ibug.stacking._views import Experts, Nearest

__all__ = [
    "BANDWIDTHS",
    "SHRINKAGE",
    "Evidence",
    "Experts",
    "Nearest",
    "Pooled",
    "Stacked",
    "Statistics",
    "fit",
    "normal_only",
    "pool",
    "resolution",
]
