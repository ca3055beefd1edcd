"""From rows to the nearest training rows: leaf numbers, the affinity index, and the sources of neighbours."""

from ibug.neighbors._build import Builder
from ibug.neighbors._index import JoinedIndex, LeafIndex
from ibug.neighbors._leaf_numbers import LeafChunk, LeafNumbers, chunk_size
from ibug.neighbors._local import LocalSource, updated
from ibug.neighbors._sampling import TREE_ORDERS, Sampling
from ibug.neighbors._search import (
    CountingLoop,
    SearchPlan,
    instruction_sets,
    least_queries,
    merge_columns,
    merge_top_k,
    not_self,
)
from ibug.neighbors._source import (
    Batch,
    CrossFittedSource,
    NeighborSource,
    Residuals,
    TargetNeighbors,
    ValidationRows,
    map_batches,
    root_mean_square,
    with_row_context,
)

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
    "Residuals",
    "Sampling",
    "SearchPlan",
    "TargetNeighbors",
    "ValidationRows",
    "chunk_size",
    "instruction_sets",
    "least_queries",
    "map_batches",
    "merge_columns",
    "merge_top_k",
    "not_self",
    "root_mean_square",
    "updated",
    "with_row_context",
]
