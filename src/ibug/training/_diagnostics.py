"""Warnings about rows, models and distributions that are probably not what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import ks_2samp
from sklearn.utils import _safe_indexing

from ibug._options import Options
from ibug._typing import Floats, LeavesOf, Rows
from ibug._warnings import ROWS_FOR_COVERAGE, warn_user
from ibug._weights import effective_rows, weighted_mean
from ibug.calibration import ScaleConformal, rows_for_conformal
from ibug.exceptions import (
    NarrowWarning,
    NotCentralWarning,
    OldRowsWarning,
    OtherRowsWarning,
    OtherUnitWarning,
    SeenRowsWarning,
    TargetOrderWarning,
    TooFewRowsWarning,
)
from ibug.leaves import Bagging, Boosting, LeafReader, RecipeError, RepeatedReader, is_pandas
from ibug.neighbors import Batch, LocalSource, ValidationRows, with_row_context
from ibug.rule import Rule
from ibug.training._residuals import recipe_of

# Below it, what validation rows choose is mostly chance; a stack is not even tried.
LEAST_ROWS = 10
_USUAL_COVERAGE = 0.9
# Affinities and neighbours of validation rows that are kept between two readings, at most: about 100 MB.
_MOST_KEPT = 2**23
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
# The correlation of predictions with targets: below the first on training rows and above the second on validation rows,
# the training targets are in another order. The third is the least number of rows for this.
_NO_FIT, _FIT, _ROWS_TO_CORRELATE = 0.1, 0.5, 50
# Errors of rows to calibrate on are compared with those of the latest neighbours, this number of them at most and at
# least; below this p-value they are other ones.
_COMPARED_ERRORS, _LEAST_ERRORS = 1000, 30
_SURELY_OTHER = 1e-3
# Values of leaves follow from rows that the model was trained on by 1 or more. Below the first share, beyond chance,
# rows may be other ones, if validation rows have more; below the second they are, whatever these have.
_FOLLOWS, _OTHER = 0.95, 0.8


def warn_of_validation_rows(train: Rows, validation: Rows | None, n_tuned: int, options: Options) -> bool:
    """Warn of validation rows that are training rows, or too few; return whether there are some that are new."""
    share = 0.0 if validation is None else seen_share(train, validation)
    if share:
        warn_of_seen_rows(share)
    if options.needs_validation:
        _warn_of_few_rows(validation, n_tuned, options)
    return validation is not None and not share


def warn_of_seen_rows(share: float) -> None:
    """Warn of a share of the validation rows that are training rows."""
    warn_user(
        f"{share:.0%} of the validation rows are training rows, with the same values and targets. The model knows "
        "them, so that its errors on them are too small, and intervals will be too narrow. Give rows that it was "
        "not trained on (X_val and y_val, --valid); or let clones be trained (cv=5).",
        SeenRowsWarning,
    )


def _warn_of_few_rows(validation: Rows | None, n_tuned: int, options: Options) -> None:
    if validation is not None and n_tuned < LEAST_ROWS:
        rows = "row chooses and calibrates" if n_tuned == 1 else "rows choose and calibrate"
        warn_user(
            f"Only {n_tuned} validation {rows}: what comes of it is mostly chance. Give {LEAST_ROWS} at least, better "
            "some hundreds; or let clones be trained (cv=5), so that the training rows serve.",
            TooFewRowsWarning,
        )
    _warn_of_conformal_rows(n_tuned, options)


def _warn_of_conformal_rows(n_tuned: int, options: Options) -> None:
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


def warn_of_objective(reader: LeafReader) -> None:
    """Warn of a model whose prediction is not a centre, as it was trained for a quantile, or is in another unit."""
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


def warn_of_number_of_rows(reader: LeafReader, n_train: int, n_validation: int) -> None:
    """Warn of a model that was trained on as many rows as training and validation rows are together."""
    if n_validation and reader.n_training_rows == n_train + n_validation:
        warn_user(
            f"The model was trained on {n_train + n_validation} rows, as many as X and X_val have together ({n_train} "
            f"and {n_validation}). If it has seen the validation rows, its errors on them are too small, and intervals "
            "will be far too narrow. Train it on X alone, or give other rows as X_val; or pass all rows as X, and let "
            "clones be trained (cv=5).",
            SeenRowsWarning,
        )


def warn_of_other_rows(
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


@dataclass(frozen=True, eq=False)
class ReadRows(ValidationRows):
    """Validation rows that are read for a rule; what the diagnostics look at is kept as it passes."""

    source: LocalSource
    sampled: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # whose neighbours are kept
    reads_again: bool = False  # whether they are read for the choice of a rule, and for its calibration
    sampled_parts: list[tuple[Floats, Batch]] = field(
        default_factory=list
    )  # by batch: predictions of all, and those sampled
    whole: list[Batch] = field(default_factory=list)  # all batches, where they are read again and there are few

    def batches(self, needs: Mapping[str, int]) -> Iterator[Batch]:
        """Yield the neighbours of one batch of rows after another: at least as many as are needed."""
        if self.whole:  # the choice of a rule looks at more neighbours than the rule
            yield from self.whole
            return
        self.sampled_parts.clear()
        found, n_numbers = [], 0
        for batch in super().batches(needs):
            first, last = np.searchsorted(self.sampled, (batch.where.start, batch.where.stop))
            self.sampled_parts.append(
                (batch.mean, batch.take(self.sampled[first:last] - batch.where.start, int(first)))
            )
            n_numbers += batch.rows.size * (1 + len(batch.per_target))
            if self.reads_again and n_numbers <= _MOST_KEPT:
                found.append(batch)
            yield batch
        if n_numbers <= _MOST_KEPT:
            self.whole.extend(found)

    @property
    def predictions(self) -> Floats:
        """The predictions of all rows, (n_rows,) or (n_rows, n_targets)."""
        return np.concatenate([mean for mean, _ in self.sampled_parts])

    def sampled_batches(self, rule: Rule, leaves_of: LeavesOf) -> Iterator[Batch]:
        """Yield the sampled rows with their neighbours, and with their row context."""
        context = rule.row_context(_safe_indexing(self.X, self.sampled), leaves_of) if len(self.sampled) else {}
        return with_row_context((batch for _, batch in self.sampled_parts), context)


def evenly_spaced(n_rows: int, most: int = _COMPARED_ROWS) -> NDArray[np.intp]:
    """Return the numbers of some rows, ascending, evenly spaced; those whose intervals are looked at by default."""
    return np.unique(np.linspace(0, n_rows - 1, most).astype(np.intp))


def warn_of_intervals(
    rule: Rule,
    batches: Iterable[Batch],
    y: Floats,
    weights: Floats | None = None,
    *,
    deviation: float,
    counts: bool = True,
) -> None:
    """Warn of a model whose prediction is outside of most intervals: it has learned too little, or other data.

    Shapes: y (n_rows,); weights (n_rows,).
    """
    # Only a stack can have its intervals elsewhere. All other distributions have the prediction as their mean.
    if rule.coupling is not None or rule.parts[0].stack is None:
        return
    outside, ends, near = [], [], _NEAR * deviation
    for batch in batches:
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
    if not counts or (weights is not None and not weights.any()):
        return
    lower, upper = (np.concatenate(each) for each in zip(*ends, strict=True))
    inside = ((lower <= y) & (y <= upper)).astype(np.float64)
    held = float(weighted_mean(inside, weights))
    if effective_rows(weights, len(y)) >= _ROWS_TO_COUNT and held < _FEW:
        warn_user(
            f"The {_USUAL_COVERAGE:.0%} interval holds only {held:.0%} of the validation rows themselves: the "
            'distributions fit them badly. conformal="scale" makes intervals that hold; a better model, or '
            'scoring="nll", may help as well.',
            NarrowWarning,
        )


def warn_of_old_rows(source: LocalSource, later: Rows) -> None:
    """Warn of rows to calibrate on whose errors differ from those of the latest rows that `update` made neighbours."""
    new = source.new_errors
    some = evenly_spaced(len(later[1]), _COMPARED_ERRORS)
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


def warn_of_row_order(train: Rows, validation: Rows) -> None:
    """Warn of training targets in another order than their rows, by predictions and targets of both kinds of rows."""
    fits = [_correlation(*rows) for rows in (train, validation)]
    if min(len(train[1]), len(validation[1])) >= _ROWS_TO_CORRELATE and fits[0] < _NO_FIT and fits[1] > _FIT:
        warn_user(
            f"The model's predictions of the training rows have a correlation of {fits[0]:.2f} with y, and of "
            f"{fits[1]:.2f} with y_val on the validation rows: is y in the order of the rows of X? Neighbours take "
            "their targets from there.",
            TargetOrderWarning,
        )


def _correlation(predicted: Floats, y: Floats) -> float:
    if not np.all(np.isfinite(predicted)) or np.ptp(predicted) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(np.corrcoef(predicted, y)[0, 1])


def warn_of_target_order(predicted: Floats, y: Floats, names: Sequence[str]) -> bool:
    """Warn of several targets that are in another order than those of the model; return whether they are.

    Shapes: predicted, y (n_rows, n_targets).
    """
    some = evenly_spaced(len(y), _ORDERED_ROWS)
    order = better_order(predicted[some], y[some])
    moved = [j for j, place in enumerate(order) if place != j]
    if moved:
        given, better = (", ".join(names[j] for j in places) for places in (moved, [order[j] for j in moved]))
        warn_user(
            f"The model's predictions of the targets {given} fit better in the order {better}: are the targets in the "
            f"order in which the model was trained? By its predictions that is {[names[j] for j in order]}.",
            TargetOrderWarning,
        )
    return bool(moved)


def predictions_of_some(reader: LeafReader, X: Any, y: Floats) -> Rows:
    """Return the model's predictions of evenly spaced rows, and their targets."""
    some = evenly_spaced(len(y), _ORDERED_ROWS)
    return np.asarray(reader.predict(_safe_indexing(X, some)), np.float64), y[some]


def better_order(predicted: Floats, y: Floats) -> list[int]:
    """Return for each prediction the target that it fits; its own, unless another order is better beyond doubt.

    Shapes: predicted, y (n_rows, n_targets).
    """
    # Of the order that has the least sum of squared errors, in units of the targets' variances, each cycle of targets
    # counts if a prediction in it was useless, all are of use in the other order, and the gain is no chance.
    order, variance = list(range(y.shape[1])), y.var(axis=0)
    vary = np.flatnonzero(variance > 0)
    if len(vary) < 2 or len(y) < LEAST_ROWS or not np.isfinite(predicted).all():
        return order
    squares = (predicted[:, vary, None] - y[:, None, vary]) ** 2 / variance[vary]  # of prediction i for target j
    errors = squares.mean(axis=0)
    _, best = linear_sum_assignment(errors - 1e-9 * np.eye(len(vary)))  # of equal ones, the order that is given
    pairs = np.arange(len(vary), dtype=np.int32), best.astype(np.int32)  # SciPy's graphs took no others before 1.12
    exchanges = csr_array((np.ones(len(vary)), pairs))
    n_cycles, cycle_of = connected_components(exchanges, directed=False)
    for cycle in (np.flatnonzero(cycle_of == number) for number in range(n_cycles)):
        before, after = errors[cycle, cycle], errors[cycle, best[cycle]]
        gain = (squares[:, cycle, cycle] - squares[:, cycle, best[cycle]]).sum(axis=1)
        certain = gain.mean() > _CERTAIN * gain.std() / np.sqrt(len(gain))
        if before.max() > _USELESS and after.max() < 1 and certain:
            for i in cycle.tolist():
                order[vary[i]] = int(vary[best[i]])
    return order


Hashes = NDArray[np.uint64]

# This many new rows are looked up: enough to distinguish a tenth of them from chance.
LOOKED_UP = 1000
# Training rows are hashed in chunks of about this many numbers: 32 MB.
_NUMBERS_PER_CHUNK = 2**22
# The share of equal rows that is suspicious, beyond that of training rows which have a twin among themselves.
SUSPICIOUS_SHARE = 0.1
# How many rows are taken to see whether the values of leaves follow from them, at most and at least.
_ROWS_TO_FOLLOW, _LEAST_ROWS = 4000, 150
# Where the mean error is a larger share of its standard deviation, an outlier or another unit governs leaf values.
_OFF = 0.3
# The number of standard errors beyond which a difference is no chance.
_CERTAIN = 4.0
# The number of trees whose leaves are counted; those that differ need this number of splits.
_ROUNDING = 1e-4
_TREES_TO_COUNT, _SPLITS_TO_COUNT = 10, 4


def seen_share(train: Rows, new: Rows) -> float:
    """Return the share of the new rows that are training rows, target and all; 0 where chance may explain it."""
    # Data may well have equal rows: the share must exceed that of training rows which have a twin among themselves.
    # Rows of a kind that cannot be compared count as new.
    (X, y), (X_new, y_new) = train, new
    if y.ndim > 1:  # the first of several targets shows as much
        y, y_new = y[:, 0], y_new[:, 0]
    chosen = evenly_spaced(len(y_new), LOOKED_UP)
    targets = y_new[chosen]
    if X_new is X and np.array_equal(y, y_new):
        return 1.0
    known = np.isin(targets, y)  # most new targets are others, and rows need not be hashed
    if known.mean() <= SUSPICIOUS_SHARE:
        return 0.0
    wanted = row_hashes(_safe_indexing(X_new, chosen), targets)
    if wanted is None:
        return 0.0
    share = float((count_equal_rows(wanted, targets[known], X, y) > 0).mean())
    if share <= SUSPICIOUS_SHARE:
        return 0.0
    return share if is_suspicious(share, _share_of_twins(X, y), len(chosen)) else 0.0


def is_suspicious(share: float, usual: float, n_rows: int) -> bool:
    """Return whether a share of rows that are training rows is beyond the usual share of equal rows, and chance."""
    noise = 3 * np.sqrt(usual * (1 - usual) / n_rows)
    return bool(share > usual + SUSPICIOUS_SHARE + noise)


def count_equal_rows(wanted: Hashes, targets: Floats, X: Any, y: Floats) -> NDArray[np.int64]:
    """Return the number of rows that are equal to each of some rows with these hashes, whose targets are given.

    Shapes: wanted (n_wanted,); targets (n,); y (n_rows,).
    """
    hashes = _in_chunks(X, y, np.flatnonzero(np.isin(y, targets)))
    if hashes is None or not len(hashes):
        return np.zeros(len(wanted), np.int64)
    found, times = np.unique(hashes, return_counts=True)
    places = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
    return np.where(found[places] == wanted, times[places], 0)


def _share_of_twins(X: Any, y: Floats) -> float:
    """Return the share of the rows that are equal to another one."""
    hashes = _in_chunks(X, y, np.arange(len(y)))
    assert hashes is not None, "some of these rows were hashed before"
    _, times = np.unique(hashes, return_counts=True)
    return float(times[times > 1].sum() / len(hashes))


def _in_chunks(X: Any, y: Floats, rows: NDArray[np.intp]) -> Hashes | None:
    """Return the hashes of some rows, (n_rows,); None for rows of a kind that cannot be hashed."""
    parts: list[Hashes] = []
    size = max(1, _NUMBERS_PER_CHUNK // max(1, X.shape[1]))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        hashes = row_hashes(_safe_indexing(X, some), y[some])
        if hashes is None:
            return None
        parts.append(hashes)
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def row_hashes(X: Any, y: Floats) -> Hashes | None:
    """Return one number per row, the same for rows with the same values and target, (n_rows,). Shapes: y (n_rows,)."""
    multipliers = np.random.default_rng(0).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = multipliers[-1] * _of_numbers(y)
    try:
        for place, column in enumerate(_columns(X)):
            total += multipliers[place] * column
    except (TypeError, ValueError):  # of values that are no numbers and cannot be hashed, lists say
        return None
    return _mixed(total)


def _columns(X: Any) -> Iterator[Hashes]:
    """Yield the hashes of the values of one column after another, (n_rows,) each."""
    if is_pandas(X):
        from pandas.util import hash_array

        for place, dtype in enumerate(X.dtypes.tolist()):
            column = X.iloc[:, place]
            if getattr(dtype, "kind", "O") in "biuf":
                yield _of_numbers(column.to_numpy(np.float64, na_value=np.nan))
            else:  # categories, texts, dates
                yield hash_array(column.astype(object).to_numpy(), categorize=True)
    elif hasattr(X, "hash_rows"):  # polars
        yield X.hash_rows(seed=0).to_numpy()
    elif issparse(X):
        yield _of_numbers(X @ np.random.default_rng(1).random(X.shape[1]))
    else:
        values = np.asarray(X, np.float64)
        for place in range(values.shape[1]):
            yield _of_numbers(values[:, place])


def _of_numbers(values: Any) -> Hashes:
    numbers = np.ascontiguousarray(values, np.float64) + 0.0  # no negative zero
    numbers[np.isnan(numbers)] = np.nan  # which has one form then
    return _mixed(numbers.view(np.uint64))


def _mixed(bits: Hashes) -> Hashes:
    """Spread differences over all bits, as SplitMix64 does."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def fills_leaves(reader: LeafReader, X: Any, weights: Floats | None = None) -> bool:
    """Return whether rows fill the leaves of the first trees just as the model's training rows did.

    Shapes: weights (n_rows,).
    """
    reader = reader.inner if isinstance(reader, RepeatedReader) else reader
    sizes = reader.leaf_sizes(_TREES_TO_COUNT)
    if sizes is None or sum(int(np.sum(size > 0)) - 1 for size in _distinct(sizes)) < _SPLITS_TO_COUNT:
        return False
    n = X.shape[0]
    total = sizes[0].sum()
    ways = [None] if weights is None else [None, weights]
    ways = [one for one in ways if np.isclose(total, n if one is None else one.sum(), rtol=_ROUNDING, atol=0)]
    if not ways:
        return False
    leaves = reader.read_leaves(X, trees=np.arange(len(sizes)))
    return any(
        all(
            np.allclose(np.bincount(own, one, len(size))[: len(size)], size, rtol=0, atol=_ROUNDING * total)
            for own, size in zip(leaves.T, sizes, strict=True)
        )
        for one in ways
    )


def _distinct(sizes: list[Floats]) -> list[Floats]:
    return list({size.tobytes(): size for size in sizes}.values())


class Follows(NamedTuple):
    """How far the values of a model's leaves follow from the targets of some rows."""

    share: float  # 1 or more of training rows, on average; the less the better a model fits noise, of other rows
    error: float  # its standard error
    least: float  # what training rows have at least, on average; 0 where that is not known

    def is_below(self, other: Follows | float) -> bool:
        """Return whether the share is below another one, or a number, beyond chance."""
        share, error = (other.share, other.error) if isinstance(other, Follows) else (other, 0.0)
        return self.share + _CERTAIN * float(np.hypot(self.error, error)) < share


def follows_from(reader: LeafReader, rows: Rows, weights: Floats | None = None) -> Follows | None:
    """Return how far the values of a model's leaves follow from some rows; None where that is not known.

    Shapes: weights (n_rows,).
    """
    # A leaf has the value that its training rows pull it to: of boosting, −rate · G/(H + λ). So Σ −g·v of training rows
    # is Σ h·v²/rate at least, in each tree, and that of a random part of them is so on average. Rows that the model has
    # not seen pull less, as splits and values fit noise of the training rows, the more so in late trees: the second
    # half counts. Of a forest, v is what the last split adds to the value of the node above.
    X, y = rows
    counted = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
    if len(counted) < _LEAST_ROWS:
        return None
    some = counted[evenly_spaced(len(counted), _ROWS_TO_FOLLOW)]
    X, y, weights = _safe_indexing(X, some), y[some], None if weights is None else weights[some]
    reader = reader.inner if isinstance(reader, RepeatedReader) else reader
    leaves = reader.read_leaves(X).astype(np.intp)
    predicted = np.asarray(reader.predict(X), np.float64).reshape(len(y), -1)
    found = []
    for j, column in enumerate(y.reshape(len(y), -1).T):
        own = leaves if reader.outputs is None else leaves[:, reader.outputs == j]
        try:
            recipe = recipe_of(reader, column, weights, j)
            pulls, steps, ends = _pulls(recipe, own)
        except RecipeError:
            continue
        known = np.allclose(ends, predicted[:, j], rtol=1e-3, atol=1e-3 * np.std(predicted[:, j]))
        errors = column - predicted[:, j]
        if known and steps.sum() > 0 and abs(np.mean(errors)) <= _OFF * np.std(errors):
            unit = np.abs(steps).max()  # whose square may be beyond the largest number
            share, steps = pulls.sum() / steps.sum(), steps / unit
            error = np.sqrt(np.sum((pulls / unit - share * steps) ** 2)) / steps.sum()
            least = recipe.drawn if isinstance(recipe, Bagging) else float(not recipe.sampled)
            found.append(Follows(float(share), float(error), least))
    return max(found, default=None)


def _pulls(recipe: Boosting | Bagging, leaves: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """Return Σ −g·v and Σ h·v²/rate of the trees that count, and the prediction, (n_rows,) each."""
    n, n_trees = leaves.shape
    if recipe.leaves.n_trees != n_trees:
        raise RecipeError("the values of some of its trees are not known")
    weights = np.ones(n) if recipe.weights is None else recipe.weights
    pulls, steps = np.zeros(n), np.zeros(n)
    raw = np.zeros(n) if isinstance(recipe, Bagging) else np.full(n, recipe.start)
    for tree in range(n_trees):
        value = recipe.leaves.at(np.full(n, tree), leaves[:, tree])
        if isinstance(recipe, Bagging):
            above = recipe.parents.at(np.full(n, tree), leaves[:, tree])
            bounded = weights * _bounded(value - above)
            pulls += bounded * (recipe.targets - above)
            steps += bounded * (value - above)
            raw += value / n_trees
            continue
        if tree >= max(n_trees // 2, 1) and recipe.rates[tree] > 0:
            gradient, hessian = recipe.loss.slopes(raw, recipe.targets)
            bounded = _bounded(value)
            pulls -= bounded * gradient * weights
            steps += bounded * hessian * value / recipe.rates[tree] * weights
        raw += value
    return pulls, steps, recipe.link(raw)


def _bounded(values: Floats) -> Floats:
    """Return leaf values, no larger than usual ones, so that outliers, which only some of the rows have, count less."""
    usual = float(np.median(np.abs(values)))
    return np.clip(values, -usual, usual) if usual > 0 else np.sign(values)
