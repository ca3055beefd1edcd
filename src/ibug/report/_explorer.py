"""The rows of the explorer: predictions, neighbours, the features in which they differ, and what makes them wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug._typing import Floats, Integers
from ibug.describe import deviation, mean_distances
from ibug.exceptions import InvalidInputError, MissingDependencyError
from ibug.explain import Attributor
from ibug.report._charts import densities
from ibug.report._page import pack
from ibug.report._summary import ScoredRows, Similarity

_MOST_TICKS = 100  # of a rug
_MOST_DIFFERENCES = 8
_MOST_FEATURE_BYTES = 1_500_000


def choose(n_rows: int, most: int) -> Integers:
    """Return the rows of the explorer, ascending: all, or a random sample that is the same each time."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def named(similarity: Similarity | None, rows: Integers, ids: Sequence[Any] | None) -> dict[str, Any]:
    """Return the columns of the table that all targets share: numbers, names, similarity to the training data."""
    return {
        "row": pack(rows, "int32"),
        "id": None if ids is None else [str(ids[row]) for row in rows],
        "affinity": None if similarity is None else pack(similarity.score[rows], "float64"),
        "threshold": None if similarity is None else similarity.threshold,
    }


def predictions(found: ScoredRows, rows: Integers) -> dict[str, Any]:
    """Return the numbers of the table."""
    std = found.distribution.std()
    return {
        "prediction": pack(found.points[rows], "float64"),
        "lower": pack(found.lower[rows], "float64"),
        "upper": pack(found.upper[rows], "float64"),
        "observed": pack(found.y[rows], "float64"),
        "std": pack(std[rows], "float64"),
        # Compared with all rows, not only with those of the table.
        "wider": pack(np.searchsorted(np.sort(std), std[rows]) / len(std), "float32"),
        "density": densities(found.distribution[rows], found.lower[rows], found.upper[rows]),
    }


@dataclass(frozen=True)
class Near:
    """The nearest training rows of the explorer's rows: a list of those that occur, and for each row places in it."""

    affinities: NDArray[np.int32]  # (n_shown, at least k) what `kneighbors` returns
    indices: Integers
    count: int  # of neighbours to list; the rug shows more of them
    k: int  # of neighbours that predictions look at
    similarity: Similarity  # of all rows
    means: Floats  # (n_rows,) or (n_rows, n_targets) the model's predictions of all rows

    @cached_property
    def _occurring(self) -> tuple[Integers, Integers]:
        ticks = self.indices[:, : max(self.count, min(self.k, _MOST_TICKS))]
        occurring, places = np.unique(ticks, return_inverse=True)
        return occurring, places.reshape(ticks.shape)

    def listed(self, n_trees: int, train_ids: Any) -> dict[str, Any]:
        """Return the neighbours, which all targets share."""
        occurring, places = self._occurring
        return {
            "k": self.k,
            "shown": self.count,
            "trees": n_trees,
            "row": pack(occurring),
            "id": None if train_ids is None else [str(train_ids[row]) for row in occurring],
            "places": pack(places),
            "affinity": pack(self.affinities[:, : self.count]),
        }

    def targets(self, targets: Floats) -> dict[str, Any]:
        """Return the neighbours' values of one target. Shapes: targets (n_train,)."""
        used = targets[self.indices[:, : self.k]]
        return {
            "target": pack(targets[self._occurring[0]], "float64"),
            "mean": pack(used.mean(axis=1), "float32"),
            "std": pack(used.std(axis=1), "float32"),
            "low": pack(used.min(axis=1), "float32"),
            "high": pack(used.max(axis=1), "float32"),
        }


def features(estimator: Any, X: Any, X_train: Any, rows: Integers, indices: Integers | None) -> dict[str, Any]:
    """Return the values of features, and those in which rows differ from their neighbours, indices (n_rows, shown)."""
    chosen = _safe_indexing(X, rows)
    if X_train is not None:
        check_train(X_train, chosen.shape[1], len(estimator.training_targets_))
    every = [feature(name, j, chosen, X_train) for j, name in enumerate(names_of(X, estimator))]
    result: dict[str, Any] = {"columns": _columns(every), "differences": None}
    if X_train is not None and indices is not None:
        found = differences(every, indices, _MOST_DIFFERENCES)
        own = np.stack([each.here for each in every], axis=1)
        here = np.take_along_axis(own, np.maximum(found.features, 0), axis=1)
        result["differences"] = {
            "feature": pack(found.features),
            "distance": pack(found.distances, "float32"),
            "here": pack(here),
            "there": pack(found.values),
            "count": pack(found.counts),
        }
    return result


def _columns(every: list[Feature]) -> list[dict[str, Any]]:
    """Return name and texts of each feature, and its values as long as there is room."""
    columns, size = [], 0
    for each in every:
        values = pack(each.here)
        size += len(values["data"])
        known = {"name": each.name, "texts": each.texts, "categorical": each.texts is not None}
        columns.append({**known, "values": values if size <= _MOST_FEATURE_BYTES else None})
    return columns


_LONGEST_TEXT = 200
# The number of training rows that are looked for in the index, among this number of nearest rows, and the least share
# that must be found: rounding to single precision may move a few into other leaves.
_COMPARED_ROWS, _COMPARED_NEIGHBORS, _LEAST_SHARE_FOUND = 200, 10, 0.95


@dataclass(frozen=True)
class Feature:
    """One column."""

    name: str
    here: Floats  # (n_rows,) numbers, or places in `texts`; NaN where missing
    texts: list[str] | None  # of the places; None for numbers
    train: Floats | None  # (n_train,) the same for all training rows, where they are known
    scale: float | None  # the standard deviation over the training rows; None for texts and where these are not known


def names_of(X: Any, estimator: Any) -> list[str]:
    """Return the columns' names; numbers where there are none."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    names = getattr(estimator, "feature_names_in_", None)
    n = X.shape[1]
    return [str(name) for name in names] if names is not None and len(names) == n else [f"column {i}" for i in range(n)]


def feature(name: str, position: int, X: Any, X_train: Any) -> Feature:
    """Return one column of X and, where they are given, of the training rows."""
    parts = [column(X, position)] + ([] if X_train is None else [column(X_train, position)])
    numbers = [as_floats(part) for part in parts]
    if all(part is not None for part in numbers):
        here, *train = [part for part in numbers if part is not None]
        return Feature(name, here, None, train[0] if train else None, deviation(train[0]) if train else None)
    texts: dict[str, int] = {}
    here, *train = [_places(part, texts) for part in parts]
    return Feature(name, here, list(texts), train[0] if train else None, None)


def column(X: Any, position: int) -> NDArray[Any]:
    """Return one column of an array, a sparse matrix or a data frame, (n_rows,); categories as objects."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, position])
    if hasattr(X, "to_series"):
        return np.asarray(X.to_series(position).to_list(), object)
    if issparse(X):
        return np.asarray(X[:, [position]].toarray()).ravel()
    if hasattr(X, "columns"):
        return np.asarray(X[X.columns[position]])
    return np.asarray(X)[:, position]


def as_floats(values: NDArray[Any]) -> Floats | None:
    """Return numbers as floats, NaN where missing; None where a value is not a number."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    if not all(_is_missing(value) or isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return None
    return np.array([np.nan if _is_missing(value) else float(value) for value in values], np.float64)


def _places(values: NDArray[Any], texts: dict[str, int]) -> Floats:
    """Return each value's place among the texts; new texts are added."""
    shown = (None if _is_missing(value) else str(value)[:_LONGEST_TEXT] for value in values)
    return np.array([np.nan if text is None else texts.setdefault(text, len(texts)) for text in shown], np.float64)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64)) and value != value


@dataclass(frozen=True)
class Differences:
    """The features in which each row differs most from its nearest neighbours, `n_most` of them or fewer."""

    features: Integers  # (n_rows, n_most) positions of features, the largest distance first; -1 where no more differ
    distances: Floats  # (n_rows, n_most) mean distances, see `mean_distances`
    values: Floats  # (n_rows, n_most, n_neighbors) the neighbours' values: numbers, or places among the feature's texts
    counts: Integers  # (n_rows,) the number of features that differ


def differences(features: list[Feature], neighbors: Integers, n_most: int) -> Differences:
    """Compare rows with their nearest neighbours, training rows of shape (n_rows, n_neighbors)."""
    n_rows, n_neighbors = neighbors.shape
    distances = np.empty((n_rows, len(features)))
    for j, each in enumerate(features):
        assert each.train is not None, "the caller has the training rows"
        distances[:, j] = mean_distances(each.here, each.train[neighbors], each.scale)
    n_most = min(n_most, len(features))
    chosen = np.argsort(-distances, axis=1, kind="stable")[:, :n_most]
    kept = np.take_along_axis(distances, chosen, axis=1)
    values = np.full((n_rows, n_most, n_neighbors), np.nan)
    for j in np.unique(chosen):
        rows, places = np.nonzero(chosen == j)
        train = features[j].train
        assert train is not None, "as above"
        values[rows, places] = train[neighbors[rows]]
    return Differences(np.where(kept > 0, chosen, -1), kept, values, np.sum(distances > 0, axis=1))


def check_same_rows(estimator: Any, X_train: Any) -> None:
    """Raise InvalidInputError unless some of the training rows are found in the index under their own numbers."""
    indexed = estimator.source_.rows
    n_indexed = estimator.source_.index.n_rows
    places = np.unique(np.linspace(0, n_indexed - 1, _COMPARED_ROWS).astype(np.intp))
    rows = places if indexed is None else indexed[places]
    affinities, found = estimator.kneighbors(_safe_indexing(X_train, rows), min(_COMPARED_NEIGHBORS, n_indexed))
    # A row shares all leaves with itself; where as many others do, its own number need not be among those returned.
    known = (found == rows[:, None]).any(axis=1) | (affinities[:, -1] == estimator.source_.index.n_trees)
    if np.mean(known) < _LEAST_SHARE_FOUND:
        raise InvalidInputError(
            f"X_train must be the rows that the estimator was fitted on, in their order: {np.sum(~known)} of "
            f"{len(rows)} rows that were compared with the index have the leaves of other rows. Pass the X of fit (and "
            "of update, behind it)."
        )


def check_train(X_train: Any, n_features: int, n_train: int) -> None:
    """Raise InvalidInputError for training rows that do not fit."""
    shape = getattr(X_train, "shape", None)
    if shape is None or tuple(shape) != (n_train, n_features):
        raise InvalidInputError(
            f"X_train must be the rows that the estimator was fitted on, of shape ({n_train}, {n_features}), as shown "
            f"beside X; got shape {shape}."
        )


# One row must not take long: a small background, and few orders of the features.
_BACKGROUND = 30
_EVALUATIONS = 64
_MOST_FEATURES = 8


def widths(estimator: Any, X: Any, rows: Integers, std: Floats, seconds: float) -> dict[str, Any]:
    """Return what each feature does to σ, for as many of the explorer's rows as there is time for.

    Rows are compared with a sample of all rows of the report. Where this cannot be computed, the reason is returned.

    Shapes: rows (n_shown,); std (n_shown,).
    """
    begin = monotonic()
    if seconds <= 0:
        return {"reason": "The report was written without it (width_seconds=0)."}
    try:
        least = 2 * int(X.shape[1]) + 1
        options: dict[str, Any] = {"n_background": _BACKGROUND, "n_evaluations": max(_EVALUATIONS, least)}
        background = X if _num_samples(X) > len(rows) else None  # so that too few rows are an error
        usable = np.flatnonzero(np.isfinite(std))
        widest = usable[np.argsort(-std[usable], kind="stable")]
        parts = Attributor(estimator, _safe_indexing(X, rows[widest]), background, **options)
        found = []
        with Progress("explaining widths", parts.n_rows, enabled=False) as progress:
            for each in parts:
                found.append(each)
                progress.advance(1)
                if monotonic() - begin > seconds:
                    break
    except (MissingDependencyError, InvalidInputError) as error:
        return {"reason": str(error)}
    values = np.stack([each.values for each in found])
    largest = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :_MOST_FEATURES]
    kept = np.take_along_axis(values, largest, axis=1)
    return {
        "names": parts.names,
        "compared": parts.n_background,
        "place": pack(widest[: len(found)], "int32"),
        "base": pack(np.exp([each.base for each in found]), "float64"),
        "feature": pack(largest, "int32"),
        "value": pack(kept, "float32"),
        "rest": pack(values.sum(axis=1) - kept.sum(axis=1), "float32"),
    }
