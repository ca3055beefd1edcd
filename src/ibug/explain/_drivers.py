"""Over a whole dataset: which features drive the spread, beside which drive the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._progress import Progress
from ibug._typing import Floats
from ibug.explain._width import Attributor


@dataclass(frozen=True, eq=False)
class Drivers:
    """How much each feature moves the spread, and how much the prediction.

    Attributes
    ----------
    names : list of str
        The features.
    spread, prediction : ndarray of shape (n_features,)
        Mean absolute Shapley values: of log σ, and of the prediction in units of the target.
    """

    names: list[str]
    spread: Floats
    prediction: Floats

    @property
    def spread_share(self) -> Floats:
        """The shares of the features in all that moves the spread, (n_features,)."""
        return _shares(self.spread)

    @property
    def prediction_share(self) -> Floats:
        """The shares of the features in all that moves the prediction, (n_features,)."""
        return _shares(self.prediction)


def drivers(estimator: Any, X: Any, background: Any = None, **options: Any) -> Drivers:
    """Return which features drive the spread over the rows of X, beside which drive the prediction.

    Parameters
    ----------
    estimator
        A fitted probabilistic regressor of ibug.
    X : array-like or data frame of shape (n_rows, n_features)
        Rows of the dataset; some hundred are enough.
    background : array-like or data frame, optional
        As in `explain_width`.
    **options
        ``choose``, ``n_background``, ``n_evaluations`` and ``random_state`` of `explain_width`.
    """
    both = [Attributor(estimator, X, background, of=of, **options) for of in ("log_std", "prediction")]
    sums = np.zeros((2, len(both[0].names)))
    verbose = bool(getattr(estimator, "verbose", 0))
    with Progress("explaining spread and prediction", 2 * both[0].n_rows, enabled=verbose) as progress:
        for i, parts in enumerate(both):
            for part in parts:
                sums[i] += np.abs(part.values)
                progress.advance(1)
    spread, prediction = sums / both[0].n_rows
    return Drivers(both[0].names, spread, prediction)


def _shares(amounts: Floats) -> Floats:
    total = amounts.sum()
    return amounts / total if total > 0 else np.zeros_like(amounts)
