"""The index on the cluster: a shard per partition of the training rows, and the graph of a search in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Client, futures_of
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._options import Options
from ibug._read_only import read_only
from ibug._typing import Floats
from ibug._validation import check_feature_names
from ibug.dask._cluster import SEARCH, SHARD, graph_of, holders, on_cluster, persisted, tasks_of
from ibug.dask._rows import Key, Partitions, RowsOnCluster, check_columns, in_partition, local_positions, targets_in
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader, reader_of
from ibug.neighbors import Batch, LeafIndex, LeafNumbers, SearchPlan, merge_columns, not_self
from ibug.rule import TargetRange

Columns = tuple[NDArray[Any], ...]  # affinities, row numbers and values, each of shape (n_queries, k)
Read = tuple[NDArray[Any], Floats]  # leaves (n_rows, n_trees) and predictions (n_rows,)


@dataclass(frozen=True)
class Shard:
    """The rows of one partition that can be neighbours."""

    index: LeafIndex | None  # their leaves; None where there are no rows
    values: Floats  # (n_partition_rows,) targets or residuals of all rows of the partition
    rows: NDArray[np.intp] | None  # (n_rows,) positions in the partition of those that can be neighbours; None for all

    def __post_init__(self) -> None:
        read_only(self)

    def __sizeof__(self) -> int:
        # Dask weighs with this where a task is to run, and what is to be written to disk.
        own = object.__sizeof__(self) + self.values.nbytes
        return own + sum(part.nbytes for part in (self.index, self.rows) if part is not None)

    def nearest(self, read: Read, k: int, start: int, n_cells: int | None, n_jobs: int | None) -> Columns:
        """Return the k nearest rows of the shard, fewer if it has fewer; `start` is the number of its first row.

        They are those of some of its cells, or of all its rows.
        """
        leaves, _ = read
        if self.index is None or not len(leaves):
            shape = len(leaves), 0 if self.index is None else min(k, self.index.n_rows)
            return np.empty(shape, np.int32), np.empty(shape, np.int64), np.empty(shape)
        affinities, found = self.index.query(leaves, min(k, self.index.n_rows), n_cells=n_cells, n_jobs=n_jobs)
        rows = found if self.rows is None else self.rows[found].astype(np.int64)
        return affinities, rows + start, self.values[rows]

    def leaf_sizes(self, read: Read) -> NDArray[np.int64]:
        """Count the shard's rows in each query's leaves, (n_queries, n_trees)."""
        leaves, _ = read
        return np.zeros(leaves.shape, np.int64) if self.index is None else self.index.leaf_sizes(leaves)


@dataclass(frozen=True)
class ShardSet:
    """All shards of an index, held by the cluster in the order of the partitions."""

    shards: list[Delayed]
    lengths: tuple[int, ...]  # the number of rows of each that can be neighbours
    starts: tuple[int, ...]  # the number of each partition's first row
    # For each worker the numbers of the shards that it holds: answers are merged there first, which is not necessary.
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def make(
        cls, client: Client, tasks: list[Delayed], lengths: tuple[int, ...], starts: tuple[int, ...], **progress: Any
    ) -> ShardSet:
        """Make the shards on the cluster, and leave them there."""
        shards = persisted(client, tasks, **progress)
        return cls(shards, lengths, starts, holders(client, shards))

    @property
    def n_rows(self) -> int:
        """The number of rows that can be neighbours."""
        return sum(self.lengths)


def _build_shard(
    leaves: LeafNumbers, number: int, X: Any, y: Any, rows: NDArray[np.intp] | None, n_jobs: int | None
) -> Shard:
    """Index one partition of the training rows, where it is."""
    with in_partition(number, "X and y"):
        targets = targets_in(X, y)
        if not len(targets if rows is None else rows):
            return Shard(None, targets, rows)
        return Shard(leaves.index_of(X, rows, n_jobs=n_jobs), targets, rows)


def _build_residual_shard(leaves: LeafNumbers, number: int, X: Any, y: Any, n_jobs: int | None) -> Shard:
    """Index one partition of validation rows with their residuals, which the model has not seen."""
    with in_partition(number, "X_val and y_val"):
        targets = targets_in(X, y)
        if not len(targets):
            return Shard(None, targets, None)
        residuals = targets - np.asarray(leaves.reader.predict(X), np.float64)
        return Shard(leaves.index_of(X, n_jobs=n_jobs), residuals, None)


def _merge(parts: Sequence[Columns], k: int) -> Columns:
    """Merge what several shards have found; the order is that of one index of all rows."""
    return parts[0] if len(parts) == 1 else merge_columns(parts, k)


_FAN_IN = 4  # the number of answers that one task merges


class SearchGraph:
    """Tasks that find neighbours of all rows of a collection; nothing runs before somebody asks for the results."""

    def __init__(self, index: ShardedIndex, queries: Partitions, *, name: str = "X", n_jobs: int | None) -> None:
        self.queries = queries
        self._index = index
        self._n_jobs = n_jobs
        self._token = uuid4().hex
        self._tasks: dict[Key, Any] = {}
        self._dependencies: list[Delayed] = [index.leaves, *queries.parts]
        self._rows_name = name  # in errors

    @cached_property
    def _read(self) -> list[Key]:
        return self._of_rows("read", _read, self._rows_name, self._n_jobs)

    def points(self) -> list[Key]:
        """Add the model's own predictions."""
        return self._of_rows("predict", _points)

    def _of_rows(self, name: str, function: Any, *arguments: Any) -> list[Key]:
        """Add what the model says of the rows of each partition."""
        leaves, columns = self._index.leaves.key, self.literal("columns", self.queries.columns)
        return self.each(name, lambda j, part: (function, leaves, j, part.key, columns, *arguments), self.queries.parts)

    def each(self, name: str, task: Any, *arguments: Sequence[Any]) -> list[Key]:
        """Add one task per partition, and return their keys."""
        keys = [(self.name(name), j) for j in range(len(self.queries))]
        for j, key in enumerate(keys):
            self._tasks[key] = task(j, *(argument[j] for argument in arguments))
        return keys

    def set(self, key: Key, task: Any) -> None:
        """Add one task under a key."""
        self._tasks[key] = task

    def add(self, name: str, task: Any) -> Key:
        """Add one task, and return its key."""
        key = (self.name(name), 0)
        self._tasks[key] = task
        return key

    def literal(self, name: str, value: Any) -> Key:
        """Add something that tasks need, once for all of them."""
        return self.add(name, (itself, value))

    def name(self, name: str) -> str:
        """Return the first part of a task's key."""
        return f"ibug-{name}-{self._token}"

    def depend_on(self, *delayed: Delayed) -> None:
        """Say that tasks use something else on the cluster."""
        self._dependencies.extend(delayed)

    def batches(self, needs: Mapping[str, int], *, numbers: Sequence[int] | None = None) -> list[Key]:
        """Add the search for neighbours; each key is that of one partition's ``Batch``.

        Where the rows are the validation rows that have the residuals, `numbers` has that of each partition's first
        row, so that no row is its own neighbour.
        """
        k, k_other = needs.get("targets", 0), needs.get("residuals", 0) + (numbers is not None)
        own: list[list[Key]] = [[] for _ in self.queries.parts]
        others = own
        if k:
            own = self._nearest(self._index.shards, k, "own")
        if needs.get("residuals") and self._index.residual_shards is not None:
            others = self._nearest(self._index.residual_shards, k_other, "other")
        first = [None] * len(self.queries) if numbers is None else numbers
        return self.each("batch", lambda j, r, a, b: (_batch, r, a, k, b, k_other, first[j]), self._read, own, others)

    def leaf_sizes(self) -> list[Key]:
        """Add the counts of training rows in each query's leaves: arrays of shape (n_rows, n_trees)."""
        parts = self._ask(
            self._index.shards,
            "sizes",
            lambda shard, read, start: (Shard.leaf_sizes, shard, read),
            lambda group: (_sum, group),
        )
        return self.each("sizes", lambda j, part: (_sum, part), parts)

    def _nearest(self, shards: ShardSet, k: int, name: str) -> list[list[Key]]:
        n_cells = self._index.search_plan.n_cells
        return self._ask(
            shards,
            name,
            lambda shard, read, start: (Shard.nearest, shard, read, k, start, n_cells, self._n_jobs),
            lambda group: (_merge, group, k),
        )

    def _ask(self, shards: ShardSet, name: str, ask: Any, merge: Any) -> list[list[Key]]:
        """Ask all shards about each partition of queries; return the keys of a few merged answers for each."""
        self.depend_on(*shards.shards)
        merged = []
        for j, read in enumerate(self._read):
            keys = [(f"{SEARCH}-{name}-{self._token}", j, i) for i in range(len(shards.shards))]
            for key, shard, start in zip(keys, shards.shards, shards.starts, strict=True):
                self._tasks[key] = ask(shard.key, read, start)
            merged.append(self._reduce(keys, shards, f"merge-{name}", j, merge))
        return merged

    def _reduce(self, keys: list[Key], shards: ShardSet, name: str, j: int, task: Any) -> list[Key]:
        """Reduce the answers of all shards, those of one worker first, to a few, which the next task takes together.

        The last merge is no task of its own: its result would be a large thing to send for a small one to be done.
        """
        there = f"{SEARCH}-{name}-{self._token}"
        tops = [
            self._tree([keys[i] for i in group], (there, j, number), task, 1)[0]
            for number, group in enumerate(shards.groups)
        ]
        return self._tree(tops, (self.name(name), j), task, _FAN_IN)

    def _tree(self, keys: list[Key], prefix: Key, task: Any, most: int) -> list[Key]:
        """Reduce in groups, and groups of groups, until there are so few."""
        level = 0
        while len(keys) > most:
            groups = [keys[start : start + _FAN_IN] for start in range(0, len(keys), _FAN_IN)]
            keys = [(*prefix, level, i) for i in range(len(groups))]
            self._tasks.update(zip(keys, map(task, groups), strict=True))
            level += 1
        return keys

    def highlevel(self, name: str) -> HighLevelGraph:
        """Return the graph with all tasks in a layer of this name."""
        return graph_of(name, self._tasks, self._dependencies)

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


def itself(value: Any) -> Any:
    """Return the value: a task for what is known already."""
    return value


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
        affinities, rows, values["targets"] = _merge(own, k)
    if others:
        _, numbers, residuals = _merge(others, k_other)
        if first is not None and len(mean):
            residuals = residuals[not_self(numbers, first + np.arange(len(mean)))].reshape(len(mean), -1)
        values["residuals"] = residuals
    return Batch(slice(0, len(mean)), mean, affinities, rows, values, leaves.shape[1])


# The local estimator checks its tree walk on the same number of training rows, and on the same ones.
_CHECKED_ROWS = 512


class IndexSize(NamedTuple):
    """The size of an index that is in shards."""

    n_rows: int
    n_trees: int


@dataclass(frozen=True, eq=False)
class ShardedIndex:
    """The training rows of a model in shards, each where its partition lives.

    It is no ``NeighborSource``: a search is a graph of tasks, whose batches stay on the cluster.
    """

    residuals: ClassVar[None] = None  # they are with the shards
    residual_reason: ClassVar[str] = "On a cluster, the model is not asked for residuals of its training rows."

    model: Any
    leaves: Delayed  # the ``LeafNumbers`` of the model, on the cluster
    shards: ShardSet
    residual_shards: ShardSet | None  # validation rows with residuals, if residuals are asked for
    targets: TargetRange
    n_trees: int  # that count
    prediction_type: np.dtype[Any]
    walk: str  # how leaves are found, in words
    search_plan: SearchPlan = field(default_factory=SearchPlan)  # the cells are those of each shard

    @classmethod
    def build(
        cls, client: Client, model: Any, rows: RowsOnCluster, columns: Any, options: Options, rng: Any
    ) -> ShardedIndex:
        """Make each partition a shard, where it lives. The tasks stay known, so that a lost shard is made again."""
        described = reader_of(model)
        if described.n_outputs > 1:
            raise InvalidInputError(
                f"This {type(described.model).__name__} predicts {described.n_outputs} targets, and a cluster has one: "
                "ibug.IBUGRegressor takes several on one machine."
            )
        given = None if columns is None else [described.written_as(str(name)) for name in columns]
        check_feature_names(described.feature_names, given, columns)
        some = np.unique(np.linspace(0, rows.n_rows - 1, _CHECKED_ROWS).astype(np.intp))
        (reader,) = persisted(
            client, [delayed(_prepared)(model, rows.sample(some))], "checking the tree walk", options.verbose
        )
        n_trees, prediction_type, walk = client.compute(delayed(_described)(reader, rows.sample(some[:1]))).result()
        trees = options.sampling.trees(n_trees, rng)
        chosen = options.sampling.rows(rows.n_rows, rng)
        places: list[Any] = [None] * len(rows.X) if chosen is None else local_positions(chosen, rows.lengths)
        leaves = on_cluster(client, delayed(LeafNumbers), reader, n_trees, trees)
        parts = zip(rows.X, rows.y, places, strict=True)
        tasks = tasks_of(SHARD, _build_shard, [(leaves, i, *part, options.n_jobs) for i, part in enumerate(parts)])
        lengths = rows.lengths if chosen is None else tuple(map(len, places))
        progress = {"title": "indexing training rows", "verbose": options.verbose}
        shards = ShardSet.make(client, tasks, lengths, rows.starts, **progress)
        n_index_trees = n_trees if trees is None else len(trees)
        plan = SearchPlan() if isinstance(options.search, str) else SearchPlan(options.search)
        return cls(model, leaves, shards, None, rows.range, n_index_trees, prediction_type, walk, plan)

    @property
    def index(self) -> IndexSize:
        """The number of rows and trees of the index."""
        return IndexSize(self.shards.n_rows, self.n_trees)

    @property
    def residual_kind(self) -> str:
        """``"validation"`` if validation rows have residuals, else ``"none"``."""
        return "none" if self.residual_shards is None else "validation"

    def with_residuals_of(self, client: Client, rows: RowsOnCluster, options: Options) -> ShardedIndex:
        """Return a source whose residuals are those of validation rows: the model has not seen them."""
        parts = zip(rows.X, rows.y, strict=True)
        arguments = [(self.leaves, i, *part, options.n_jobs) for i, part in enumerate(parts)]
        tasks = tasks_of(SHARD, _build_residual_shard, arguments)
        progress = {"title": "indexing validation rows", "verbose": options.verbose}
        return replace(self, residual_shards=ShardSet.make(client, tasks, rows.lengths, rows.starts, **progress))

    def n_neighbors(self, quantity: str, *, leaves_out_self: bool = False) -> int:
        """Return the number of rows that can be neighbours and have the quantity."""
        if quantity == "residuals" and self.residual_shards is not None:
            return self.residual_shards.n_rows - leaves_out_self
        return self.shards.n_rows

    def check_held(self) -> None:
        """Raise InvalidInputError if the cluster no longer knows what it was given to hold."""
        shards = [*self.shards.shards, *([] if self.residual_shards is None else self.residual_shards.shards)]
        futures = futures_of([self.leaves, *shards])
        if any(future.cancelled() or future.client.status != "running" for future in futures):
            raise InvalidInputError(
                "The cluster no longer has the shards of this model: it was restarted, or its client was closed. Load "
                "the model again, ibug.dask.load(folder), if it was saved, or fit it again."
            )

    def search(self, queries: Partitions, *, name: str = "X", n_jobs: int | None) -> SearchGraph:
        """Return the graph of a search for the rows of a collection, called by a name in errors."""
        self.check_held()
        return SearchGraph(self, queries, name=name, n_jobs=n_jobs)

    def all_targets(self) -> list[Delayed]:
        """Return the targets of each shard's partition, on the cluster."""
        return tasks_of(SEARCH, _targets_of, [(shard,) for shard in self.shards.shards])


def _prepared(model: Any, sample: Any) -> LeafReader:
    reader = reader_of(model)
    reader.prepare(sample)
    return reader


def _described(reader: LeafReader, row: Any) -> tuple[int, np.dtype[Any], str]:
    """Return the number of trees, the type of predictions, and how leaves are found."""
    return reader.read_leaves(row).shape[1], reader.predict(row).dtype, reader.how


def _targets_of(shard: Shard) -> Any:
    return shard.values
