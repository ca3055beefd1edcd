"""Rows to hold out: parts, folds, and out-of-sample predictions of the training rows by clones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.model_selection import KFold, check_cv, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from ibug._options import Options
from ibug._progress import Progress
from ibug._typing import Floats
from ibug._validation import check_probability
from ibug.calibration import halves
from ibug.exceptions import InvalidInputError
from ibug.leaves import reader_of, weighted_outputs
from ibug.neighbors import Batch, CrossFittedSource, LocalSource, Sampling, TargetNeighbors
from ibug.training._models import fresh


def split(n_rows: int, fraction: Any, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide row numbers into those to train on and those to hold out, each ascending."""
    check_probability(fraction, "validation_fraction")
    if n_rows < 3:
        raise InvalidInputError(
            f"Got n_samples={n_rows}: at least 3 rows are needed to train on some and to hold out others."
        )
    train, held_out = train_test_split(np.arange(n_rows), test_size=fraction, random_state=rng)
    return np.sort(train), np.sort(held_out)


def divide_rows(
    n_rows: int, options: Options, rng: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return the validation rows to tune on and those for conformal calibration; None where all rows serve both."""
    if options.conformal is None:
        return None
    tuned_on, held_out = halves(n_rows, rng)
    return (tuned_on, held_out) if len(tuned_on) < n_rows else None


Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # rows to train on, rows to predict
Nearest = tuple[NDArray[np.float32], NDArray[np.int32]]  # affinities and neighbours, (n_tuned, k) each

#: The number of folds where none is given.
DEFAULT_FOLDS = 5
#: This many rows are enough to choose a handful of numbers on: the search for their neighbours stays short.
MOST_TUNING_ROWS = 10_000
# By how much the logarithm of a model's errors usually falls from the clones' rows to all rows, and the most that is
# believed.
_USUAL_SLOPE, _STEEPEST_SLOPE = 0.05, -0.25


@dataclass(frozen=True)
class CrossFit:
    """Out-of-fold predictions of the training rows, and the neighbours that clones found for some of them."""

    mean: Floats  # (n_rows,) or (n_rows, n_targets), NaN of rows that no fold predicts
    rows: NDArray[np.intp]  # (n_tuned,), whose neighbours were searched, ascending, all of them predicted
    affinities: NDArray[np.float32]  # (n_tuned, k), shares of the trees of the row's own model
    neighbors: NDArray[np.int32]  # (n_tuned, k), among the rows that the row's own model was trained on
    per_target: tuple[TargetNeighbors, ...]  # the same by the trees of each of several targets, where these are apart
    share: float = 1.0  # the number of rows that a clone was trained on, over that of all rows, on average
    improvement: Any = 1.0  # () or (n_targets,), see `improvement_of`

    def source(self, y: Floats, weights: Floats | None) -> CrossFittedSource:
        """Return the source of these neighbours. Shapes: y (n_rows,) or (n_rows, n_targets); weights (n_rows,)."""
        mean, residuals = self.mean[self.rows], y - self.mean
        return CrossFittedSource(mean, self.affinities, self.neighbors, y, residuals, weights, self.per_target)


def make_folds(cv: Any, n_rows: int, y: Floats, rng: np.random.RandomState) -> list[Fold]:
    """Return the folds; no row is predicted twice, and those that come first in time may not be predicted at all."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise InvalidInputError(f"cv must be at least 2 folds; got {cv}.")
        if n_rows < 3:
            raise InvalidInputError(
                f"Got n_samples={n_rows}: at least 3 rows are needed to train on some and to hold out others."
            )
        cv = KFold(min(int(cv), n_rows), shuffle=True, random_state=rng.randint(2**31 - 1))
    elif isinstance(cv, (bool, float, str)):
        raise InvalidInputError(
            f"cv must be a number of folds, a share of the rows, a splitter or a list of splits; got {cv!r}."
        )
    try:
        parts = list(check_cv(cv).split(np.zeros((n_rows, 1)), y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise needs_splits(cv) from error
    folds = [(np.asarray(train, np.intp), np.asarray(test, np.intp)) for train, test in parts]
    largest = max((int(rows.max(initial=-1)) for fold in folds for rows in fold), default=-1)
    if largest >= n_rows:
        raise InvalidInputError(
            f"cv has the row number {largest}, and there are {n_rows} rows to divide. With refit=False a part is "
            "held out first: pass X_val and y_val, or a splitter in place of a list of splits."
        )
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=n_rows)
    if len(times) != n_rows or np.any(times > 1) or not times.any():
        raise InvalidInputError(
            "No training row may be in the test parts of several folds of cv, so that none has two residuals, and some "
            f"rows must be in one; here {np.sum(times > 1)} rows are in several and {np.sum(times == 0)} in none. "
            "KFold, GroupKFold, PredefinedSplit and TimeSeriesSplit do this, ShuffleSplit does not."
        )
    if any(np.isin(test, train).any() for train, test in folds):
        raise InvalidInputError("A fold of cv trains on rows of its own test part: their residuals would be too small.")
    return folds


def needs_splits(cv: Any) -> InvalidInputError:
    """Return the error for a splitter that wants groups, which `fit` has no place for."""
    name = type(cv).__name__ if hasattr(cv, "split") else "GroupKFold"
    return InvalidInputError(
        f"fit does not pass groups on to cv. Divide the rows yourself: cv=list({name}(...).split(X, y, groups)) is "
        "a list of splits, which keeps each group in one fold."
    )


def tuning_rows(n_rows: int, rng: np.random.RandomState, n_targets: int = 1) -> NDArray[np.intp]:
    """Return the rows to tune on, ascending: all, or a sample where there are many."""
    most = MOST_TUNING_ROWS if n_targets == 1 else MOST_TUNING_ROWS // (n_targets + 1)
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, most, replace=False))


def cross_fit(
    model: Any,
    X: Any,
    y: Floats,
    folds: Sequence[Fold],
    fit_params: dict[str, Any],
    *,
    rows: NDArray[np.intp],
    k: int,
    sampling: Sampling,
    n_jobs: int | None,
    rng: np.random.RandomState,
    verbose: bool,
    curve: bool = True,
) -> CrossFit:
    """Train one clone per fold, predict the fold's rows, and find the neighbours of some of them.

    Shapes: rows (n_tuned,).
    """
    seeds = rng.randint(2**31 - 1, size=len(folds))
    both = _without_two(folds[0], folds[1]) if curve and k and len(folds) > 1 else None
    tasks = [*folds] if both is None else [*folds, both]  # the last clone is asked for errors alone
    n_parallel = min(effective_n_jobs(n_jobs), len(tasks))
    lock = Lock()

    def fit_fold(train: NDArray[np.intp], test: NDArray[np.intp], seed: int | None) -> _Predicted:
        X_train = _safe_indexing(X, train)
        clone = fresh(model).fit(X_train, y[train], **_check_method_params(X, fit_params, indices=train))
        reader = weighted_outputs(reader_of(clone), sampling.output_weights)
        mean = np.asarray(reader.predict(_safe_indexing(X, test)), np.float64)
        queried, found = test[:0] if seed is None else test[np.isin(test, rows)], []
        if k and len(queried):
            source = LocalSource.build(clone, reader, X_train, y[train], sampling, np.random.RandomState(seed))
            found = _nearest(source, _safe_indexing(X, queried), k, train, n_jobs if n_parallel == 1 else 1)
        with lock:
            progress.advance(1)
        return _Predicted(test, mean, queried, found)

    with Progress(f"cross-fitting {len(tasks)} clones", len(tasks), enabled=verbose) as progress:
        # In threads: the rows are not copied, the libraries release the interpreter while they train, and a clone is
        # deterministic wherever it is trained.
        results = Parallel(n_jobs=n_parallel, require="sharedmem")(
            delayed(fit_fold)(train, test, seed) for (train, test), seed in zip_longest(tasks, seeds)
        )
    n_tested = sum(len(test) for _, test in folds)
    share = sum(len(train) * len(test) for train, test in folds) / (n_tested * _num_samples(X))
    found = _joined(results[: len(folds)], _num_samples(X), rows, share)
    if both is None:
        return found
    train, test = both
    sizes = len(train), (len(folds[0][0]) + len(folds[1][0])) / 2, _num_samples(X)
    return replace(found, improvement=improvement_of(y[test] - results[-1].mean, y[test] - found.mean[test], sizes))


def _without_two(first: Fold, second: Fold) -> Fold | None:
    """Return the rows to train on that two folds have in common, and the rows that either of them predicts."""
    train = np.intersect1d(first[0], second[0])
    sizes = len(first[0]), len(second[0])
    enough = 2 * len(train) >= max(sizes) and len(train) < min(sizes)
    return (train, np.concatenate([first[1], second[1]])) if enough else None


def improvement_of(fewer: Floats, errors: Floats, sizes: tuple[float, float, float]) -> Floats:
    """Return what errors of models of some rows are multiplied by to be those of a model of more rows, () or (d,).

    Shapes: fewer, errors (n,).
    """
    # The root mean square error falls with a power of the number of rows, which is estimated by models of still fewer
    # rows. The logarithm of the factor is pulled towards 0, from which it usually differs by about 0.05.
    below, middle, above = np.log(sizes)
    unit = np.maximum(np.abs(fewer).max(axis=0), np.abs(errors).max(axis=0))
    unit = np.where(unit > 0, unit, 1.0)  # squares of huge numbers overflow, those of tiny ones vanish
    before, after = np.square(fewer / unit), np.square(errors / unit)
    known = (before.mean(axis=0) > 0) & (after.mean(axis=0) > 0)
    scale = [np.where(known, one.mean(axis=0), 1.0) for one in (before, after)]
    power = 0.5 * (above - middle) / (middle - below)
    slope = power * np.log(scale[1] / scale[0])
    variance = power**2 * np.var(after / scale[1] - before / scale[0], axis=0) / len(errors)
    slope = slope * _USUAL_SLOPE**2 / (_USUAL_SLOPE**2 + variance)
    return np.asarray(np.where(known, np.exp(np.clip(slope, _STEEPEST_SLOPE, 0.0)), 1.0))


def _nearest(source: LocalSource, X: Any, k: int, train: NDArray[np.intp], n_jobs: int | None) -> list[Nearest]:
    """Return affinities, as shares, and neighbours by all trees, then by those of each target where these are apart."""
    batches = list(source.batches(X, {"targets": min(k, source.index.n_rows)}, predict=False, n_jobs=n_jobs))

    def whole(parts: Sequence[Batch | TargetNeighbors]) -> Nearest:
        counts, rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("affinities", "rows"))
        return (counts / parts[0].n_trees).astype(np.float32), train[rows].astype(np.int32)

    return [
        whole(batches),
        *(whole([batch.per_target[j] for batch in batches]) for j in range(len(source.target_indexes))),
    ]


class _Predicted(NamedTuple):
    """What the clone of one fold has found."""

    test: NDArray[np.intp]
    mean: Floats  # its predictions
    queried: NDArray[np.intp]  # those of the rows whose neighbours were searched
    nearest: list[Nearest]


def _joined(parts: list[_Predicted], n_rows: int, rows: NDArray[np.intp], share: float) -> CrossFit:
    """Put the folds' rows in order; all get as many neighbours as the smallest fold has."""
    mean = np.full((n_rows, *parts[0].mean.shape[1:]), np.nan)  # of rows that no fold predicts
    for part in parts:
        mean[part.test] = part.mean
    rows = rows[~np.isnan(mean.reshape(n_rows, -1)[rows, 0])]
    searched = [part for part in parts if part.nearest]
    k = min((part.nearest[0][1].shape[1] for part in searched), default=0)
    found = []
    for number in range(len(searched[0].nearest) if searched else 1):
        affinities, neighbors = np.empty((len(rows), k), np.float32), np.empty((len(rows), k), np.int32)
        for part in searched:
            where = np.searchsorted(rows, part.queried)
            affinities[where], neighbors[where] = (each[:, :k] for each in part.nearest[number])
        found.append((affinities, neighbors))
    return CrossFit(mean, rows, *found[0], tuple(TargetNeighbors(*one, 1) for one in found[1:]), share)
