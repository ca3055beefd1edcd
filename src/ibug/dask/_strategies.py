"""How source and rule are fitted on a cluster: shards where the partitions are, and validation rows that choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from ibug._options import Options
from ibug._typing import Floats
from ibug.dask._cluster import ROWS, SEARCH, tasks_of
from ibug.dask._index import SearchGraph, Shard, ShardedIndex
from ibug.dask._rows import Key, Partitions, RowsOnCluster, parts_of, some_of
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError, UnsupportedModelError
from ibug.leaves import reader_of
from ibug.neighbors import Batch
from ibug.rule import (
    Plan,
    Rule,
    Statistics,
    TargetRange,
    TargetSummary,
    TargetSupport,
    choose,
    suited,
    with_conformal,
    with_floor,
    without_validation,
)
from ibug.training import (
    LOOKED_UP,
    ROWS_FOR_FLOOR,
    ROWS_FOR_THRESHOLD,
    SUSPICIOUS_SHARE,
    count_equal_rows,
    divide_rows,
    evenly_spaced,
    is_suspicious,
    row_hashes,
    warn_of_number_of_rows,
    warn_of_objective,
    warn_of_seen_rows,
    with_own_threshold,
)

Fitted = tuple[ShardedIndex, Rule]

_DASK_ESTIMATORS = {
    ("lightgbm", "DaskLGBMRegressor"),
    ("xgboost", "DaskXGBRegressor"),
    ("xgboost", "DaskXGBRFRegressor"),
}
_NO_CLONES = (
    "Cross-fitting trains clones of a local estimator on local rows; on a cluster it is not done. Leave cv out and "
    "pass X_val and y_val, or let cv=0.2 hold a fifth of the rows out."
)
_NO_GAINS = 'On a cluster, tree_order="gain" would read all shards twice: choose "first", "last" or "random".'
_NOT_ASKED = f'{ShardedIndex.residual_reason} Leave out residuals="model".'


@dataclass(frozen=True, eq=False)
class ClusterWork:
    """What every strategy on a cluster works with."""

    client: Client
    columns: Any  # the names of the columns of X, or None
    options: Options
    rng: np.random.RandomState

    def examine(self, X: Any, y: Any, name: str) -> RowsOnCluster:
        """Check columns and targets of Dask collections, and count the rows of each partition."""
        return RowsOnCluster.examine(self.client, Partitions.of(X, 1), parts_of(y), name, self.options.verbose)

    def summary(self, found: TargetRange, targets: list[Any]) -> TargetSummary:
        """Let the families look at the targets; those that learn from all of them do so in one task."""
        if not self.options.looks_at_targets:
            return TargetSummary.prepare(found, None, self.options)
        prepared: TargetSummary = self.compute(delayed(_prepared)(found, targets, self.options))
        return prepared

    def summary_of(self, rows: RowsOnCluster) -> TargetSummary:
        """Check training rows against the options."""
        if not rows.n_rows:
            raise InvalidInputError(f"{rows.name}: every partition is empty; at least one row is needed.")
        self.options.check_k(rows.n_rows)
        return self.summary(rows.range, rows.y)

    def source(self, model: Any, rows: RowsOnCluster) -> ShardedIndex:
        """Index the training rows of a trained model."""
        return ShardedIndex.build(self.client, model, rows, self.columns, self.options, self.rng)

    def trained(self, estimator: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
        """Train a fresh copy on the cluster, and return the local model."""
        # Made from its parameters: scikit-learn's clone would copy the client, too.
        fresh = type(estimator)(**estimator.get_params(deep=False))
        fresh.client = self.client
        fresh.fit(X, y, **fit_params)
        return local_model(fresh)

    def compute(self, task: Any) -> Any:
        """Return the result of one task."""
        return self.client.compute(task).result()

    def rule_of(self, graph: SearchGraph, name: str, task: Any) -> Rule:
        """Return the rule that one more task of a graph makes."""
        rule: Rule = self.compute(*graph.delayed([graph.add(name, task)]))
        return rule

    def gather(self, tasks: list[Any]) -> list[Any]:
        """Return the results of several tasks."""
        return list(self.client.gather(self.client.compute(tasks)))


def check_cluster_options(options: Options) -> None:
    """Raise InvalidInputError for what is not done on a cluster."""
    if options.sampling.weight_neighbors:
        raise InvalidInputError(
            "On a cluster all neighbours have the same weight: leave weight_neighbors out. ibug.IBUGRegressor, on one "
            "machine, weighs them."
        )
    calibrator = options.conformal_calibrator()
    given = [name for name in ("groups", "ratio") if getattr(calibrator, name, None) is not None]
    if given:
        raise InvalidInputError(
            f"On a cluster conformal calibration has neither groups nor a ratio: leave {given[0]}= of the calibrator "
            "out. ibug.IBUGRegressor, on one machine, takes it."
        )


def check_fit_options(options: Options) -> None:
    """Raise InvalidInputError for what is not done when an estimator is fitted on a cluster."""
    check_cluster_options(options)
    if options.cv is not None or options.residuals == "model":
        raise InvalidInputError(_NOT_ASKED if options.cv is None else _NO_CLONES)
    if options.sampling.takes_gains:
        raise InvalidInputError(_NO_GAINS)


def fit_on_cluster(
    work: ClusterWork,
    estimator: Any,
    X: Any,
    y: Any,
    rows: RowsOnCluster,
    validation: RowsOnCluster | None,
    fit_params: dict[str, Any],
) -> Fitted:
    """Return source and rule, by the strategy that the options ask for; the estimator is a local one if `prefit`."""
    options, target = work.options, work.summary_of(rows)
    options.check(rows.n_rows, fit_params, has_validation=validation is not None)
    if not options.prefit and validation is None and options.needs_validation:
        return _split(work, estimator, X, y, rows, fit_params)
    model = estimator if options.prefit else work.trained(estimator, X, y, fit_params)
    source, rule = _from_model(work, model, rows, target, validation)
    reader = reader_of(model)
    warn_of_objective(reader)
    if validation is not None and not _warn_of_seen_rows(work, source, rows, validation) and options.prefit:
        warn_of_number_of_rows(reader, rows.n_rows, validation.n_rows)
    return source, rule


def _warn_of_seen_rows(work: ClusterWork, source: ShardedIndex, rows: RowsOnCluster, validation: RowsOnCluster) -> bool:
    """Warn of validation rows that are training rows; return whether there are some.

    Most validation rows have other targets than all training rows, and then no row is read again.
    """
    hashes, targets = _sampled_hashes(work, validation)
    if hashes is None:
        return False
    looks = tasks_of(SEARCH, _known, [(shard, targets) for shard in source.shards.shards])
    known = np.logical_or.reduce(work.gather(looks))
    if known.mean() <= SUSPICIOUS_SHARE:
        return False
    some, own_targets = _sampled_hashes(work, rows)
    wanted, of_interest = np.concatenate([hashes, some]), np.concatenate([targets[known], own_targets])
    counted = tasks_of(ROWS, _equal_rows, [(X, y, wanted, of_interest) for X, y in zip(rows.X, rows.y, strict=True)])
    times = np.add.reduce(work.gather(counted))
    share, usual = float(np.mean(times[: len(hashes)] > 0)), float(np.mean(times[len(hashes) :] > 1))
    if not is_suspicious(share, usual, len(hashes)):
        return False
    warn_of_seen_rows(share)
    return True


def _sampled_hashes(work: ClusterWork, rows: RowsOnCluster) -> tuple[Any, Floats]:
    """Return the hashes of some rows, None where they cannot be hashed, and their targets, (n_sampled,) each."""
    some = evenly_spaced(rows.n_rows, LOOKED_UP)
    found: tuple[Any, Floats] = work.compute(delayed(_hashed)(rows.sample(some), rows.sample(some, targets=True)))
    return found


def _from_model(
    work: ClusterWork, model: Any, rows: RowsOnCluster, target: TargetSummary, validation: RowsOnCluster | None
) -> Fitted:
    """Index the rows that the model was trained on, and learn from validation rows, if any."""
    if validation is None and work.options.spread.requires_residuals:
        raise InvalidInputError(
            'spread="residuals" takes the residuals of validation rows on a cluster: pass X_val and y_val.'
        )
    source = work.source(model, rows)
    if validation is not None:
        return learn_on_cluster(work, source, validation, target)
    (target,) = suited([target], reader_of(source.model).nonnegative_losses)
    rule = without_validation(work.options, [target], source.shards.n_rows)
    graph, batch, _ = _search_some(work, source, rows, ROWS_FOR_FLOOR, rule.spread_needs)
    task = (_with_floor, graph.literal("rule", rule), batch, graph.literal("target", target))
    return source, work.rule_of(graph, "floor", task)


def _search_some(
    work: ClusterWork, source: ShardedIndex, rows: RowsOnCluster, most: int, needs: Mapping[str, int]
) -> tuple[SearchGraph, Key, NDArray[np.intp]]:
    """Return the graph of a search for some training rows, the key of their batch, and their numbers."""
    numbers = np.arange(0, rows.n_rows, -(-rows.n_rows // most))
    graph = source.search(Partitions(None, [rows.sample(numbers)]), n_jobs=work.options.n_jobs)
    (batch,) = graph.batches(needs)
    return graph, batch, numbers


def _split(
    work: ClusterWork, estimator: Any, X: Any, y: Any, every: RowsOnCluster, fit_params: dict[str, Any]
) -> Fitted:
    """Learn from a random part that is held out, then train on everything (paper, section 5.1)."""
    options = work.options
    if options.spread.requires_residuals and options.refit:
        raise InvalidInputError(
            'spread="residuals" needs rows that the final model has not seen: pass X_val and y_val, or set '
            "refit=False. On a cluster no clones are trained for residuals of the training rows."
        )
    seeds = work.rng.randint(2**31 - 1, size=y.npartitions).tolist()

    def part(collection: Any, *, others: bool) -> Any:
        return some_of(collection, options.share_held_out, seeds, others=others)

    X_train, y_train = part(X, others=True), part(y, others=True)
    rows = work.examine(X_train, y_train, "X and y")
    held = work.examine(part(X, others=False), part(y, others=False), "X and y")
    if not rows.n_rows or not held.n_rows:
        raise InvalidInputError(
            f"cv={options.share_held_out} holds out {held.n_rows} rows and leaves "
            f"{rows.n_rows}: there are too few to train on some and to tune on others. Pass X_val and y_val."
        )
    weights = {"sample_weight"} & set(fit_params)
    some = {**fit_params, **{name: part(fit_params[name], others=True) for name in weights}}
    target = replace(work.summary_of(rows), support=TargetSupport.of(options.support, every.range))
    source, rule = _from_model(work, work.trained(estimator, X_train, y_train, some), rows, target, held)
    if options.refit:
        source = work.source(work.trained(estimator, X, y, fit_params), every)
        rule = _for_final_model(work, source, every, rule.with_k(options.k))
    return source, rule


def _for_final_model(work: ClusterWork, source: ShardedIndex, rows: RowsOnCluster, rule: Rule) -> Rule:
    """Return the rule with the affinity threshold of the final model's training rows; the first model had fewer."""
    k = min(rule.k + 1, source.shards.n_rows)
    if k < 2:
        return replace(rule, reference=rule.reference.for_other_model())
    graph, batch, numbers = _search_some(work, source, rows, ROWS_FOR_THRESHOLD, {"targets": k})
    task = (_with_threshold, graph.literal("rule", rule), batch, k, graph.literal("numbers", numbers), source.n_trees)
    return work.rule_of(graph, "threshold", task)


def learn_on_cluster(
    work: ClusterWork, source: ShardedIndex, validation: RowsOnCluster, target: TargetSummary
) -> Fitted:
    """Let validation rows, which are queries like others, choose and calibrate; see ``ibug.training.learn_from``."""
    options = work.options
    if not validation.n_rows:
        raise InvalidInputError("X_val: every partition is empty; rows are needed to tune and calibrate on.")
    options.check_indexed_k(source.shards.n_rows)
    (target,) = suited([target], reader_of(source.model).nonnegative_losses, [validation.range])
    parts = divide_rows(validation.n_rows, options, work.rng)
    rows = validation if parts is None else validation.take(parts[0])
    numbers = None
    if options.spread.requires_residuals:
        options.check_residual_rows(rows.n_rows)
        source = source.with_residuals_of(work.client, rows, options)
        numbers = rows.starts
    rule = _choose(work, source, rows, target, numbers)
    if options.conformal is None:
        return source, rule
    if parts is not None:  # the other rows are in no shard
        rows, numbers = validation.take(parts[1]), None
    graph = source.search(Partitions(None, rows.X), name="X_val", n_jobs=options.n_jobs)
    graph.depend_on(*rows.y)
    batches, held = graph.batches(rule.needs, numbers=numbers), graph.literal("rule", rule)
    distributions = graph.each("distribution", lambda j, batch: (distribution_of, held, batch), batches)
    task = (_with_conformal, held, distributions, [y.key for y in rows.y], graph.literal("options", options))
    return source, work.rule_of(graph, "conformal", task)


def _choose(
    work: ClusterWork,
    source: ShardedIndex,
    rows: RowsOnCluster,
    target: TargetSummary,
    numbers: Sequence[int] | None,
) -> Rule:
    """Choose spread, k and family: statistics where the rows are, and the choice in one task."""

    def n_neighbors(quantity: str) -> int:
        return source.n_neighbors(quantity, leaves_out_self=numbers is not None)

    plan = Plan.of(work.options, target, n_neighbors, has_residuals=False)
    graph = source.search(Partitions(None, rows.X), name="X_val", n_jobs=work.options.n_jobs)
    graph.depend_on(*rows.y)
    batches, held = graph.batches(plan.needs, numbers=numbers), graph.literal("plan", plan)
    parts = graph.each("statistics", lambda j, batch, y: (_statistics_of, batch, y.key, held), batches, rows.y)
    return work.rule_of(graph, "tune", (_chosen, held, parts, source.n_trees))


# What workers do


def distribution_of(rule: Rule, batch: Batch) -> Distribution | None:
    """Return the distributions of one partition; None of an empty one, as no family is fitted to no rows."""
    return rule.distribution(batch) if batch.n_rows else None


def _hashed(X: Any, y: Any) -> tuple[Any, Floats]:
    return row_hashes(X, _as_targets(y)), _as_targets(y)


def _known(shard: Shard, targets: Floats) -> NDArray[np.bool_]:
    return np.isin(targets, shard.values)


def _equal_rows(X: Any, y: Any, wanted: NDArray[np.uint64], targets: Floats) -> NDArray[np.int64]:
    return count_equal_rows(wanted, targets, X, _as_targets(y))


def _as_targets(y: Any) -> Floats:
    return np.asarray(y, np.float64).ravel()


def _prepared(found: TargetRange, targets: list[Any], options: Options) -> TargetSummary:
    return TargetSummary.prepare(found, np.concatenate([_as_targets(part) for part in targets]), options)


def _statistics_of(batch: Batch, y: Any, plan: Plan) -> Statistics | None:
    return Statistics.collect([batch], _as_targets(y), [plan]) if batch.n_rows else None


def _chosen(plan: Plan, parts: list[Statistics | None], n_trees: int) -> Rule:
    return choose([plan], Statistics.join([part for part in parts if part is not None]), n_trees)


def _with_conformal(rule: Rule, distributions: list[Distribution | None], y: list[Any], options: Options) -> Rule:
    some = [one for one in distributions if one is not None]
    return with_conformal(rule, some, np.concatenate([_as_targets(part) for part in y]), options)


def _with_floor(rule: Rule, batch: Batch, target: TargetSummary) -> Rule:
    return with_floor(rule, [batch], [target])


def _with_threshold(rule: Rule, batch: Batch, k: int, numbers: Any, n_trees: int) -> Rule:
    return with_own_threshold(rule, batch.affinities[:, :k], batch.rows[:, :k], numbers, n_trees)


# Models that LightGBM or XGBoost train on the cluster, and the local models that come out of it


def _is_dask_estimator(model: Any) -> bool:
    """Recognise the estimators that are trained on a cluster, without importing their libraries."""
    return any((cls.__module__.partition(".")[0], cls.__name__) in _DASK_ESTIMATORS for cls in type(model).__mro__)


def require_trainable(model: Any) -> Any:
    """Return an estimator, and refuse what cannot be trained on a cluster."""
    if not _is_dask_estimator(model):
        name = "no estimator" if model is None else f"a {type(model).__name__}"
        raise UnsupportedModelError(
            f"Got {name}, which cannot be trained on a Dask cluster. Give lightgbm.DaskLGBMRegressor or "
            "xgboost.dask.DaskXGBRegressor, or a model that is trained already, with prefit=True."
        )
    return model


def local_model(model: Any) -> Any:
    """Return the local counterpart of a trained Dask estimator; other models as they are."""
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(local_model(model.estimator))
    if not _is_dask_estimator(model):
        return model
    if hasattr(model, "to_local"):
        return model.to_local()
    import xgboost

    parameters = model.get_params(deep=False)
    cls = xgboost.XGBRFRegressor if "RF" in type(model).__name__ else xgboost.XGBRegressor
    local = cls(**parameters)
    local.load_model(model.get_booster().save_raw(raw_format="ubj"))
    return local
