"""How a model comes to be, and on which rows its rule is learned: as given, trained, cross-fitted, or split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._inputs import subsample
from ibug._options import Options
from ibug._typing import Floats, Rows
from ibug._weights import counting
from ibug.exceptions import InvalidInputError
from ibug.neighbors import (
    Batch,
    CrossFittedSource,
    LocalSource,
    Residuals,
    ValidationRows,
    root_mean_square,
    with_row_context,
)
from ibug.rule import (
    K_CANDIDATES,
    AnyRule,
    Facts,
    JointRule,
    Rule,
    maker_of,
    most_needed,
    ranges_of,
    with_calibrated_sides,
)
from ibug.training._clones import check_stopping
from ibug.training._cross_fit import MOST_TUNING_ROWS, needs_splits, tuning_rows
from ibug.training._fewer_trees import ALL_TREES, TREE_SHARES, select_trees, shares_tried
from ibug.training._final_model import for_final_model
from ibug.training._guards import (
    guard_model,
    guard_number_of_rows,
    guard_order,
    guard_rows_of_targets,
    guard_stack,
    guard_training_rows,
    guard_validation,
)
from ibug.training._job import Job
from ibug.training._splits import divide_rows, split

# The number of training rows that tell the smallest variance where there are no validation rows.
ROWS_FOR_FLOOR = 1000


class Learned(NamedTuple):
    """What IBUGRegressor holds once it is fitted."""

    source: LocalSource
    rule: AnyRule


def learned(job: Job) -> Learned:
    """Return source and rule, by the way that the options ask for."""
    if "groups" in job.fit_params:
        raise needs_splits(job.options.cv)
    if not job.options.prefit or job.options.wants_clones:
        check_stopping(job.model, job.fit_params)
    _ = job.sample_weight, job.neighbor_weight  # an error comes before anything is trained
    validation = job.validation
    n_tuned = min(len(job.y), MOST_TUNING_ROWS) if validation is None else len(validation[1])
    fresh_rows = guard_validation((job.X, job.y), validation, n_tuned, job.options)
    source, rule = _by_its_way(job.as_model_takes_names())
    guard_model(source.leaves.reader)
    if job.options.prefit and validation is not None and fresh_rows:
        guard_number_of_rows(source.leaves.reader, len(job.y), len(validation[1]))
        if job.y.ndim == 1:
            guard_rows_of_targets(source.leaves.reader, (job.X, job.y), validation)
    if job.options.prefit:
        train, new = (job.X, job.y), validation if fresh_rows else None
        known = train if validation is None else validation
        if job.y.ndim == 1 or not guard_order(source.leaves.reader, known, job.target_names):
            guard_training_rows(source.leaves.reader, train, job.sample_weight, new, job.validation_weight)
    if validation is not None and fresh_rows:
        X = validation[0]

        def batches(some: NDArray[np.intp]) -> Iterator[Batch]:
            rows = _safe_indexing(X, some)
            return with_row_context(source.batches(rows, rule.needs), rule.row_context(rows, source.leaves_of))

        unsure = job.options.conformal is None
        guard_stack(rule, batches, validation[1], job.validation_weight, counts=unsure)
    return Learned(source, rule)


def _by_its_way(job: Job) -> Learned:
    options = job.options
    if options.prefit:
        return _as_given(job)
    if job.validation is not None or not options.needs_validation:
        return _trained(job)
    return _cross_fitted(job) if options.cross_fits else _split(job)


def _as_given(job: Job) -> Learned:
    """Use a trained model as it is; clones are trained only if `cv` says so."""
    options = job.options
    if options.cv is not None and job.validation is None and options.needs_validation:
        return _from_cross_fit(job, _honest(job), job.model)
    residuals = _complete(job.y - job.cross_fit().mean, options) if options.wants_clones else None
    own = options.asks_model and job.validation is not None
    return _from_validation(job, job.source(job.model, residuals, own=own))


def _trained(job: Job) -> Learned:
    """Train on X alone, and learn from the given validation rows, if any."""
    options = job.options
    of_use = job.validation is not None
    wanted = options.wants_clones and (of_use or options.spread.requires_residuals)
    residuals = _complete(job.y - job.cross_fit().mean, options) if wanted else None
    return _from_validation(job, job.source(job.trained(), residuals, own=options.asks_model and of_use))


def _cross_fitted(job: Job) -> Learned:
    """Learn from out-of-fold predictions of all rows, then train on everything."""
    known = _honest(job)
    return _from_cross_fit(job, known, job.trained())


def _split(job: Job) -> Learned:
    """Learn from a part that is held out, then train on everything (paper, section 5.1)."""
    options = job.options
    part = job.part(*split(len(job.y), options.validation_fraction, job.rng))
    source, rule = _trained(part)
    if not options.refit:
        return Learned(source, rule)
    final = job.source(job.trained(), own=options.asks_model).with_tuned_share(source.tree_tuning, job.rng)
    if source.honest.are_own and final.honest.are_own:
        final = final.with_training_residuals(final.honest.at_level(source.honest.level))
    elif "residuals" in rule.needs:  # the final model cannot tell residuals, or not even the first one could
        _require_residuals(options, final.honest.reason or source.honest.reason)
        assert part.validation is not None, "which the held out rows are"
        known = part.validation, options, part.facts, part.rng, part.validation_weight
        rule = learn_from(source.with_training_residuals(Residuals()), *known).rule
    return Learned(final, for_final_model(rule.with_k(options.k), final, job.X, options.n_jobs))


def _require_residuals(options: Options, reason: str) -> None:
    """Raise InvalidInputError if residuals that cannot be had are the only thing that was asked for."""
    if options.spread.requires_residuals:
        raise InvalidInputError(
            f'{reason} So spread="residuals" cannot be had with residuals="model": let residuals="auto" train clones, '
            'or choose spread="auto".'
        )


class _Honest(NamedTuple):
    """Training rows with the neighbours that clones found which have not seen them."""

    sources: list[CrossFittedSource]  # by all trees, then by each of TREE_SHARES, if one of these is to be chosen
    n_trees: int  # that each clone has at least
    numbers: NDArray[np.intp]  # which rows these are
    share: float  # of the training rows that a clone has seen
    improvement: Floats  # what the clones' errors are multiplied by to be those of a model of all rows


def _honest(job: Job) -> _Honest:
    k = K_CANDIDATES[-1] if job.options.k is None else job.options.k
    n_targets = 1 if job.y.ndim == 1 else job.y.shape[1]
    found = job.cross_fit(tuning_rows(len(job.y), job.rng, n_targets), k)
    mean, residuals, weights = found.mean[found.rows], job.y - found.mean, job.neighbor_weight
    nearest = ((found.affinities, found.neighbors), *found.fewer)
    sources = [CrossFittedSource(mean, *one, job.y, residuals, weights, found.own) for one in nearest]
    return _Honest(sources, found.n_trees, found.rows, found.share, found.improvement)


def _complete(residuals: Floats, options: Options) -> Floats | None:
    """Return residuals of all training rows; None where some have none, because no fold predicts them."""
    n_missing = int(np.isnan(residuals if residuals.ndim == 1 else residuals[:, 0]).sum())
    if not n_missing:
        return residuals
    if options.spread.requires_residuals:
        raise InvalidInputError(
            f'spread="residuals" needs a residual of every training row, and no fold of cv predicts {n_missing} of '
            f'{len(residuals)}: choose spread="auto" or "targets", or folds that predict all rows.'
        )
    return None


def _from_cross_fit(job: Job, known: _Honest, model: Any) -> Learned:
    options, numbers, honest = job.options, known.numbers, known.sources[0]
    y = job.y[numbers]
    weights = None if job.sample_weight is None else job.sample_weight[numbers]
    residuals = _complete(honest.residuals, options) if options.wants_residuals else None
    used, maker = residuals is not None, maker_of(job.facts)
    source = job.source(model, residuals)
    facts = job.facts.suited(source.leaves.reader.nonnegative_losses)
    every, shares = np.arange(len(y)), np.ones(len(y))
    if weights is not None and (weights > 0).any():
        every, some = counting(np.maximum(weights, 0.0))
        shares[every] = 1.0 if some is None else some
    parts = divide_rows(len(every), job.options, job.rng)
    tuned_on, held_out = (every, every) if parts is None else (every[parts[0]], every[parts[1]])

    def rows(chosen: NDArray[np.intp], honest: CrossFittedSource = honest) -> ValidationRows:
        own = None if np.all(shares == 1.0) else shares[chosen]
        features = None if options.conformal is None else _safe_indexing(job.X, numbers[chosen])
        return ValidationRows(honest, chosen, y[chosen], weights=own, features=features, share=known.share)

    def rule_of(rows: ValidationRows) -> AnyRule:
        return maker.learn(rows, options, facts, has_residuals=used)

    if options.sampling.tunes_trees:
        by_share = dict(zip((ALL_TREES, *TREE_SHARES), known.sources, strict=True))
        tried = [(share, by_share[share]) for share in shares_tried(known.n_trees, rows(tuned_on))]
        best, table = select_trees(tried, lambda one: rows(tuned_on, one), rule_of, options)
        honest, rule, source = best.source, best.rule, source.with_tuned_share(table, job.rng)
    else:
        rule = rule_of(rows(tuned_on))
    unsure = options.conformal is None
    guard_stack(rule, lambda some: honest.batches(some, rule.needs), y, weights, counts=unsure)
    if isinstance(rule, Rule):
        rule = with_calibrated_sides(rule, rows(tuned_on, honest), options)
    rule = maker.conformalized(rule, rows(held_out, honest), options)
    most = source.index.n_rows if options.k is None else min(options.k, source.index.n_rows)
    rule = rule.widened(known.share, most).with_k(options.k)
    if options.scales_errors:
        rule = rule.with_errors_times(known.improvement)
    return Learned(source, for_final_model(rule, source, job.X, options.n_jobs))


def _from_validation(job: Job, source: LocalSource) -> Learned:
    if job.validation is not None:
        tunes = job.options.sampling.tunes_trees
        known = source, job.validation, job.options, job.facts, job.rng, job.validation_weight
        return learn_from(*known, tunes_trees=tunes)
    options, maker = job.options, maker_of(job.facts)
    facts = job.facts.suited(source.leaves.reader.nonnegative_losses)
    rule = maker.without_validation(options, facts, source.index.n_rows)
    sample = subsample(job.X, ROWS_FOR_FLOOR)
    batches = source.batches(sample, _floor_needs(rule), n_jobs=options.n_jobs, verbose=options.verbose)
    return Learned(source, maker.with_floor(rule, batches, job.facts))


def _floor_needs(rule: AnyRule) -> dict[str, int]:
    """Return the number of neighbours that variances are made of."""
    rules = rule.rules if isinstance(rule, JointRule) else (rule,)
    return most_needed(*(one.spread.n_neighbors for one in rules))


def _require_one_target(y: Floats) -> None:
    if y.ndim > 1:
        raise InvalidInputError(
            'With several targets, spread="residuals" needs honest residuals of the training rows, which this model '
            'cannot tell: let cv=5 train clones, or choose spread="auto" or "targets".'
        )


def learn_from(
    source: LocalSource,
    validation: Rows,
    options: Options,
    facts: Facts,
    rng: np.random.RandomState,
    weights: Floats | None = None,
    *,
    tunes_trees: bool = False,
) -> Learned:
    """Return the rule that validation rows choose and calibrate, and the source that it asks.

    The source is another one where residuals are those of the validation rows, or where these choose its trees.

    Shapes: weights (n_rows,).
    """
    X, y = validation
    facts = facts.suited(source.leaves.reader.nonnegative_losses, ranges_of(y))
    if weights is not None:
        if not np.any(weights):
            raise InvalidInputError(
                f"None of the {len(y)} rows that were held out to calibrate on has a weight above zero: pass X_val and "
                "y_val, or leave rows of weight 0 out."
            )
        rows_that_count, weights = counting(weights)
        validation = X, y = _safe_indexing(X, rows_that_count), y[rows_that_count]
    work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
    parts = divide_rows(len(y), options, rng)
    X_tuned, y_tuned = validation if parts is None else (_safe_indexing(X, parts[0]), y[parts[0]])
    some = weights if weights is None or parts is None else weights[parts[0]]
    asked = source
    if options.spread.requires_residuals and not source.has_training_residuals:
        _require_one_target(y)
        options.check_residual_rows(len(y_tuned))
        source = source.with_residuals_of(X_tuned, y_tuned, **work)
        asked = source.leaving_out_self()
    elif source.honest.are_own:  # their level is that of the errors on rows that the model has not seen
        errors = y_tuned - np.asarray(source.leaves.reader.predict(X_tuned), np.float64)
        asked = source = source.with_training_residuals(source.honest.at_level(root_mean_square(errors)))
    rows = ValidationRows(asked, X_tuned, y_tuned, weights=some, **work)
    own, has_residuals, maker = source.honest.are_own, source.has_training_residuals, maker_of(facts)

    def rule_of(rows: ValidationRows) -> AnyRule:
        return maker.learn(rows, options, facts, has_residuals=has_residuals, own_residuals=own)

    if tunes_trees:
        tried = ((share, asked.with_share(share, rng)) for share in shares_tried(asked.n_trees, rows))
        best, table = select_trees(tried, lambda one: replace(rows, source=one), rule_of, options)
        source, rule = replace(best.source, leaves_out_self=False, tree_tuning=table), best.rule
    else:
        rule = rule_of(rows)
    if parts is not None:  # the other rows are in no index
        some = None if weights is None else weights[parts[1]]
        rows = ValidationRows(source, _safe_indexing(X, parts[1]), y[parts[1]], weights=some, **work)
    return Learned(source, maker.conformalized(rule, rows, options))
