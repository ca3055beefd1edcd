"""From leaf numbers to the nearest training rows: the affinity index."""

from ibug.neighbors._builder import Builder
from ibug.neighbors._index import LeafIndex
from ibug.neighbors._measure import CountingLoop, instruction_sets, least_queries
from ibug.neighbors._order import merge_columns, merge_top_k

__all__ = [
    "Builder",
    "CountingLoop",
    "LeafIndex",
    "instruction_sets",
    "least_queries",
    "merge_columns",
    "merge_top_k",
]
