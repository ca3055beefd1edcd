"""The features of rows and of their neighbours, as numbers and texts, and those in which they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Integers
from ibug.describe import deviation, mean_distances
from ibug.exceptions import InvalidInputError

_LONGEST_TEXT = 200
# The number of training rows that are looked for in the index, among this number of nearest rows, and the least share
# that must be found: rounding to single precision may move a few into other leaves.
_COMPARED_ROWS, _COMPARED_NEIGHBORS, _LEAST_SHARE_FOUND = 200, 10, 0.95


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes
    ----------
    name
        Its name.
    here : ndarray of shape (n_rows,)
        Numbers, or places in `texts`; NaN where missing.
    texts
        The texts of the places; None for numbers.
    train : ndarray of shape (n_train,) or None
        The same for all training rows, where they are known.
    scale
        The standard deviation over the training rows; None for texts and where these rows are not known.
    """

    name: str
    here: Floats
    texts: list[str] | None
    train: Floats | None
    scale: float | None


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
    """Return numbers as floats, NaN where missing; None where a value is no number."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    if not all(_is_missing(value) or isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return None
    return np.array([np.nan if _is_missing(value) else float(value) for value in values], np.float64)


def _places(values: NDArray[Any], texts: dict[str, int]) -> Floats:
    """Return each value's place among the texts; new texts are added."""
    return np.array(
        [
            np.nan if _is_missing(value) else texts.setdefault(str(value)[:_LONGEST_TEXT], len(texts))
            for value in values
        ],
        np.float64,
    )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64)) and value != value


@dataclass(frozen=True)
class Differences:
    """The features in which each row differs most from its nearest neighbours, `n_most` of them or fewer.

    Attributes
    ----------
    features : ndarray of shape (n_rows, n_most)
        Positions of features, those of the largest distance first; -1 where no more differ.
    distances : ndarray of shape (n_rows, n_most)
        Mean distances, see :func:`ibug.describe.mean_distances`.
    values : ndarray of shape (n_rows, n_most, n_neighbors)
        The neighbours' values: numbers, or places among the feature's texts.
    counts : ndarray of shape (n_rows,)
        The number of features that differ.
    """

    features: Integers
    distances: Floats
    values: Floats
    counts: Integers


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
    n_indexed = estimator.index_.n_rows
    places = np.unique(np.linspace(0, n_indexed - 1, _COMPARED_ROWS).astype(np.intp))
    rows = places if indexed is None else indexed[places]
    affinities, found = estimator.kneighbors(_safe_indexing(X_train, rows), min(_COMPARED_NEIGHBORS, n_indexed))
    # A row shares all leaves with itself; where as many others do, its own number need not be among those returned.
    known = (found == rows[:, None]).any(axis=1) | (affinities[:, -1] == estimator.index_.n_trees)
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
