"""The graph of a search: each partition of queries goes to all shards, and a tree of merges joins their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.dask._errors import in_partition
from ibug.dask._partitions import Key, Partitions, check_columns
from ibug.dask._placement import SEARCH
from ibug.dask._shard import Columns, Shard, ShardSet, merge
from ibug.dask._spec import as_tasks
from ibug.neighbors import Batch, LeafNumbers, not_self

Read = tuple[NDArray[Any], Floats]  # leaves (n_rows, n_trees) and predictions (n_rows,)

#: The number of answers that one task merges.
FAN_IN = 4


class SearchGraph:
    """Tasks that find neighbours of all rows of a collection; nothing runs before somebody asks for the results.

    Parameters
    ----------
    leaves
        The model's leaves, on the cluster.
    queries
        The rows.
    name
        What the rows are called in errors.
    """

    def __init__(self, leaves: Delayed, queries: Partitions, *, name: str = "X", n_jobs: int | None) -> None:
        self.queries = queries
        self._n_jobs = n_jobs
        self._token = uuid4().hex
        self._tasks: dict[Key, Any] = {}
        self._dependencies: list[Delayed] = [leaves, *queries.parts]
        self._leaves = leaves
        self._rows_name = name

    @cached_property
    def _read(self) -> list[Key]:
        rest = (self._columns, self._rows_name, self._n_jobs)
        return self.each("read", lambda j, part: (_read, self._leaves.key, j, part.key, *rest), self.queries.parts)

    @cached_property
    def _columns(self) -> Key:
        return self.literal("columns", self.queries.columns)

    def points(self) -> list[Key]:
        """Add the model's own predictions."""
        columns = self._columns
        return self.each(
            "predict", lambda j, part: (_points, self._leaves.key, j, part.key, columns), self.queries.parts
        )

    def each(self, name: str, task: Any, *arguments: Sequence[Any], tail: tuple[int, ...] = ()) -> list[Key]:
        """Add one task per partition, and return their keys, which end with `tail`."""
        keys = [(self.name(name), j, *tail) for j in range(len(self.queries))]
        for j, key in enumerate(keys):
            self._tasks[key] = task(j, *(argument[j] for argument in arguments))
        return keys

    def add(self, name: str, task: Any) -> Key:
        """Add one task, and return its key."""
        key = (self.name(name), 0)
        self._tasks[key] = task
        return key

    def literal(self, name: str, value: Any) -> Key:
        """Add something that tasks need, once for all of them."""
        return self.add(name, (_itself, value))

    def name(self, name: str) -> str:
        """Return the first part of a task's key."""
        return f"ibug-{name}-{self._token}"

    def depend_on(self, *delayed: Delayed) -> None:
        """Say that tasks use something else on the cluster."""
        self._dependencies.extend(delayed)

    def batches(
        self,
        needs: Mapping[str, int],
        shards: ShardSet,
        residual_shards: ShardSet | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> list[Key]:
        """Add the search for neighbours; see ``ClusterSource.batches``."""
        k, k_other = needs.get("targets", 0), needs.get("residuals", 0)
        k_other += numbers is not None
        nothing: list[list[Key]] = [[] for _ in self.queries.parts]
        own = self._nearest(shards, k, "own") if k else nothing
        others = nothing
        if needs.get("residuals") and residual_shards is not None:
            others = self._nearest(residual_shards, k_other, "other")
        first = numbers if numbers is not None else [None] * len(self.queries)
        return self.each("batch", lambda j, r, a, b: (_batch, r, a, k, b, k_other, first[j]), self._read, own, others)

    def leaf_sizes(self, shards: ShardSet) -> list[Key]:
        """Add the counts of training rows in each query's leaves: arrays of shape (n_rows, n_trees)."""
        self.depend_on(*shards.shards)

        def one(j: int, read: Key) -> list[Key]:
            keys = [(f"{SEARCH}-sizes-{self._token}", j, i) for i in range(len(shards.shards))]
            for key, shard in zip(keys, shards.shards, strict=True):
                self._tasks[key] = (_leaf_sizes, shard.key, read)
            return self._reduce(keys, shards, "sum-sizes", j, lambda group: (_sum, group))

        parts = [one(j, read) for j, read in enumerate(self._read)]
        return self.each("sizes", lambda j, part: (_sum, part), parts)

    def _nearest(self, shards: ShardSet, k: int, name: str) -> list[list[Key]]:
        self.depend_on(*shards.shards)

        def one(j: int, read: Key) -> list[Key]:
            keys = [(f"{SEARCH}-{name}-{self._token}", j, i) for i in range(len(shards.shards))]
            for key, shard, start in zip(keys, shards.shards, shards.starts, strict=True):
                self._tasks[key] = (_nearest, shard.key, read, k, start, self._n_jobs)
            return self._reduce(keys, shards, f"merge-{name}", j, lambda group: (merge, group, k))

        return [one(j, read) for j, read in enumerate(self._read)]

    def _reduce(self, keys: list[Key], shards: ShardSet, name: str, j: int, task: Any) -> list[Key]:
        """Reduce the answers of all shards, those of one worker first, to a few, which the next task takes together.

        The last merge is no task of its own: its result would be a large thing to send for a small one to be done.
        """
        there = f"{SEARCH}-{name}-{self._token}"
        tops = [
            self._tree([keys[i] for i in group], (there, j, number), task, 1)[0]
            for number, group in enumerate(shards.groups)
        ]
        return self._tree(tops, (self.name(name), j), task, FAN_IN)

    def _tree(self, keys: list[Key], prefix: Key, task: Any, most: int) -> list[Key]:
        """Reduce in groups, and groups of groups, until there are so few."""
        level = 0
        while len(keys) > most:
            groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
            keys = [(*prefix, level, i) for i in range(len(groups))]
            self._tasks.update(zip(keys, map(task, groups), strict=True))
            level += 1
        return keys

    def highlevel(self, name: str) -> HighLevelGraph:
        """Return the graph with all tasks in a layer of this name."""
        tasks = as_tasks(self._tasks, [one.key for one in self._dependencies])
        return HighLevelGraph.from_collections(name, tasks, dependencies=self._dependencies)

    def delayed(self, keys: Sequence[Key]) -> list[Delayed]:
        """Return the results of some tasks as delayed objects."""
        name = self.name("tasks")
        graph = self.highlevel(name)
        return [Delayed(key, graph, layer=name) for key in keys]


def _read(source: LeafNumbers, number: int, X: Any, columns: Any, name: str, n_jobs: int | None) -> Read:
    """Return leaves and predictions of one partition of queries; leaf numbers as short as they can be."""
    if _num_samples(X) == 0:
        return np.empty((0, source.n_trees), np.uint8), np.empty(0)
    leaves, mean = [], []
    with in_partition(number, name):
        check_columns(X, columns)
        for chunk in source.chunks(X, predict=True, n_jobs=n_jobs):
            leaves.append(np.ascontiguousarray(chunk.leaves, np.min_scalar_type(int(chunk.leaves.max()))))
            mean.append(np.asarray(chunk.mean, np.float64))
    return np.concatenate(leaves), np.concatenate(mean)


def _points(source: LeafNumbers, number: int, X: Any, columns: Any) -> NDArray[Any]:
    if _num_samples(X) == 0:
        return np.empty(0)
    with in_partition(number, "X"):
        check_columns(X, columns)
        return source.reader.predict(X)


def _itself(value: Any) -> Any:
    return value


def _nearest(shard: Shard, read: Read, k: int, start: int, n_jobs: int | None) -> Columns:
    return shard.nearest(read[0], k, start, n_jobs)


def _leaf_sizes(shard: Shard, read: Read) -> NDArray[np.int64]:
    return shard.leaf_sizes(read[0])


def _sum(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.add.reduce(parts)
    return total


def _batch(
    read: Read, own: Sequence[Columns], k: int, others: Sequence[Columns], k_other: int, first: int | None
) -> Batch:
    leaves, mean = read
    values: dict[str, Floats] = {}
    affinities, rows = np.empty((len(mean), 0), np.int32), np.empty((len(mean), 0), np.int64)
    if own:
        affinities, rows, values["targets"] = merge(own, k)
    if others:
        _, numbers, residuals = merge(others, k_other)
        if first is not None and len(mean):
            residuals = residuals[not_self(numbers, first + np.arange(len(mean)))].reshape(len(mean), -1)
        values["residuals"] = residuals
    return Batch(slice(0, len(mean)), mean, affinities, rows, values, leaves.shape[1])
