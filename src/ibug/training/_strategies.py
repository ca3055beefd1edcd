"""How source and rule are fitted: with a model as given or trained here, on validation rows, folds or a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params, _check_sample_weight

from ibug._options import Options, is_weight
from ibug._typing import Floats, Integers, Rows
from ibug._validation import as_weights, check_feature_names, check_size_of_weights, subsample
from ibug._weights import counted_rows
from ibug.exceptions import InvalidInputError
from ibug.leaves import (
    RenamingReader,
    names_taken,
    reader_of,
    renamed,
    renamed_parameters,
    weighted_outputs,
)
from ibug.neighbors import (
    LeafNumbers,
    LocalSource,
    Residuals,
    ValidationRows,
    not_self,
    root_mean_square,
    updated,
)
from ibug.rule import (
    K_CANDIDATES,
    Rule,
    TargetSummary,
    affinity_threshold,
    conformalized,
    learn,
    ranges_of,
    suited,
    summarize,
    with_calibrated_sides,
    with_floor,
    without_validation,
)
from ibug.training._diagnostics import (
    ReadRows,
    evenly_spaced,
    predictions_of_some,
    warn_of_intervals,
    warn_of_number_of_rows,
    warn_of_objective,
    warn_of_other_rows,
    warn_of_row_order,
    warn_of_target_order,
    warn_of_validation_rows,
)
from ibug.training._folds import (
    DEFAULT_FOLDS,
    MOST_TUNING_ROWS,
    CrossFit,
    cross_fit,
    divide_rows,
    make_folds,
    needs_splits,
    split,
    tuning_rows,
)
from ibug.training._models import check_outputs, check_stopping, fresh, trainable
from ibug.training._residuals import own_residuals
from ibug.training._search import with_checked_search, with_planned_search


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What `fit` was given, checked."""

    model: Any  # trained already, or to be trained
    columns: Any  # the names of the columns of X, (n_features,), or None
    X: Any
    y: Floats  # (n_train,) or (n_train, n_targets)
    targets: tuple[TargetSummary, ...]  # of each target
    validation: Rows | None  # X_val and y_val
    fit_params: dict[str, Any]  # for the estimator's own `fit`, weights among them
    options: Options
    rng: np.random.RandomState  # draws splits, folds, trees and rows
    target_names: Sequence[str]
    sample_weight: Floats | None  # (n_train,)
    neighbor_weight: Floats | None  # (n_train,), what training rows count for as neighbours
    validation_weight: Floats | None  # (n_validation,)
    renames: bool = False  # whether the columns have other names than the user's

    @classmethod
    def of(
        cls,
        model: Any,
        columns: Any,
        train: Rows,
        validation: Rows | None,
        fit_params: dict[str, Any],
        options: Options,
        rng: np.random.RandomState,
        *,
        target_names: Sequence[str],
        validation_weight: Floats | None,
    ) -> FitRequest:
        """Check parameters of `fit` and weights, so that an error comes before anything is trained."""
        X, y = train
        targets = summarize(y, options)
        if "groups" in fit_params:
            raise needs_splits(options.cv)
        if not options.prefit or options.wants_clones:
            check_stopping(model, fit_params)
        weights = _sample_weight(fit_params, y)
        own = _neighbor_weight(weights) if options.sampling.weight_neighbors else None
        known = target_names, weights, own, validation_weight
        return cls(model, columns, X, y, targets, validation, fit_params, options, rng, *known)

    def with_model_column_names(self) -> FitRequest:
        """Return the same with other names of the columns, where the model's library cannot be trained with these."""
        # The validation rows keep theirs: what reads rows renames them.
        if self.options.prefit or self.columns is None:
            return self
        taken = names_taken(self.model, self.columns)
        if taken is None:
            return self
        fit_params = renamed_parameters(self.fit_params, self.columns, taken)
        return replace(self, columns=taken, X=renamed(self.X, taken), fit_params=fit_params, renames=True)

    def final_model(self) -> Any:
        """Return the model itself if it is trained already, else a copy that is trained on all rows."""
        return self.model if self.options.prefit else fresh(self.model).fit(self.X, self.y, **self.fit_params)

    def source(self, model: Any, residuals: Floats | None = None, *, own: bool = False) -> LocalSource:
        """Return the source of neighbours of a trained model: its training rows, indexed.

        Shapes: residuals (n_train,).
        """
        options, plain = self.options, reader_of(model)
        plain = RenamingReader(plain, self.columns) if self.renames else plain
        given = None if self.columns is None else [plain.written_as(str(name)) for name in self.columns]
        check_outputs(plain, self.y)
        reader = weighted_outputs(plain, options.sampling.output_weights)
        check_feature_names(reader.feature_names, given, self.columns)
        work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
        made = None if residuals is None else Residuals(residuals, "clones")
        source = LocalSource.build(model, reader, self.X, self.y, options.sampling, self.rng, residuals=made, **work)
        source = replace(source, weights=self.neighbor_weight)
        if not own:
            return source
        index = source.index
        if source.rows is not None or source.leaves.trees is not None:  # residuals need all rows in all trees
            index = LeafNumbers(reader, source.leaves.n_model_trees).index_of(
                self.X, title="reading all leaves", **work
            )
        found = own_residuals(plain, index, self.y, self.sample_weight, X=self.X, **work)
        return source.with_training_residuals(found)

    def cross_fit(self, *, search: bool = False) -> CrossFit:
        """Predict each row by a clone that has not seen it, and search the neighbours of the rows to tune on."""
        options, rows, k = self.options, np.empty(0, np.intp), 0
        if search:
            rows = tuning_rows(len(self.y), self.rng, len(self.targets))
            k = K_CANDIDATES[-1] if options.k is None else options.k
        return cross_fit(
            trainable(self.model),
            self.X,
            self.y,
            make_folds(DEFAULT_FOLDS if options.cv is None else options.cv, len(self.y), self.y, self.rng),
            self.fit_params,
            rows=rows,
            k=k,
            sampling=options.sampling,
            n_jobs=options.n_jobs,
            rng=self.rng,
            verbose=options.verbose,
            curve=options.scales_errors,
        )

    def residuals_of(self, found: CrossFit) -> Floats | None:
        """Return residuals of all training rows by clones; None where some have none, as no fold predicts them."""
        residuals = self.y - found.mean
        n_missing = int(np.isnan(residuals.reshape(len(residuals), -1)[:, 0]).sum())
        if not n_missing:
            return residuals
        if self.options.spread.requires_residuals:
            raise InvalidInputError(
                f'spread="residuals" needs a residual of every training row, and no fold of cv predicts {n_missing} of '
                f'{len(residuals)}: choose spread="auto" or "targets", or folds that predict all rows.'
            )
        return None

    def part(self, train: Any, held_out: Any) -> FitRequest:
        """Return the same with a part of the rows to train on, and the others as validation rows."""
        y, weights, own = self.y[train], self.sample_weight, self.neighbor_weight
        # The rows held out are training rows, too: bounds hold for them as well.
        targets = zip(summarize(y, self.options), self.targets, strict=True)
        return replace(
            self,
            X=_safe_indexing(self.X, train),
            y=y,
            targets=tuple(replace(one, support=whole.support) for one, whole in targets),
            validation=(_safe_indexing(self.X, held_out), self.y[held_out]),
            fit_params=_check_method_params(self.X, self.fit_params, indices=train),
            sample_weight=None if weights is None else weights[train],
            neighbor_weight=None if own is None else own[train],
            validation_weight=None if weights is None else weights[held_out],
        )


def _sample_weight(fit_params: dict[str, Any], y: Floats) -> Floats | None:
    """Return the weights of the training rows, (n_train,), if they were given."""
    found = [value for name, value in fit_params.items() if is_weight(name) and value is not None]
    if not found:
        return None
    weights = np.asarray(_check_sample_weight(found[0], y, dtype=np.float64, copy=True))
    check_size_of_weights(weights, "sample_weight", smallest=False)
    return weights


def _neighbor_weight(weights: Floats | None) -> Floats:
    """Return what the training rows count for as neighbours, (n_train,), after checking it."""
    if weights is None or not np.all(np.isfinite(weights) & (weights > 0)):
        given = "none" if weights is None else f"{int(np.sum(~(weights > 0)))} that are not"
        raise InvalidInputError(
            f"weight_neighbors=True needs sample_weight in fit, one above zero for each training row; got {given}. "
            "Leave rows of weight 0 out."
        )
    check_size_of_weights(weights, "sample_weight")
    return weights


# The number of training rows that the smallest variance is taken from where there are no validation rows.
ROWS_FOR_FLOOR = 1000


class SourceAndRule(NamedTuple):
    """What IBUGRegressor holds once it is fitted, and the validation rows that were read for it."""

    source: LocalSource
    rule: Rule
    rows: tuple[ReadRows, ...] = ()  # those tuned on, and those for conformal calibration where these are other ones


def fit_source_and_rule(request: FitRequest) -> SourceAndRule:
    """Return source and rule, by the strategy that the options ask for, and warn of what was probably not meant."""
    validation, options = request.validation, request.options
    n_tuned = min(len(request.y), MOST_TUNING_ROWS) if validation is None else len(validation[1])
    unseen = warn_of_validation_rows((request.X, request.y), validation, n_tuned, options)
    strategy = _strategy(options, has_validation=validation is not None)
    fitted = strategy(request.with_model_column_names())
    _diagnose(request, fitted, unseen=unseen)
    return fitted


def _strategy(options: Options, *, has_validation: bool) -> Callable[[FitRequest], SourceAndRule]:
    """Return the strategy that the options ask for: cross-fitting a trained model needs `cv`."""
    if has_validation or not options.needs_validation:
        return _direct
    if options.prefit:
        return _direct if options.cv is None else _cross_fitted
    return _cross_fitted if options.cross_fits else _split


def _diagnose(request: FitRequest, fitted: SourceAndRule, *, unseen: bool) -> None:
    """Warn of rows, targets or a model that do not belong together; the model has not seen the validation rows."""
    (source, rule, read), options = fitted, request.options
    reader, X, y = source.leaves.reader, request.X, request.y
    warn_of_objective(reader)
    validation = request.validation if unseen else None
    if options.prefit:
        if validation is not None:
            warn_of_number_of_rows(reader, len(y), len(validation[1]))
        ordered = True
        if y.ndim > 1:
            known = _predictions_of(read) if read else predictions_of_some(reader, X, y)
            ordered = not warn_of_target_order(*known, request.target_names)
        elif validation is not None:
            warn_of_row_order(predictions_of_some(reader, X, y), _predictions_of(read))
        if ordered:
            warn_of_other_rows(reader, (X, y), request.sample_weight, validation, request.validation_weight)
    if validation is not None:
        weights = [rows.weights[rows.sampled] for rows in read if rows.weights is not None]
        warn_of_intervals(
            rule,
            (batch for rows in read for batch in rows.sampled_batches(rule, source.leaves_of)),
            np.concatenate([rows.y[rows.sampled] for rows in read]),
            None if not weights else np.concatenate(weights),
            deviation=float(np.std(np.concatenate([rows.y for rows in read]))),
            counts=options.conformal is None,
        )


def _direct(request: FitRequest) -> SourceAndRule:
    """Take a trained model as it is, or train one on X alone, and learn from the validation rows, if there are any."""
    options, has_validation = request.options, request.validation is not None
    of_use = has_validation or options.prefit or options.spread.requires_residuals
    residuals = request.residuals_of(request.cross_fit()) if options.wants_clones and of_use else None
    source = request.source(request.final_model(), residuals, own=options.asks_model and has_validation)
    return _from_validation(request, source)


def _split(request: FitRequest) -> SourceAndRule:
    """Learn from a part that is held out, then train on everything (paper, section 5.1)."""
    options = request.options
    part = request.part(*split(len(request.y), options.share_held_out, request.rng))
    source, rule, _ = _direct(part)
    if not options.refit:
        return SourceAndRule(source, rule)
    final = with_planned_search(request.source(request.final_model(), own=options.asks_model), request.X, options)
    if source.out_of_sample.made_by_model and final.out_of_sample.made_by_model:
        final = final.with_training_residuals(final.out_of_sample.at_level(source.out_of_sample.level))
    elif "residuals" in rule.needs:  # which the final model cannot compute, or not even the first one could
        _require_residuals(options, final.out_of_sample.reason or source.out_of_sample.reason)
        rule = _from_validation(part, source.with_training_residuals(Residuals())).rule
    rule = rule.with_k(options.k)
    if rule.conformal is None:  # else more cells would not be what was calibrated
        final = with_checked_search(final, rule, (request.X, request.y), options)
    return SourceAndRule(final, _for_final_model(rule, final, request.X, options.n_jobs))


def _require_residuals(options: Options, reason: str) -> None:
    """Raise InvalidInputError if residuals that cannot be had are the only thing that was asked for."""
    if options.spread.requires_residuals:
        raise InvalidInputError(
            f'{reason} So spread="residuals" cannot be had of the model alone: let residuals="auto" train clones '
            '(cv=5), or choose spread="auto".'
        )


def _cross_fitted(request: FitRequest) -> SourceAndRule:
    """Learn from training rows, with the neighbours that clones found which have not seen them."""
    found, model = request.cross_fit(search=True), request.final_model()
    options, y, weights = request.options, request.y[found.rows], request.sample_weight
    residuals = request.residuals_of(found) if options.wants_residuals else None
    source = with_planned_search(request.source(model, residuals), request.X, options)
    targets = suited(request.targets, source.leaves.reader.nonnegative_losses)
    every, shares = np.arange(len(y)), None
    if weights is not None:
        weights = np.maximum(weights[found.rows], 0.0)
        if weights.any():
            every, some = counted_rows(weights)
            if some is not None:
                shares = np.ones(len(y))
                shares[every] = some
    parts = divide_rows(len(every), options, request.rng)
    tuned_on, held_out = (every, every) if parts is None else (every[parts[0]], every[parts[1]])

    known = found.source(request.y, request.neighbor_weight)

    def rows_of(chosen: NDArray[np.intp]) -> ValidationRows:
        own = None if shares is None else shares[chosen]
        features = None if options.conformal is None else _safe_indexing(request.X, found.rows[chosen])
        return ValidationRows(known, chosen, y[chosen], weights=own, features=features, share=found.share)

    rows = rows_of(tuned_on)
    rule = learn(rows, options, targets, has_residuals=residuals is not None)
    source = with_checked_search(source, rule, (request.X, request.y), options)
    looked_at = evenly_spaced(len(y))
    warn_of_intervals(
        rule,
        known.batches(looked_at, rule.needs),
        y[looked_at],
        None if weights is None else weights[looked_at],
        deviation=float(np.std(y)),
        counts=options.conformal is None,
    )
    rule = conformalized(with_calibrated_sides(rule, rows, options), rows_of(held_out), options)
    most = source.index.n_rows if options.k is None else min(options.k, source.index.n_rows)
    rule = rule.with_more_neighbors(found.share, most).with_k(options.k)
    if options.scales_errors:
        rule = rule.with_errors_times(found.improvement)
    return SourceAndRule(source, _for_final_model(rule, source, request.X, options.n_jobs))


def _from_validation(request: FitRequest, source: LocalSource) -> SourceAndRule:
    options = request.options
    if request.validation is not None:
        return learn_from(source, request.validation, options, request.targets, request.rng, request.validation_weight)
    targets = suited(request.targets, source.leaves.reader.nonnegative_losses)
    rule = without_validation(options, targets, source.index.n_rows)
    source = with_planned_search(source, request.X, options)
    sample = subsample(request.X, ROWS_FOR_FLOOR)
    batches = source.batches(sample, rule.spread_needs, n_jobs=options.n_jobs, verbose=options.verbose)
    return SourceAndRule(source, with_floor(rule, batches, request.targets))


def learn_from(
    source: LocalSource,
    validation: Rows,
    options: Options,
    targets: Sequence[TargetSummary],
    rng: np.random.RandomState,
    weights: Floats | None = None,
) -> SourceAndRule:
    """Return the rule that validation rows choose, and the source: another one if it has residuals of these rows.

    Shapes: weights (n_rows,).
    """
    X, y = validation
    reader = source.leaves.reader
    targets = suited(targets, reader.nonnegative_losses, ranges_of(y))
    if weights is not None:
        if not np.any(weights):
            raise InvalidInputError(
                f"None of the {len(y)} rows that were held out to calibrate on has a weight above zero: pass X_val and "
                "y_val, or leave rows of weight 0 out."
            )
        rows_that_count, weights = counted_rows(weights)
        X, y = _safe_indexing(X, rows_that_count), y[rows_that_count]
    work: dict[str, Any] = {"n_jobs": options.n_jobs, "verbose": options.verbose}
    source = with_planned_search(source, X, options)
    parts = divide_rows(len(y), options, rng)
    sampled = evenly_spaced(len(y))

    def rows_of(source: LocalSource, part: NDArray[np.intp] | None) -> ReadRows:
        if part is None:
            again = y.ndim > 1 or options.conformal is not None  # several targets have boxes to calibrate
            return ReadRows(source, X, y, weights=weights, sampled=sampled, reads_again=again, **work)
        own, some = None if weights is None else weights[part], np.flatnonzero(np.isin(part, sampled))
        return ReadRows(source, _safe_indexing(X, part), y[part], weights=own, sampled=some, **work)

    rows = rows_of(source, None if parts is None else parts[0])
    from_rows = options.spread.requires_residuals and not source.has_training_residuals
    if from_rows and y.ndim > 1:
        raise InvalidInputError(
            'With several targets, spread="residuals" needs out-of-sample residuals of the training rows, which this '
            'model cannot compute: let cv=5 train clones, or choose spread="auto" or "targets".'
        )
    if from_rows:
        options.check_residual_rows(len(rows.y))
    if from_rows or source.out_of_sample.made_by_model:
        predictions = np.asarray(reader.predict(rows.X), np.float64)
        errors = rows.y - predictions
        if from_rows:
            source = source.with_residuals_of(rows.X, errors, **work)
        else:  # their level is that of the errors on rows that the model has not seen
            source = source.with_training_residuals(source.out_of_sample.at_level(root_mean_square(errors)))
        # Predictions of a walk come with the leaves, and may differ from the library's in the last digits.
        rows = replace(
            rows,
            source=source.leaving_out_self() if from_rows else source,
            mean=None if reader.predicts_by_walk else predictions,
        )
    own, has_residuals = source.out_of_sample.made_by_model, source.has_training_residuals
    known: dict[str, Any] = {"has_residuals": has_residuals, "own_residuals": own}
    rule = learn(rows, options, targets, **known)
    checked = with_checked_search(source, rule, (rows.X, rows.y), options)
    if checked.search.n_cells != source.search.n_cells:  # then neighbours are others
        of_rows = checked.leaving_out_self() if from_rows else checked
        rows = replace(rows, source=of_rows, sampled_parts=[], whole=[])
        rule = learn(rows, options, targets, **known)
    source = checked
    if parts is None:
        return SourceAndRule(source, conformalized(rule, rows, options), (rows,))
    others = rows_of(source, parts[1])  # which are in no index
    return SourceAndRule(source, conformalized(rule, others, options), (rows, others))


def _predictions_of(read: Sequence[ReadRows]) -> Rows:
    """Return predictions and targets of all validation rows."""
    return np.concatenate([rows.predictions for rows in read]), np.concatenate([rows.y for rows in read])


#: The number of training rows that the affinity threshold of a final model is taken from.
ROWS_FOR_THRESHOLD = 1000


def _for_final_model(rule: Rule, source: LocalSource, X: Any, n_jobs: int | None) -> Rule:
    """Return the rule with the affinity threshold of the final model, and a reference for it."""
    # Held-out rows have the scores of models of fewer rows, which are lower. The threshold is that of training rows in
    # the final model, none of which is its own neighbour. Their scores are near those of new rows, but not equal in
    # distribution: they have shaped the trees. So `monitor` compares no affinity scores, unless the rule is learned
    # again on rows that the final model has not seen.
    n_index = source.index.n_rows
    if n_index < 2:
        return replace(rule, reference=rule.reference.for_other_model())
    numbers = np.arange(len(source.targets)) if source.rows is None else source.rows
    numbers = numbers[:: -(-len(numbers) // ROWS_FOR_THRESHOLD)]
    found = source.neighbors(_safe_indexing(X, numbers), min(rule.k + 1, n_index), n_jobs=n_jobs)
    return with_own_threshold(rule, *found, numbers, source.n_trees)


def with_own_threshold(
    rule: Rule, affinities: NDArray[np.int32], rows: Integers, numbers: NDArray[np.intp], n_trees: int
) -> Rule:
    """Return the rule with the affinity threshold of these training rows, and a reference without affinity scores.

    Shapes: affinities, rows (n_rows, k + 1); numbers (n_rows,).
    """
    others = affinities[not_self(rows, numbers)].reshape(len(rows), -1)
    scores = others.mean(axis=1) / n_trees
    reference = rule.reference.for_other_model()
    return replace(rule, affinity_threshold=affinity_threshold(scores, None), reference=reference)


def updated_source(
    source: LocalSource,
    rule: Rule,
    rows: Rows,
    options: Options,
    random_state: Any,
    keep: int | None,
    sample_weight: Any = None,
) -> LocalSource:
    """Return the source with newer rows, after checking that the rule can go on with it.

    Shapes: sample_weight (n_rows,).
    """
    X, y = rows
    weights = as_weights(sample_weight, len(y), "sample_weight")
    if weights is not None and (source.weights is None or not np.all(weights > 0)):
        raise InvalidInputError(
            "update takes sample_weight where training rows have weights as neighbours, "
            "Sampling(weight_neighbors=True), one above zero for each new row."
        )
    summarize(np.concatenate([source.targets, y]), options)  # they must be inside a support that was given
    least = 1
    if keep is not None:
        least = max(rule.k, *rule.needs.values(), *rule.spread_needs.values())
        _check_keep(keep, least, options)
    return updated(
        source,
        X,
        y,
        options.sampling,
        check_random_state(random_state),
        weights=weights,
        keep=keep,
        least=least,
        n_jobs=options.n_jobs,
        verbose=options.verbose,
    )


def _check_keep(keep: Any, least: int, options: Options) -> None:
    """Raise InvalidInputError unless the rows that are kept are enough for the rule."""
    whole = isinstance(keep, (int, np.integer)) and not isinstance(keep, bool)
    if not whole or options.sampling.n_rows(int(keep)) < least:
        raise InvalidInputError(
            f"keep must be None or a number of rows of which at least {least} can be neighbours: that many make up a "
            f"distribution. Got {keep!r}."
        )
