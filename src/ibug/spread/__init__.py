"""How the neighbours' values become a variance."""

from ibug.spread._base import Neighbors, Spread
from ibug.spread._combined import CombinedSpread, Feature
from ibug.spread._registry import QUANTITIES
from ibug.spread._single import SingleSpread
from ibug.spread._stored import spread_from_state
from ibug.spread._targets import prefix_means, prefix_variances, variance

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
