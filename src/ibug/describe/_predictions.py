"""Predictions of rows and the neighbours behind them, each row searched once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats, Integers

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

_NEIGHBORS_AT_A_TIME = 2**22  # about 50 MB


@dataclass(frozen=True)
class Neighbors:
    """The training rows behind predictions.

    Attributes
    ----------
    familiarity : ndarray of shape (n_rows,)
        What ``affinity_score`` says of all rows.
    affinities, indices : ndarray of shape (n_kept, k)
        What ``kneighbors`` says of the rows whose neighbours are kept.
    """

    familiarity: Floats
    affinities: NDArray[np.int32]
    indices: Integers


@dataclass(frozen=True)
class Predictions:
    """Predicted distributions of rows, with the point predictions.

    They have the methods ``predict_dist`` and ``predict`` of the estimator that made them, so that scores of the same
    rows need no second search.

    Parameters
    ----------
    distribution : batched distribution of n_rows rows
        What ``predict_dist`` says.
    points : ndarray of shape (n_rows,)
        What ``predict`` says.
    training_targets_ : ndarray of shape (n_train,) or None
        The targets that the estimator was fitted on, where it keeps them.
    """

    distribution: Any
    points: Floats
    training_targets_: Floats | None = None

    @classmethod
    def of(cls, estimator: Any, X: Any) -> Self:
        """Predict rows.

        Parameters
        ----------
        estimator : fitted estimator with ``predict_dist`` and ``predict``
            The estimator.
        X : array-like or data frame of shape (n_rows, n_features)
            The rows.
        """
        return cls(estimator.predict_dist(X), _points(estimator, X), getattr(estimator, "training_targets_", None))

    @classmethod
    def with_neighbors(
        cls, estimator: Any, X: Any, n_neighbors: int, kept: Integers | None = None
    ) -> tuple[Self, Neighbors]:
        """Predict rows and find their neighbours by the same search, in chunks that bound the memory.

        Parameters
        ----------
        estimator : IBUGRegressor
            Fitted.
        X : array-like or data frame of shape (n_rows, n_features)
            The rows.
        n_neighbors : int
            The number of neighbours to find; at least ``k_`` are found.
        kept : ndarray of int, ascending, optional
            The rows whose neighbours are kept; all by default.
        """
        n_rows, k = _num_samples(X), max(n_neighbors, estimator.k_)
        kept = np.arange(n_rows) if kept is None else kept
        size = max(1, _NEIGHBORS_AT_A_TIME // k)
        distributions, familiarity = [], np.empty(n_rows)
        affinities, indices = np.empty((len(kept), k), np.int32), np.empty((len(kept), k), np.int64)
        for start in range(0, n_rows, size):
            chunk = X if n_rows <= size else _safe_indexing(X, slice(start, start + size))
            distribution, near, found = estimator.predict_with_neighbors(chunk, k)
            distributions.append(distribution)
            familiarity[start : start + size] = near[:, : estimator.k_].mean(axis=1) / estimator.index_.n_trees
            first, last = np.searchsorted(kept, [start, start + size])
            inside = kept[first:last] - start
            affinities[first:last], indices[first:last] = near[inside], found[inside]
        joined = type(distributions[0]).concatenate(distributions)
        predictions = cls(joined, _points(estimator, X), estimator.training_targets_)
        return predictions, Neighbors(familiarity, affinities, indices)

    def before_calibration(self, estimator: Any, X: Any) -> Self | None:
        """Return the same rows as predicted without calibration; None where the estimator has no such form.

        Point predictions are the same ones, and are not computed again.

        Parameters
        ----------
        estimator : fitted estimator
            The estimator that made these predictions.
        X : array-like or data frame of shape (n_rows, n_features)
            The rows.
        """
        if not hasattr(estimator, "uncalibrated"):
            return None
        return replace(self, distribution=estimator.uncalibrated().predict_dist(X))

    def predict_dist(self, X: Any) -> Any:
        """Return the distributions of the rows that were predicted."""
        return self.distribution

    def predict(self, X: Any) -> Floats:
        """Return the point predictions of the rows that were predicted, (n_rows,)."""
        return self.points


def _points(estimator: Any, X: Any) -> Floats:
    return np.asarray(estimator.predict(X), np.float64)
