"""How a model comes to be, and on which rows its rule is learned: as given, trained, cross-fitted, or split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _check_sample_weight

from ibug._inputs import check_feature_names
from ibug._options import Options, is_weight
from ibug._typing import Floats, Rows
from ibug._weights import counting
from ibug.exceptions import InvalidInputError
from ibug.leaves import RenamingReader, names_taken, read_leaves_of, renamed, renamed_parameters
from ibug.neighbors import CrossFittedSource, LeafNumbers, LocalSource, Residuals, ValidationRows
from ibug.rule import (
    K_CANDIDATES,
    Rule,
    TargetFacts,
    conformalized,
    learn,
    with_floor,
    without_validation,
)
from ibug.training._clones import fresh, trainable
from ibug.training._cross_fit import (
    DEFAULT_FOLDS,
    MOST_TUNING_ROWS,
    CrossFit,
    cross_fit,
    make_folds,
    needs_splits,
    tuning_rows,
)
from ibug.training._guards import guard_model, guard_stack, guard_validation
from ibug.training._own_residuals import own_residuals
from ibug.training._splits import divide_rows, split

# The number of training rows that tell the smallest variance where there are no validation rows.
ROWS_FOR_FLOOR = 1000


class Learned(NamedTuple):
    """What IBUGRegressor holds once it is fitted."""

    source: LocalSource
    rule: Rule


@dataclass(frozen=True, eq=False)
class Job:
    """What `fit` was given, checked.

    Parameters
    ----------
    model
        The estimator: trained already, or to be trained.
    columns : ndarray of shape (n_features,) or None
        The names of the columns of X.
    X, y
        The training rows.
    facts
        Their targets, and the families that can take these.
    validation
        X_val and y_val, if they were given.
    fit_params
        For the estimator's own `fit`, weights among them.
    options
        The parameters.
    rng
        Draws splits, folds, trees and rows.
    renames
        Whether the columns have other names than the user's.
    validation_weight : ndarray of shape (n_validation,) or None
        The weights of the validation rows.
    """

    model: Any
    columns: Any
    X: Any
    y: Floats
    facts: TargetFacts
    validation: Rows | None
    fit_params: dict[str, Any]
    options: Options
    rng: np.random.RandomState
    renames: bool = False
    validation_weight: Floats | None = None

    def as_model_takes_names(self) -> Job:
        """Return the same with other names of the columns, where the model's library would not be trained with these.

        The validation rows keep theirs: what reads rows renames them.
        """
        if self.options.prefit or self.columns is None:
            return self
        taken = names_taken(self.model, self.columns)
        if taken is None:
            return self
        fit_params = renamed_parameters(self.fit_params, self.columns, taken)
        return replace(self, columns=taken, X=renamed(self.X, taken), fit_params=fit_params, renames=True)

    @property
    def sample_weight(self) -> Floats | None:
        """The weights of the training rows, (n_train,), if they were given."""
        found = [value for name, value in self.fit_params.items() if is_weight(name) and value is not None]
        return np.asarray(_check_sample_weight(found[0], self.y, dtype=np.float64)) if found else None

    def trained(self) -> Any:
        """Return a copy of the model, trained on all rows."""
        return fresh(self.model).fit(self.X, self.y, **self.fit_params)

    def source(self, model: Any, residuals: Floats | None = None, *, own: bool = False) -> LocalSource:
        """Return the source of neighbours of a trained model: its training rows, indexed.

        Parameters
        ----------
        model
            The trained model.
        residuals : ndarray of shape (n_train,) or None
            Honest residuals of the training rows, by clones.
        own
            Whether the model itself is asked for them.
        """
        options, reader = self.options, read_leaves_of(model)
        reader = RenamingReader(reader, self.columns) if self.renames else reader
        given = None if self.columns is None else [reader.written_as(str(name)) for name in self.columns]
        check_feature_names(reader.feature_names, given, self.columns)
        work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
        honest = None if residuals is None else Residuals(residuals, "clones")
        source = LocalSource.build(model, reader, self.X, self.y, options.sampling, self.rng, honest=honest, **work)
        if not own:
            return source
        index = source.index
        if source.rows is not None or source.leaves.trees is not None:  # residuals need all rows in all trees
            index = LeafNumbers(reader, source.leaves.n_model_trees).index_of(
                self.X, title="reading all leaves", **work
            )
        return source.with_training_residuals(own_residuals(reader, index, self.y, self.sample_weight, **work))

    def cross_fit(self, rows: Any = None, k: int = 0) -> CrossFit:
        """Predict each row by a clone that has not seen it, and find the k neighbours of some rows.

        Parameters
        ----------
        rows : ndarray of shape (n_tuned,) or None
            The rows whose neighbours are to be found, ascending; none by default.
        k
            The number of neighbours.
        """
        options = self.options
        return cross_fit(
            trainable(self.model),
            self.X,
            self.y,
            make_folds(DEFAULT_FOLDS if options.cv is None else options.cv, len(self.y), self.y, self.rng),
            self.fit_params,
            rows=np.empty(0, np.intp) if rows is None else rows,
            k=k,
            sampling=options.sampling,
            n_jobs=options.n_jobs,
            rng=self.rng,
            verbose=options.verbose,
        )

    def part(self, train: Any, held_out: Any) -> Job:
        """Return the same with a part of the rows to train on, and the others as validation rows.

        Parameters
        ----------
        train, held_out : ndarray
            Row numbers.
        """
        y = self.y[train]
        return replace(
            self,
            X=_safe_indexing(self.X, train),
            y=y,
            facts=TargetFacts.of(y, self.options),
            validation=(_safe_indexing(self.X, held_out), self.y[held_out]),
            fit_params=_check_method_params(self.X, self.fit_params, indices=train),
            validation_weight=None if self.sample_weight is None else self.sample_weight[held_out],
        )


def learned(job: Job) -> Learned:
    """Return source and rule, by the way that the options ask for.

    Parameters
    ----------
    job
        What `fit` was given.
    """
    if "groups" in job.fit_params:
        raise needs_splits(job.options.cv)
    validation = job.validation
    n_tuned = min(len(job.y), MOST_TUNING_ROWS) if validation is None else len(validation[1])
    fresh_rows = guard_validation((job.X, job.y), validation, n_tuned, job.options)
    source, rule = _by_its_way(job.as_model_takes_names())
    guard_model(source.leaves.reader)
    if validation is not None and fresh_rows:
        X, needs = validation[0], rule.needs
        guard_stack(rule, lambda some: source.batches(_safe_indexing(X, some), needs), validation[1])
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
        return _from_cross_fit(job, *_honest(job), job.model)
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
    honest = _honest(job)
    return _from_cross_fit(job, *honest, job.trained())


def _split(job: Job) -> Learned:
    """Learn from a part that is held out, then train on everything (paper, section 5.1)."""
    options = job.options
    part = job.part(*split(len(job.y), options.validation_fraction, job.rng))
    source, rule = _trained(part)
    if not options.refit:
        return Learned(source, rule)
    final = job.source(job.trained(), own=options.asks_model)
    if source.honest.are_own and final.honest.are_own:
        final = final.with_training_residuals(final.honest.at_level(source.honest.level))
    elif "residuals" in rule.needs:  # the final model cannot tell residuals, or not even the first one could
        _require_residuals(options, final.honest.reason or source.honest.reason)
        rule = _from_validation(part, source.with_training_residuals(Residuals())).rule
    return Learned(final, rule.with_k(options.k))


def _require_residuals(options: Options, reason: str) -> None:
    """Raise InvalidInputError if residuals that cannot be had are the only thing that was asked for."""
    if options.spread.requires_residuals:
        raise InvalidInputError(
            f'{reason} So spread="residuals" cannot be had with residuals="model": let residuals="auto" train clones, '
            'or choose spread="auto".'
        )


def _honest(job: Job) -> tuple[CrossFittedSource, NDArray[np.intp]]:
    """Return training rows with the neighbours that clones found which have not seen them, and which rows these are."""
    k = K_CANDIDATES[-1] if job.options.k is None else job.options.k
    found = job.cross_fit(tuning_rows(len(job.y), job.rng), k)
    residuals = job.y - found.mean
    source = CrossFittedSource(found.mean[found.rows], found.affinities, found.neighbors, job.y, residuals)
    return source, found.rows


def _complete(residuals: Floats, options: Options) -> Floats | None:
    """Return residuals of all training rows; None where some have none, because no fold predicts them."""
    n_missing = int(np.isnan(residuals).sum())
    if not n_missing:
        return residuals
    if options.spread.requires_residuals:
        raise InvalidInputError(
            f'spread="residuals" needs a residual of every training row, and no fold of cv predicts {n_missing} of '
            f'{len(residuals)}: choose spread="auto" or "targets", or folds that predict all rows.'
        )
    return None


def _from_cross_fit(job: Job, honest: CrossFittedSource, numbers: NDArray[np.intp], model: Any) -> Learned:
    options, y = job.options, job.y[numbers]
    weights = None if job.sample_weight is None else job.sample_weight[numbers]
    residuals = _complete(honest.residuals, options) if options.wants_residuals else None
    used = residuals is not None
    source = job.source(model, residuals)
    every, shares = np.arange(len(y)), np.ones(len(y))
    if weights is not None and (weights > 0).any():
        every, some = counting(np.maximum(weights, 0.0))
        shares[every] = 1.0 if some is None else some
    parts = divide_rows(len(every), job.options, job.rng)
    tuned_on, held_out = (every, every) if parts is None else (every[parts[0]], every[parts[1]])

    def rows(chosen: NDArray[np.intp]) -> ValidationRows:
        own = None if np.all(shares == 1.0) else shares[chosen]
        features = None if options.conformal is None else _safe_indexing(job.X, numbers[chosen])
        return ValidationRows(honest, chosen, y[chosen], weights=own, features=features)

    rule = learn(rows(tuned_on), job.options, job.facts, has_residuals=used)
    guard_stack(rule, lambda some: honest.batches(some, rule.needs), y)
    rule = conformalized(rule, rows(held_out), job.options)
    return Learned(source, rule.with_k(job.options.k))


def _from_validation(job: Job, source: LocalSource) -> Learned:
    if job.validation is not None:
        return learn_from(source, job.validation, job.options, job.facts, job.rng, job.validation_weight)
    options = job.options
    rule = without_validation(options, job.facts, source.index.n_rows)
    sample = _safe_indexing(job.X, slice(None, None, -(-len(job.y) // ROWS_FOR_FLOOR)))
    batches = source.batches(sample, rule.spread.n_neighbors, n_jobs=options.n_jobs, verbose=options.verbose)
    return Learned(source, with_floor(rule, batches, job.facts))


def learn_from(
    source: LocalSource,
    validation: Rows,
    options: Options,
    facts: TargetFacts,
    rng: np.random.RandomState,
    weights: Floats | None = None,
) -> Learned:
    """Return the rule that validation rows choose and calibrate, and the source that it asks.

    The source is another one where residuals are those of the validation rows.

    Parameters
    ----------
    source
        The training rows.
    validation
        X and y of rows that the model has not seen.
    options
        The parameters.
    facts
        The training targets, and the families that can take them.
    rng
        Divides the validation rows where conformal calibration takes a part.
    weights : ndarray of shape (n_rows,) or None
        Of the validation rows; those that have none do not count at all.
    """
    X, y = validation
    if weights is not None:
        rows_that_count, weights = counting(weights)
        validation = X, y = _safe_indexing(X, rows_that_count), y[rows_that_count]
    work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
    parts = divide_rows(len(y), options, rng)
    X_tuned, y_tuned = validation if parts is None else (_safe_indexing(X, parts[0]), y[parts[0]])
    asked = source
    if options.spread.requires_residuals and not source.has_training_residuals:
        options.check_residual_rows(len(y_tuned))
        source = source.with_residuals_of(X_tuned, y_tuned, **work)
        asked = source.leaving_out_self()
    elif source.honest.are_own:  # their level is that of the errors on rows that the model has not seen
        errors = y_tuned - np.asarray(source.leaves.reader.predict(X_tuned), np.float64)
        level = float(np.sqrt(np.mean(np.square(errors))))
        asked = source = source.with_training_residuals(source.honest.at_level(level))
    some = weights if weights is None or parts is None else weights[parts[0]]
    rows = ValidationRows(asked, X_tuned, y_tuned, weights=some, **work)
    own, has_residuals = source.honest.are_own, source.has_training_residuals
    rule = learn(rows, options, facts, has_residuals=has_residuals, own_residuals=own)
    if parts is not None:  # the other rows are in no index
        some = None if weights is None else weights[parts[1]]
        rows = ValidationRows(source, _safe_indexing(X, parts[1]), y[parts[1]], weights=some, **work)
    return Learned(source, conformalized(rule, rows, options))
