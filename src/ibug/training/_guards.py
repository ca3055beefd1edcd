"""Guards against classic mistakes: what works, but is probably not what was meant, is told by a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import ks_2samp
from sklearn.utils import _safe_indexing

from ibug._options import Options
from ibug._typing import Floats, Integers, Rows
from ibug._warnings import ROWS_FOR_COVERAGE, warn_user
from ibug._weights import effective_rows, mean
from ibug.calibration import ScaleConformal
from ibug.exceptions import (
    IBUGError,
    NarrowWarning,
    NotCentralWarning,
    OldRowsWarning,
    OtherRowsWarning,
    OtherUnitWarning,
    SeenRowsWarning,
    TargetOrderWarning,
    TooFewRowsWarning,
    TrainedAnewWarning,
)
from ibug.leaves import LeafReader, read_leaves_of
from ibug.neighbors import Batch, LocalSource
from ibug.rule import AnyRule, JointRule
from ibug.training._seen_rows import fills_leaves, follows_from, seen_share
from ibug.training._splits import rows_for_conformal

# Below it, what validation rows choose is mostly chance; a stack is not even tried.
LEAST_ROWS = 10
_USUAL_COVERAGE = 0.9
# The number of rows on which the model's prediction is compared with the intervals.
_COMPARED_ROWS = 200
# An interval of targets that are 0 or 1 may be [0, 0]: as near as this share of their standard deviation is inside.
_NEAR = 0.1
_NEARLY_ALL = 0.95
# A 90 % interval that holds a smaller share of at least this number of validation rows is too narrow: the difference is
# four standard errors or more.
_FEW = 0.8
_ROWS_TO_COUNT = 150
# The number of rows on which the order of targets is tried. A prediction is useless beyond this multiple of the
# target's variance; another order is better for certain beyond this number of standard errors.
_ORDERED_ROWS = 1000
_USELESS = 1.25
_CERTAIN = 4.0
# The correlation of predictions with targets: below the first on training rows and above the second on validation rows,
# the training targets are in another order. The third is the least number of rows that tells it.
_NO_FIT, _FIT, _ROWS_TO_CORRELATE = 0.1, 0.5, 50
# Errors of rows to calibrate on are compared with those of the latest neighbours, this number of them at most and at
# least; below this p-value they are other ones.
_COMPARED_ERRORS, _LEAST_ERRORS = 1000, 30
_SURELY_OTHER = 1e-3
# Values of leaves follow from rows that the model was trained on by 1 or more. Below the first share, beyond chance,
# rows may be other ones, if validation rows have more; below the second they are, whatever these have.
_FOLLOWS, _OTHER = 0.95, 0.8


def guard_training(model: Any, copy: Any) -> None:
    """Tell of an estimator that is trained already, and about to be trained again."""
    if not _is_trained(model) or _is_trained(copy):
        return
    warn_user(
        f"This {type(model).__name__} is trained already, and prefit is not set: a clone of it is trained again, and "
        "its own trees are not used. Set prefit=True to wrap it as it is, and pass X_val and y_val; or give an "
        "untrained estimator, sklearn.base.clone(model).",
        TrainedAnewWarning,
    )


def _is_trained(model: Any) -> bool:
    try:
        read_leaves_of(model)
    except IBUGError:
        return False
    return True


def guard_validation(train: Rows, validation: Rows | None, n_tuned: int, options: Options) -> bool:
    """Tell of validation rows that are training rows, or too few; return whether there are some that are new."""
    share = 0.0 if validation is None else seen_share(train, validation)
    if share:
        warn_user(
            f"{share:.0%} of the validation rows are training rows, with the same values and targets. The model knows "
            "them, so that its errors on them are too small, and intervals will be too narrow. Give rows that it was "
            "not trained on (X_val and y_val, --valid); or let clones be trained (cv=5).",
            SeenRowsWarning,
        )
    if options.needs_validation:
        _guard_numbers(validation, n_tuned, options)
    return validation is not None and not share


def _guard_numbers(validation: Rows | None, n_tuned: int, options: Options) -> None:
    if validation is not None and n_tuned < LEAST_ROWS:
        rows = "row chooses and calibrates" if n_tuned == 1 else "rows choose and calibrate"
        warn_user(
            f"Only {n_tuned} validation {rows}: what comes of it is mostly chance. Give {LEAST_ROWS} at least, better "
            "some hundreds; or let clones be trained (cv=5), so that the training rows serve.",
            TooFewRowsWarning,
        )
    _guard_conformal(n_tuned, options)


def _guard_conformal(n_tuned: int, options: Options) -> None:
    calibrator = options.conformal_calibrator()
    if calibrator is None:
        return
    name = "scale" if isinstance(calibrator, ScaleConformal) else "distribution"
    n, needed = rows_for_conformal(n_tuned) // (calibrator.n_bins or 1), ROWS_FOR_COVERAGE[name](_USUAL_COVERAGE)
    if n < needed:
        most = n / (n + 1) if name == "scale" else (n - 1) / (n + 1)
        each = " in each bin" if calibrator.n_bins else ""
        warn_user(
            f"Conformal calibration ({name}) has {n} rows{each}. Intervals of coverage above {max(most, 0):.2f} will "
            f"have infinite ends: {_USUAL_COVERAGE:g} needs {needed} rows. Give more validation rows, or leave "
            "conformal out.",
            TooFewRowsWarning,
        )


def guard_model(reader: LeafReader) -> None:
    """Tell of a model whose prediction is not a centre, as it was trained for a quantile, or is in another unit."""
    for name, level in (("quantile", reader.quantile), ("expectile", reader.expectile)):
        if level is None or level == 0.5:
            continue
        warn_user(
            f"The model was trained for the {level:g} {name}, so its prediction is not a centre, and "
            "intervals around it are off to one side. Give a model of the mean or the median; ibug finds any quantile "
            "by itself: predict_quantiles(X, 0.9), say.",
            NotCentralWarning,
        )
    if reader.changes_unit:
        warn_user(
            f"This {type(reader.model).__name__} predicts logarithms; ibug's predict returns their exponential, in the "
            'unit of the target: what model.predict(X, prediction_type="Exponent") and CatBoostRegressor return.',
            OtherUnitWarning,
        )


def guard_number_of_rows(reader: LeafReader, n_train: int, n_validation: int) -> None:
    """Tell of a model that was trained on as many rows as training and validation rows are together."""
    if n_validation and reader.n_training_rows == n_train + n_validation:
        warn_user(
            f"The model was trained on {n_train + n_validation} rows, as many as X and X_val have together ({n_train} "
            f"and {n_validation}). If it has seen the validation rows, its errors on them are too small, and intervals "
            "will be far too narrow. Train it on X alone, or give other rows as X_val; or pass all rows as X, and let "
            "clones be trained (cv=5).",
            SeenRowsWarning,
        )


def guard_training_rows(
    reader: LeafReader, train: Rows, weights: Floats | None, validation: Rows | None, validation_weights: Floats | None
) -> None:
    """Warn of training rows that the model was not trained on; and if it was trained on the validation rows instead.

    Shapes: weights, validation_weights (n_rows,).
    """
    n_train = len(train[1])
    trained = reader.n_training_rows
    known = "" if trained is None else f"; its first tree has {trained} rows, and X has {n_train}"
    if validation is not None and fills_leaves(reader, validation[0], validation_weights):
        if not fills_leaves(reader, train[0], weights):
            _warn_of_swapped_rows("X_val fills the leaves of its trees as they were filled in training, and X does not")
        return
    found = follows_from(reader, train, weights)
    if found is None or not found.is_below(_FOLLOWS * (found.least or 1.0)) or fills_leaves(reader, train[0], weights):
        return
    other = None if validation is None else follows_from(reader, validation, validation_weights)
    if other is not None and found.is_below(other):
        _warn_of_swapped_rows(
            f"the values of its leaves follow from X_val by {other.share:.2f}, and from X by {found.share:.2f} only"
        )
    elif found.is_below(_OTHER * found.least):
        warn_user(
            f"The model was not trained on these rows, it seems: the values of its leaves follow from X and y by "
            f"{found.share:.2f} ± {found.error:.2f}, where rows that it was trained on have {found.least:.2f} or "
            f"more{known}. Neighbours are training rows: give the rows that the model was trained on as X, prepared in "
            "the same way, with their own targets.",
            OtherRowsWarning,
        )


def _warn_of_swapped_rows(reason: str) -> None:
    warn_user(
        f"The model was trained on X_val, and not on X: {reason}. Intervals will be far too narrow. Were they swapped? "
        "X and y are the rows that it was trained on, X_val and y_val (--valid) are new to it.",
        SeenRowsWarning,
    )


def guard_stack(
    rule: AnyRule,
    batches: Callable[[Any], Iterable[Batch]],
    y: Floats,
    weights: Floats | None = None,
    *,
    counts: bool = True,
) -> None:
    """Tell of a model whose prediction is outside of most intervals: it has learned too little, or other data.

    Only a stack can have its intervals elsewhere. All other distributions have the prediction as their mean.

    Shapes: y (n_rows,); weights (n_rows,).
    """
    if rule.stack is None or isinstance(rule, JointRule):  # the means of several targets tell nothing by one number
        return
    outside, ends, near = [], [], _NEAR * float(np.std(y))
    some = np.unique(np.linspace(0, len(y) - 1, _COMPARED_ROWS).astype(np.intp))
    for batch in batches(some):
        lower, upper = rule.distribution(batch).interval(_USUAL_COVERAGE)
        outside.append((batch.mean < lower - near) | (batch.mean > upper + near))
        ends.append((lower, upper))
    share = float(np.concatenate(outside).mean())
    if share > 0.5:
        unit = "in another unit than y (log y? then give TransformedTargetRegressor), " if share > _NEARLY_ALL else ""
        warn_user(
            f"The model's own prediction is outside of the {_USUAL_COVERAGE:.0%} interval for {share:.0%} of the "
            f"validation rows: the neighbours' targets say something else than the model. It may be {unit}trained too "
            "little (few trees, a small learning rate), or on other data. predict_dist(X).mean() is the better "
            "prediction.",
            NotCentralWarning,
        )
    if not counts:
        return
    lower, upper = (np.concatenate(each) for each in zip(*ends, strict=True))
    own = None if weights is None else np.maximum(weights[some], 0.0)
    if own is not None and not own.any():
        return
    inside = ((lower <= y[some]) & (y[some] <= upper)).astype(np.float64)
    held = float(mean(inside, own))
    if effective_rows(own, len(some)) >= _ROWS_TO_COUNT and held < _FEW:
        warn_user(
            f"The {_USUAL_COVERAGE:.0%} interval holds only {held:.0%} of the validation rows themselves: the "
            'distributions fit them badly. conformal="scale" makes intervals that hold; a better model, or '
            'scoring="nll", may help as well.',
            NarrowWarning,
        )


def guard_old_rows(source: LocalSource, later: Rows) -> None:
    """Warn of rows to calibrate on whose errors differ from those of the latest rows that `update` made neighbours."""
    new = source.new_errors
    some = np.unique(np.linspace(0, len(later[1]) - 1, _COMPARED_ERRORS).astype(np.intp))
    if new is None or min(len(new), len(some)) < _LEAST_ERRORS:
        return
    X, y = _safe_indexing(later[0], some), later[1][some]
    errors = y - np.asarray(source.leaves.reader.predict(X), np.float64)
    pairs = zip(errors.reshape(len(errors), -1).T, new.reshape(len(new), -1).T, strict=True)
    p_values = [float(ks_2samp(one, other).pvalue) for one, other in pairs]
    if min(p_values) * len(p_values) < _SURELY_OTHER:
        warn_user(
            "The model's errors on these rows differ from those on the latest rows that update made neighbours "
            f"(Kolmogorov–Smirnov test, p = {min(p_values):.1g}): the spread is {np.std(errors):.4g} here, and "
            f"{np.std(new):.4g} there. If these rows are older, intervals will fit the past. Divide the new rows: "
            "update with some of them, and recalibrate with the others.",
            OldRowsWarning,
        )


def guard_rows_of_targets(reader: LeafReader, train: Rows, validation: Rows) -> None:
    """Tell of training targets that are not in the order of their rows: the model predicts validation rows only."""
    fits = [_correlation(reader, *rows) for rows in (train, validation)]
    if min(len(train[1]), len(validation[1])) >= _ROWS_TO_CORRELATE and fits[0] < _NO_FIT and fits[1] > _FIT:
        warn_user(
            f"The model's predictions of the training rows have a correlation of {fits[0]:.2f} with y, and of "
            f"{fits[1]:.2f} with y_val on the validation rows: is y in the order of the rows of X? Neighbours take "
            "their targets from there.",
            TargetOrderWarning,
        )


def _correlation(reader: LeafReader, X: Any, y: Floats) -> float:
    some = np.unique(np.linspace(0, len(y) - 1, _ORDERED_ROWS).astype(np.intp))
    predicted = np.asarray(reader.predict(_safe_indexing(X, some)), np.float64)
    if not np.all(np.isfinite(predicted)) or np.ptp(predicted) == 0 or np.ptp(y[some]) == 0:
        return np.nan
    return float(np.corrcoef(predicted, y[some])[0, 1])


def guard_order(reader: LeafReader, rows: Rows, names: Sequence[str]) -> bool:
    """Tell of several targets that are in another order than those of the model, by its predictions; and whether it is.

    A target that is merely unpredictable is no reason: the other order must make every target that moves a useful one.
    """
    X, y = rows
    some = np.unique(np.linspace(0, len(y) - 1, _ORDERED_ROWS).astype(np.intp))
    order = better_order(np.asarray(reader.predict(_safe_indexing(X, some)), np.float64), y[some])
    moved = [j for j, place in enumerate(order) if place != j]
    if moved:
        given, better = (", ".join(names[j] for j in places) for places in (moved, [order[j] for j in moved]))
        warn_user(
            f"The model's predictions of the targets {given} fit better in the order {better}: are the targets in the "
            f"order in which the model was trained? By its predictions that is {[names[j] for j in order]}.",
            TargetOrderWarning,
        )
    return bool(moved)


def better_order(predicted: Floats, y: Floats) -> list[int]:
    """Return for each prediction the target that it fits; its own, unless another order is better beyond doubt.

    Of the order that has the least sum of squared errors, in units of the targets' variances, each cycle of targets is
    looked at by itself. It counts if a prediction in it was useless, all are of use in the other order, and the errors
    become smaller by many standard errors.

    Shapes: predicted, y (n_rows, n_targets).
    """
    order, variance = list(range(y.shape[1])), y.var(axis=0)
    vary = np.flatnonzero(variance > 0)
    if len(vary) < 2 or len(y) < LEAST_ROWS or not np.isfinite(predicted).all():
        return order
    squares = (predicted[:, vary, None] - y[:, None, vary]) ** 2 / variance[vary]  # of prediction i for target j
    errors = squares.mean(axis=0)
    _, best = linear_sum_assignment(errors - 1e-9 * np.eye(len(vary)))  # of equal ones, the order that is given
    for cycle in _cycles(best):
        before, after = errors[cycle, cycle], errors[cycle, best[cycle]]
        gain = (squares[:, cycle, cycle] - squares[:, cycle, best[cycle]]).sum(axis=1)
        certain = gain.mean() > _CERTAIN * gain.std() / np.sqrt(len(gain))
        if before.max() > _USELESS and after.max() < 1 and certain:
            for i in cycle:
                order[vary[i]] = int(vary[best[i]])
    return order


def _cycles(order: Integers) -> list[list[int]]:
    """Return the cycles of a permutation, without those of one."""
    found, seen = [], set()
    for start in range(len(order)):
        cycle, j = [], start
        while j not in seen:
            seen.add(j)
            cycle.append(j)
            j = int(order[j])
        if len(cycle) > 1:
            found.append(cycle)
    return found
