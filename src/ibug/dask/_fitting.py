"""How ibug.dask.IBUGRegressor learns: shards where the partitions are, tuning on the cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client
from sklearn.utils.validation import validate_data

from ibug._columns import feature_types
from ibug.affinity import LeafSource, sample_rows, sample_trees
from ibug.dask._graph import SearchGraph
from ibug.dask._partitions import Partitions, as_collections, local_positions, meta_of, targets_of
from ibug.dask._placement import holders, keep_shards, on_cluster, on_shards, shard_tasks
from ibug.dask._rows import RowsOnCluster, persisted, some_of
from ibug.dask._rule import IndexSize, Rule, as_targets, floored, law_of, made_sure, statistics_of, tuned
from ibug.dask._shard import Shard, ShardSet, build_residual_shard, build_shard
from ibug.dask._training import trained
from ibug.exceptions import InvalidInputError
from ibug.learning import ROWS_FOR_MIN_VARIANCE
from ibug.leaves import LeafReader, read_leaves_of
from ibug.posterior import Posterior, looks_at_targets, prepare
from ibug.regressor import IBUGRegressor
from ibug.targets import TargetFacts, check_support

# As many training rows as the local estimator checks its tree walk on; and they are the same ones.
_CHECKED_ROWS = 512

#: What a rule has learned that users may look at.
LEARNED = (
    "k_",
    "spread_",
    "min_variance_",
    "gamma_",
    "delta_",
    "conformal_",
    "affinity_threshold_",
    "distribution_",
    "tuning_",
)


class ClusterFitter(IBUGRegressor):
    """The half of ibug.dask.IBUGRegressor that learns."""

    _source: Delayed
    _shards: ShardSet
    _residual_shards: ShardSet | None
    _rule: Rule
    _prediction_type: np.dtype[Any]

    def _examine(self, client: Client, X: Any, y: Any, name: str, *, reset: bool) -> tuple[Any, Any, RowsOnCluster]:
        keep_shards(client)
        X, y = as_collections(X, y, client, name)
        validate_data(self, meta_of(X), reset=reset, skip_check_array=True)
        if reset:
            self.feature_types_ = feature_types(meta_of(X))
        parts = Partitions.of(X, 1).parts
        return X, y, RowsOnCluster.examine(client, parts, targets_of(y), name, bool(self.verbose))

    def _fit_trained(
        self, client: Client, model: Any, rows: RowsOnCluster, validation: RowsOnCluster | None, rng: Any
    ) -> None:
        """Index the rows that the model was trained on, and learn from others."""
        facts = self._facts_of(client, rows)
        self._index_shards(client, model, rows, rng)
        self._learn_rule(client, rows, facts, validation, self.distribution, rng)

    def _fit_held_out(self, client: Client, model: Any, X: Any, y: Any, fit_params: dict[str, Any], rng: Any) -> None:
        """Tune on a random part that is held out, then train on everything (paper, section 5.1)."""
        if self.spread == "residuals" and self.refit:
            raise InvalidInputError(
                'spread="residuals" needs rows that the final model has not seen: pass X_val and y_val, or set '
                "refit=False. On a cluster no clones are trained for residuals of the training rows."
            )
        seeds = rng.randint(2**31 - 1, size=y.npartitions).tolist()
        parts = {}
        for others in (True, False):
            some = [some_of(data, self.validation_fraction, seeds, others=others) for data in (X, y)]
            examined = RowsOnCluster.examine(
                client, Partitions.of(some[0], 1).parts, targets_of(some[1]), "X and y", bool(self.verbose)
            )
            parts[others] = (*some, examined)
        X_train, y_train, rows = parts[True]
        held = parts[False][2]
        if not rows.n_rows or not held.n_rows:
            raise InvalidInputError(
                f"validation_fraction={self.validation_fraction} holds out {held.n_rows} rows and leaves "
                f"{rows.n_rows}: there are too few to train on some and to tune on others. Pass X_val and y_val."
            )
        some_params = {
            name: some_of(value, self.validation_fraction, seeds, others=True) if name == "sample_weight" else value
            for name, value in fit_params.items()
        }
        self._fit_trained(client, trained(model, client, X_train, y_train, some_params), rows, held, rng)
        if self.refit:
            self._refit(client, model, X, y, fit_params, rng)

    def _refit(self, client: Client, model: Any, X: Any, y: Any, fit_params: dict[str, Any], rng: Any) -> None:
        rows = RowsOnCluster.examine(client, Partitions.of(X, 1).parts, targets_of(y), "X and y", bool(self.verbose))
        self._index_shards(client, trained(model, client, X, y, fit_params), rows, rng)
        rule = self._rule
        rule.index_ = self.index_
        rule._restore_k()
        self._take(rule)

    def _facts_of(self, client: Client, rows: RowsOnCluster) -> TargetFacts:
        if not rows.n_rows:
            raise InvalidInputError(f"{rows.name}: every partition is empty; at least one row is needed.")
        self._check_k(rows.n_rows)
        facts = rows.target_facts(client)
        if not looks_at_targets(self.distribution):
            self._check_posterior(facts)
        return facts

    def _index_shards(self, client: Client, model: Any, rows: RowsOnCluster, rng: Any) -> None:
        """Make each partition a shard, where it lives. The tasks stay known, so that a lost shard is made again."""
        self._check_names(read_leaves_of(model))
        some = np.unique(np.linspace(0, rows.n_rows - 1, _CHECKED_ROWS).astype(np.intp))
        (reader,) = persisted(
            client, [delayed(_prepared)(model, rows.sample(some))], "checking the tree walk", bool(self.verbose)
        )
        n_trees, self._prediction_type, self.walk_ = client.compute(
            delayed(_described)(reader, rows.sample(some[:1]))
        ).result()
        trees = sample_trees(n_trees, self.tree_fraction, self.tree_order, rng)
        chosen = sample_rows(rows.n_rows, self.row_fraction, rng)
        places: list[Any] = [None] * len(rows.X) if chosen is None else local_positions(chosen, rows.lengths)
        self._source = on_cluster(client, delayed(LeafSource), reader, n_trees, trees)
        parts = zip(rows.X, rows.y, places, strict=True)
        tasks = shard_tasks(build_shard, [(self._source, i, *part, self.n_jobs) for i, part in enumerate(parts)])
        shards = persisted(client, tasks, "indexing training rows", bool(self.verbose))
        lengths = rows.lengths if chosen is None else tuple(map(len, places))
        self.estimator_ = model
        self._shards, self._residual_shards = ShardSet(shards, lengths, rows.starts, holders(client, shards)), None
        n_index_trees = n_trees if trees is None else len(trees)
        size: Any = IndexSize(self._shards.n_rows, n_index_trees)  # all that is known here of the index
        self.index_, self.residuals_ = size, None

    def _learn_rule(
        self,
        client: Client,
        rows: RowsOnCluster | None,
        facts: TargetFacts,
        validation: RowsOnCluster | None,
        distribution: Any,
        rng: Any,
    ) -> None:
        size: Any = self.index_
        rule = Rule.of(self.get_params(deep=False), size, facts)
        rule._prepared = self._families(client, rows, facts, distribution)
        if validation is not None:
            rule = self._learn_from_rows(client, rule, validation, distribution, rng)
        else:
            assert rows is not None, "without validation rows the training rows are at hand"
            rule._take_k_as_given()
            every = np.arange(0, rows.n_rows, -(-rows.n_rows // ROWS_FOR_MIN_VARIANCE))
            graph = self._graph(Partitions(None, [rows.sample(every)]))
            found = graph.found(rule._spread.n_neighbors, self._shards)
            key = graph.add("floor", (floored, graph.literal("rule", rule), found[0]))
            rule = client.compute(graph.delayed([key])[0]).result()
        self._take(rule)

    def _learn_from_rows(
        self, client: Client, rule: Rule, validation: RowsOnCluster, distribution: Any, rng: Any
    ) -> Rule:
        """Tune and calibrate on validation rows, which are queries like others."""
        if not validation.n_rows:
            raise InvalidInputError("X_val: every partition is empty; rows are needed to tune and calibrate on.")
        tuned_on, kept = rule._divide(validation.n_rows, rng)
        divided = kept is not tuned_on
        rows = validation.take(tuned_on) if divided else validation
        if self.spread == "residuals":
            rule._check_residual_rows(rows.n_rows)
            self._residual_shards = self._index_residuals_of(client, rows)
        numbers = None if self._residual_shards is None else rows.starts
        rule = self._tune_on(client, rule, rows, numbers, distribution)
        if self.conformal is None:
            return rule
        rows = validation.take(kept) if divided else rows
        graph = self._graph(rows.queries(), "X_val", by_library=True)
        found = graph.found(rule._needs, self._shards, self._residual_shards, numbers=None if divided else numbers)
        held = graph.literal("rule", rule)
        laws = graph.each("law", lambda j, one: (law_of, held, one, "_law"), found)
        graph.depend_on(*rows.y)
        key = graph.add("conformal", (made_sure, held, laws, [y.key for y in rows.y]))
        learned: Rule = client.compute(graph.delayed([key])[0]).result()
        return learned

    def _tune_on(self, client: Client, rule: Rule, rows: RowsOnCluster, numbers: Any, distribution: Any) -> Rule:
        n_rows = {"targets": self._shards.n_rows}
        if self._residual_shards is not None:
            n_rows["residuals"] = self._residual_shards.n_rows - 1  # none is its own neighbour
        plan = rule._plan(n_rows.__getitem__, distribution)
        needs = dict.fromkeys(["targets", *plan.quantities], max(plan.every_k))
        graph = self._graph(rows.queries(), "X_val", by_library=True)
        graph.depend_on(*rows.y)
        found = graph.found(needs, self._shards, self._residual_shards, numbers=numbers)
        plan_key = graph.literal("plan", plan)
        parts = graph.each("statistics", lambda j, one, y: (statistics_of, one, y.key, plan_key), found, rows.y)
        key = graph.add("tune", (tuned, graph.literal("rule", rule), plan_key, parts))
        learned: Rule = client.compute(graph.delayed([key])[0]).result()
        return learned

    def _index_residuals_of(self, client: Client, rows: RowsOnCluster) -> ShardSet:
        arguments = zip(rows.X, rows.y, strict=True)
        tasks = shard_tasks(
            build_residual_shard, [(self._source, i, *row, self.n_jobs) for i, row in enumerate(arguments)]
        )
        shards = persisted(client, tasks, "indexing validation rows", bool(self.verbose))
        return ShardSet(shards, rows.lengths, rows.starts, holders(client, shards))

    def _families(
        self, client: Client, rows: RowsOnCluster | None, facts: TargetFacts, distribution: Any
    ) -> tuple[list[Posterior], dict[str, str]]:
        """Return the families that can take the targets; those that learn from all of them do so in one task."""
        support = check_support(self.support, facts)
        if not looks_at_targets(distribution):
            return prepare(distribution, facts, self.location, support)
        task = delayed(_look_at_targets)(distribution, facts, self._all_targets(rows), self.location, support)
        found: tuple[list[Posterior], dict[str, str]] = client.compute(task).result()
        return found

    def _all_targets(self, rows: RowsOnCluster | None) -> list[Delayed]:
        if rows is not None:
            return rows.y
        return on_shards(_targets_of, self._shards.shards)

    def _take(self, rule: Rule) -> None:
        self._rule = rule
        for name in LEARNED:
            setattr(self, name, getattr(rule, name))

    def _graph(self, queries: Partitions, name: str = "X", *, by_library: bool = False) -> SearchGraph:
        return SearchGraph(self._source, queries, name=name, by_library=by_library, n_jobs=self.n_jobs)


def _prepared(model: Any, sample: Any) -> LeafReader:
    reader = read_leaves_of(model)
    reader.prepare(sample)
    return reader


def _described(reader: LeafReader, row: Any) -> tuple[int, np.dtype[Any], str]:
    """Return the number of trees, the type of predictions, and how leaves are found."""
    return reader.read_leaves(row).shape[1], reader.predict(row).dtype, reader.how


def _look_at_targets(
    distribution: Any, facts: TargetFacts, targets: list[Any], location: str, support: Any
) -> tuple[list[Posterior], dict[str, str]]:
    values = np.concatenate([as_targets(part) for part in targets])
    every = TargetFacts(facts.n, facts.lowest, facts.highest, facts.variance, values)
    return prepare(distribution, every, location, support)


def _targets_of(shard: Shard) -> Any:
    return shard.values[0]
