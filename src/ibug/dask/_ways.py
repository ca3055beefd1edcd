"""How source and rule come to be on a cluster: shards where the partitions are, and validation rows that choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from dask import delayed
from distributed import Client

from ibug._options import Options
from ibug.dask._index import ShardedIndex
from ibug.dask._rows import Partitions, RowsOnCluster, some_of, targets_of
from ibug.dask._tasks import as_targets, conformalized, distribution_of, floored, own_threshold, statistics_of, tuned
from ibug.dask._training import trained
from ibug.exceptions import InvalidInputError
from ibug.leaves import read_leaves_of
from ibug.rule import Plan, Rule, TargetRange, TargetSummary, TargetSupport, suited, without_validation
from ibug.training import ROWS_FOR_FLOOR, ROWS_FOR_THRESHOLD, divide_rows


class Learned(NamedTuple):
    """What ibug.dask.IBUGRegressor holds once it is fitted."""

    source: ShardedIndex
    rule: Rule


@dataclass(frozen=True, eq=False)
class ClusterJob:
    """What `fit` has to work with.

    Parameters
    ----------
    client
        The Dask client.
    columns
        The names of the columns of X, or None.
    options
        The parameters.
    rng
        Draws trees, rows and splits.
    """

    client: Client
    columns: Any
    options: Options
    rng: np.random.RandomState

    def examine(self, X: Any, y: Any, name: str) -> RowsOnCluster:
        """Check columns and targets of Dask collections, and count the rows of each partition."""
        return RowsOnCluster.examine(self.client, Partitions.of(X, 1), targets_of(y), name, self.options.verbose)

    def facts(self, found: TargetRange, targets: list[Any]) -> TargetSummary:
        """Let the families look at the targets; those that learn from all of them do so in one task."""
        if not self.options.looks_at_targets:
            return TargetSummary.prepare(found, None, self.options)
        facts: TargetSummary = self.client.compute(delayed(_prepared)(found, targets, self.options)).result()
        return facts

    def facts_of(self, rows: RowsOnCluster) -> TargetSummary:
        """Check training rows against the options."""
        if not rows.n_rows:
            raise InvalidInputError(f"{rows.name}: every partition is empty; at least one row is needed.")
        self.options.check_k(rows.n_rows)
        return self.facts(rows.range, rows.y)

    def source(self, model: Any, rows: RowsOnCluster) -> ShardedIndex:
        """Index the training rows of a trained model."""
        return ShardedIndex.build(self.client, model, rows, self.columns, self.options, self.rng)


def check_cluster_options(options: Options) -> None:
    """Raise InvalidInputError for what rows on a cluster are not asked: groups, likelihood ratios, weights."""
    if options.weight_neighbors:
        raise InvalidInputError(
            "On a cluster neighbours count alike: leave weight_neighbors out. ibug.IBUGRegressor, on one machine, "
            "weighs them."
        )
    calibrator = options.conformal_calibrator()
    given = [name for name in ("groups", "ratio") if getattr(calibrator, name, None) is not None]
    if given:
        raise InvalidInputError(
            f"On a cluster conformal calibration is over all rows alike: leave {given[0]}= of the calibrator out. "
            "ibug.IBUGRegressor, on one machine, takes it."
        )


def learned(
    job: ClusterJob, model: Any, rows: RowsOnCluster, facts: TargetSummary, validation: RowsOnCluster | None
) -> Learned:
    """Index the rows that the model was trained on, and learn from validation rows, if any."""
    if validation is None and job.options.spread.requires_residuals:
        raise InvalidInputError(
            'spread="residuals" takes the residuals of validation rows on a cluster: pass X_val and y_val.'
        )
    source = job.source(model, rows)
    if validation is not None:
        return learn_from(job, source, validation, facts)
    (facts,) = suited([facts], read_leaves_of(source.model).nonnegative_losses)
    rule = without_validation(job.options, [facts], source.shards.n_rows)
    every = np.arange(0, rows.n_rows, -(-rows.n_rows // ROWS_FOR_FLOOR))
    graph = source.search(Partitions(None, [rows.sample(every)]), n_jobs=job.options.n_jobs)
    (batch,) = graph.batches(rule.spread_needs)
    key = graph.add("floor", (floored, graph.literal("rule", rule), batch, graph.literal("facts", facts)))
    return Learned(source, job.client.compute(graph.delayed([key])[0]).result())


def held_out(
    job: ClusterJob, estimator: Any, X: Any, y: Any, every: RowsOnCluster, fit_params: dict[str, Any]
) -> Learned:
    """Learn from a random part that is held out, then train on everything (paper, section 5.1)."""
    options = job.options
    if options.spread.requires_residuals and options.refit:
        raise InvalidInputError(
            'spread="residuals" needs rows that the final model has not seen: pass X_val and y_val, or set '
            "refit=False. On a cluster no clones are trained for residuals of the training rows."
        )
    seeds = job.rng.randint(2**31 - 1, size=y.npartitions).tolist()

    def part(collection: Any, *, others: bool) -> Any:
        return some_of(collection, options.validation_fraction, seeds, others=others)

    X_train, y_train = part(X, others=True), part(y, others=True)
    rows = job.examine(X_train, y_train, "X and y")
    held = job.examine(part(X, others=False), part(y, others=False), "X and y")
    if not rows.n_rows or not held.n_rows:
        raise InvalidInputError(
            f"validation_fraction={options.validation_fraction} holds out {held.n_rows} rows and leaves "
            f"{rows.n_rows}: there are too few to train on some and to tune on others. Pass X_val and y_val."
        )
    weights = {"sample_weight"} & set(fit_params)
    some = {**fit_params, **{name: part(fit_params[name], others=True) for name in weights}}
    facts = replace(job.facts_of(rows), support=TargetSupport.of(options.support, every.range))
    source, rule = learned(job, trained(estimator, job.client, X_train, y_train, some), rows, facts, held)
    if options.refit:
        source = job.source(trained(estimator, job.client, X, y, fit_params), every)
        rule = _for_final_model(job, source, every, rule.with_k(options.k))
    return Learned(source, rule)


def _for_final_model(job: ClusterJob, source: ShardedIndex, rows: RowsOnCluster, rule: Rule) -> Rule:
    """Return the rule with the affinity threshold of the final model's training rows; the first model had fewer."""
    k = min(rule.k + 1, source.shards.n_rows)
    if k < 2:
        return replace(rule, reference=rule.reference.for_other_model())
    numbers = np.arange(0, rows.n_rows, -(-rows.n_rows // ROWS_FOR_THRESHOLD))
    graph = source.search(Partitions(None, [rows.sample(numbers)]), n_jobs=job.options.n_jobs)
    (batch,) = graph.batches({"targets": k})
    task = (own_threshold, graph.literal("rule", rule), batch, k, graph.literal("numbers", numbers), source.n_trees)
    found: Rule = job.client.compute(graph.delayed([graph.add("threshold", task)])[0]).result()
    return found


def learn_from(job: ClusterJob, source: ShardedIndex, validation: RowsOnCluster, facts: TargetSummary) -> Learned:
    """Let validation rows, which are queries like others, choose and calibrate; see ``ibug.training.learn_from``."""
    options = job.options
    if not validation.n_rows:
        raise InvalidInputError("X_val: every partition is empty; rows are needed to tune and calibrate on.")
    options.check_indexed_k(source.shards.n_rows)
    (facts,) = suited([facts], read_leaves_of(source.model).nonnegative_losses, [validation.range])
    parts = divide_rows(validation.n_rows, options, job.rng)
    rows = validation if parts is None else validation.take(parts[0])
    numbers = None
    if options.spread.requires_residuals:
        options.check_residual_rows(rows.n_rows)
        source = source.with_residuals_of(job.client, rows, options)
        numbers = rows.starts
    rule = _tuned(job, source, rows, facts, numbers)
    if options.conformal is None:
        return Learned(source, rule)
    if parts is not None:  # the other rows are in no shard
        rows, numbers = validation.take(parts[1]), None
    graph = source.search(rows.queries(), name="X_val", n_jobs=options.n_jobs)
    graph.depend_on(*rows.y)
    batches, held = graph.batches(rule.needs, numbers=numbers), graph.literal("rule", rule)
    distributions = graph.each("distribution", lambda j, batch: (distribution_of, held, batch), batches)
    task = (conformalized, held, distributions, [y.key for y in rows.y], graph.literal("options", options))
    return Learned(source, job.client.compute(graph.delayed([graph.add("conformal", task)])[0]).result())


def _tuned(job: ClusterJob, source: ShardedIndex, rows: RowsOnCluster, facts: TargetSummary, numbers: Any) -> Rule:
    """Choose spread, k and family: statistics where the rows are, and the choice in one task."""

    def n_neighbors(quantity: str) -> int:
        return source.n_neighbors(quantity, leaves_out_self=numbers is not None)

    plan = Plan.of(job.options, facts, n_neighbors, has_residuals=False)
    graph = source.search(rows.queries(), name="X_val", n_jobs=job.options.n_jobs)
    graph.depend_on(*rows.y)
    batches, held = graph.batches(plan.needs, numbers=numbers), graph.literal("plan", plan)
    parts = graph.each("statistics", lambda j, batch, y: (statistics_of, batch, y.key, held), batches, rows.y)
    key = graph.add("tune", (tuned, held, parts, source.n_trees))
    rule: Rule = job.client.compute(graph.delayed([key])[0]).result()
    return rule


def _prepared(found: TargetRange, targets: list[Any], options: Options) -> TargetSummary:
    return TargetSummary.prepare(found, np.concatenate([as_targets(part) for part in targets]), options)
