"""From rows to the nearest training rows: leaf numbers, the affinity index, and the sources of neighbours."""

from ibug.neighbors._builder import Builder
from ibug.neighbors._cross_fitted import CrossFittedSource
from ibug.neighbors._growth import updated
from ibug.neighbors._index import LeafIndex
from ibug.neighbors._joined import JoinedIndex
from ibug.neighbors._leaf_numbers import LeafChunk, LeafNumbers, chunk_size
from ibug.neighbors._local import LocalSource
from ibug.neighbors._measure import CountingLoop, instruction_sets, least_queries
from ibug.neighbors._order import merge_columns, merge_top_k, not_self
from ibug.neighbors._parts import map_batches
from ibug.neighbors._residuals import Residuals, root_mean_square
from ibug.neighbors._sampling import TREE_ORDERS, Sampling, TreeShare, tree_table
from ibug.neighbors._source import Batch, NeighborSource, OwnNeighbors, ValidationRows, with_row_context

__all__ = [
    "TREE_ORDERS",
    "Batch",
    "Builder",
    "CountingLoop",
    "CrossFittedSource",
    "JoinedIndex",
    "LeafChunk",
    "LeafIndex",
    "LeafNumbers",
    "LocalSource",
    "NeighborSource",
    "OwnNeighbors",
    "Residuals",
    "Sampling",
    "TreeShare",
    "ValidationRows",
    "chunk_size",
    "instruction_sets",
    "least_queries",
    "map_batches",
    "merge_columns",
    "merge_top_k",
    "not_self",
    "root_mean_square",
    "tree_table",
    "updated",
    "with_row_context",
]
