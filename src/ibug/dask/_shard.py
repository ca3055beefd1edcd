"""A shard: the index of one partition of the training rows, with their targets or residuals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._inputs import check_targets
from ibug._read_only import read_only
from ibug._typing import Floats
from ibug.dask._errors import in_partition
from ibug.neighbors import LeafIndex, LeafNumbers, merge_columns

#: Affinities, row numbers and one array per quantity, each of shape (n_queries, k).
Columns = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Shard:
    """The rows of one partition that can be neighbours.

    Parameters
    ----------
    index
        Their leaves; None where there are none.
    values : tuple of ndarray of shape (n_partition_rows,)
        What all rows of the partition have: targets, say.
    rows : ndarray of shape (n_rows,) or None
        The positions in the partition of those that can be neighbours; None for all.
    """

    index: LeafIndex | None
    values: tuple[Floats, ...]
    rows: NDArray[np.intp] | None

    def __post_init__(self) -> None:
        read_only(self)

    def __sizeof__(self) -> int:
        # Dask weighs with this where a task is to run, and what is to be written to disk.
        own = object.__sizeof__(self) + sum(value.nbytes for value in self.values)
        own += 0 if self.index is None else self.index.nbytes
        return own + (0 if self.rows is None else self.rows.nbytes)

    @property
    def nbytes(self) -> int:
        """The memory in bytes."""
        return sys.getsizeof(self)

    def nearest(self, leaves: NDArray[Any], k: int, start: int, n_jobs: int | None) -> Columns:
        """Return the k nearest rows of the shard, fewer if it has fewer; `start` is the number of its first row."""
        if self.index is None or not len(leaves):
            return _nothing(len(leaves), 0 if self.index is None else min(k, self.index.n_rows), len(self.values))
        affinities, found = self.index.query(leaves, min(k, self.index.n_rows), n_jobs=n_jobs)
        rows = found if self.rows is None else self.rows[found].astype(np.int64)
        return affinities, rows + start, *(value[rows] for value in self.values)

    def leaf_sizes(self, leaves: NDArray[Any]) -> NDArray[np.int64]:
        """Count the shard's rows in each query's leaves, (n_queries, n_trees)."""
        return np.zeros(leaves.shape, np.int64) if self.index is None else self.index.leaf_sizes(leaves)


def _nothing(n_queries: int, k: int, n_values: int) -> Columns:
    shape = (n_queries, k)
    return np.empty(shape, np.int32), np.empty(shape, np.int64), *(np.empty(shape) for _ in range(n_values))


@dataclass(frozen=True)
class ShardSet:
    """All shards of an index, on the cluster.

    Parameters
    ----------
    shards
        Held by the cluster, in the order of the partitions.
    lengths
        How many rows of each can be neighbours.
    starts
        The number of each partition's first row.
    groups
        The numbers of the shards that one worker holds, for each worker. Merges need not know, but are shorter ways.
    """

    shards: list[Delayed]
    lengths: tuple[int, ...]
    starts: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def n_rows(self) -> int:
        """How many rows can be neighbours."""
        return sum(self.lengths)


def build_shard(
    source: LeafNumbers, number: int, X: Any, y: Any, rows: NDArray[np.intp] | None, n_jobs: int | None
) -> Shard:
    """Index one partition of the training rows, where it is."""
    with in_partition(number, "X and y"):
        targets = targets_in(X, y)
        if not len(targets if rows is None else rows):
            return Shard(None, (targets,), rows)
        return Shard(source.index_of(X, rows, n_jobs=n_jobs), (targets,), rows)


def build_residual_shard(source: LeafNumbers, number: int, X: Any, y: Any, n_jobs: int | None) -> Shard:
    """Index one partition of validation rows, which have honest residuals."""
    with in_partition(number, "X_val and y_val"):
        targets = targets_in(X, y)
        if not len(targets):
            return Shard(None, (targets,), None)
        residuals = targets - np.asarray(source.reader.predict(X), np.float64)
        return Shard(source.index_of(X, n_jobs=n_jobs), (residuals,), None)


def targets_in(X: Any, y: Any) -> Floats:
    """Return the targets of a partition, (n_rows,), checked; a partition may be empty."""
    if _num_samples(X) == 0 and len(y) == 0:
        return np.empty(0)
    return check_targets(X, y, "y")


def merge(parts: Sequence[Columns], k: int) -> Columns:
    """Merge what several shards have found; the order is that of one index of all rows."""
    return parts[0] if len(parts) == 1 else merge_columns(parts, k)
