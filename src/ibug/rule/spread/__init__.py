"""How the neighbours' values become a variance."""

from ibug.rule.spread._base import Neighbors, Spread
from ibug.rule.spread._combined import CombinedSpread, Feature
from ibug.rule.spread._registry import QUANTITIES
from ibug.rule.spread._single import SingleSpread
from ibug.rule.spread._stored import spread_from_state
from ibug.rule.spread._targets import prefix_means, prefix_variances, variance

__all__ = [
    "QUANTITIES",
    "CombinedSpread",
    "Feature",
    "Neighbors",
    "SingleSpread",
    "Spread",
    "prefix_means",
    "prefix_variances",
    "spread_from_state",
    "variance",
]
