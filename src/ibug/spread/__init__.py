"""How the neighbours' values become a variance."""

from ibug.spread._targets import prefix_means, prefix_variances, variance

__all__ = ["prefix_means", "prefix_variances", "variance"]
