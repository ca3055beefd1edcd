"""Where neighbours come from on a cluster: the model's leaves, and the shards of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client, futures_of

from ibug._inputs import check_feature_names
from ibug._options import Options
from ibug.dask._graph import SearchGraph
from ibug.dask._partitions import Key, Partitions, local_positions
from ibug.dask._placement import holders, on_cluster, on_shards, shard_tasks
from ibug.dask._rows import RowsOnCluster, persisted
from ibug.dask._shard import Shard, ShardSet, build_residual_shard, build_shard
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader, read_leaves_of
from ibug.neighbors import LeafNumbers
from ibug.rule import TargetRange

# As many training rows as the local estimator checks its tree walk on; and they are the same ones.
_CHECKED_ROWS = 512


@dataclass(frozen=True)
class IndexSize:
    """The size of an index that is in shards."""

    n_rows: int
    n_trees: int


@dataclass(frozen=True, eq=False)
class ClusterSource:
    """The training rows of a model in shards, each where its partition lives.

    It yields what ``NeighborSource`` yields, one batch for each partition of queries, as tasks of a graph.

    Parameters
    ----------
    model
        The fitted model.
    leaves
        The ``LeafNumbers`` of the model, on the cluster.
    shards
        The index.
    residual_shards
        Validation rows with residuals, if residuals are asked for.
    targets
        Number and range of the training targets.
    n_trees
        The number of trees that count.
    prediction_type
        The type of the model's predictions.
    walk
        How leaves are found, in words.
    """

    #: Residuals are with the shards; and why training rows have none.
    residuals: ClassVar[None] = None
    residual_reason: ClassVar[str] = "On a cluster, the model is not asked for residuals of its training rows."

    model: Any
    leaves: Delayed
    shards: ShardSet
    residual_shards: ShardSet | None
    targets: TargetRange
    n_trees: int
    prediction_type: np.dtype[Any]
    walk: str

    @classmethod
    def build(
        cls, client: Client, model: Any, rows: RowsOnCluster, columns: Any, options: Options, rng: Any
    ) -> ClusterSource:
        """Make each partition a shard, where it lives. The tasks stay known, so that a lost shard is made again."""
        described = read_leaves_of(model)
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
        tasks = shard_tasks(build_shard, [(leaves, i, *part, options.n_jobs) for i, part in enumerate(parts)])
        shards = persisted(client, tasks, "indexing training rows", options.verbose)
        lengths = rows.lengths if chosen is None else tuple(map(len, places))
        held = ShardSet(shards, lengths, rows.starts, holders(client, shards))
        n_index_trees = n_trees if trees is None else len(trees)
        return cls(model, leaves, held, None, rows.range, n_index_trees, prediction_type, walk)

    @property
    def size(self) -> IndexSize:
        """The number of rows and trees of the index."""
        return IndexSize(self.shards.n_rows, self.n_trees)

    @property
    def residual_kind(self) -> str:
        """``"validation"`` if validation rows have residuals, else ``"none"``."""
        return "none" if self.residual_shards is None else "validation"

    def with_residuals_of(self, client: Client, rows: RowsOnCluster, options: Options) -> ClusterSource:
        """Return a source whose residuals are those of validation rows: the model has not seen them."""
        parts = zip(rows.X, rows.y, strict=True)
        arguments = [(self.leaves, i, *part, options.n_jobs) for i, part in enumerate(parts)]
        shards = persisted(
            client, shard_tasks(build_residual_shard, arguments), "indexing validation rows", options.verbose
        )
        return replace(self, residual_shards=ShardSet(shards, rows.lengths, rows.starts, holders(client, shards)))

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

    def graph(self, queries: Partitions, *, name: str = "X", n_jobs: int | None) -> SearchGraph:
        """Return the graph of a search for the rows of a collection, called by a name in errors."""
        self.check_held()
        return SearchGraph(self.leaves, queries, name=name, n_jobs=n_jobs)

    def batches(
        self, graph: SearchGraph, needs: Mapping[str, int], *, numbers: Sequence[int] | None = None
    ) -> list[Key]:
        """Add the search for neighbours to a graph; each key is that of one partition's ``Batch``."""
        return graph.batches(needs, self.shards, self.residual_shards, numbers=numbers)

    def all_targets(self) -> list[Delayed]:
        """Return the targets of each shard's partition, on the cluster."""
        return on_shards(_targets_of, self.shards.shards)


def _prepared(model: Any, sample: Any) -> LeafReader:
    reader = read_leaves_of(model)
    reader.prepare(sample)
    return reader


def _described(reader: LeafReader, row: Any) -> tuple[int, np.dtype[Any], str]:
    """Return the number of trees, the type of predictions, and how leaves are found."""
    return reader.read_leaves(row).shape[1], reader.predict(row).dtype, reader.how


def _targets_of(shard: Shard) -> Any:
    return shard.values[0]
