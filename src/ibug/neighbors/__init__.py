"""From leaf numbers to the nearest training rows: the affinity index."""

from ibug.neighbors._index import LeafIndex
from ibug.neighbors._order import merge_columns, merge_top_k

__all__ = ["LeafIndex", "merge_columns", "merge_top_k"]
