"""The paper's calibration of the variance (section 3.2, Eq. 2; grid in its section B.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring, resolve_scoring

Floats = NDArray[np.float64]

GRID: tuple[float, ...] = tuple(m * 10.0**e for e in range(-8, 4) for m in (1.0, 2.5, 5.0))


class VarianceCalibrator(BaseEstimator):
    """Calibrate predicted variances on held-out data: σ² becomes γσ² + δ.

    Either γ is tuned with δ = 0, or δ with γ = 1, over the grid of the paper, whichever scores better. The identity is
    a candidate, so that calibration never scores worse on the data it is fitted on. It works for the means and
    variances of any method, not only for those of ``IBUGRegressor``.

    Parameters
    ----------
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        What the calibrated predictions shall be best in; lower is better.

    Attributes
    ----------
    gamma_, delta_ : float
        The chosen factor and summand.
    scores_ : dict of ndarray
        The candidates as columns ``gamma``, ``delta`` and ``score``, ready for a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug import VarianceCalibrator
    >>> y = np.random.default_rng(0).normal(scale=2.0, size=1000)
    >>> calibrator = VarianceCalibrator().fit(np.zeros(1000), np.ones(1000), y)  # says 1, the truth is 4
    >>> calibrator.transform(np.ones(1))
    array([3.5])
    """

    def __init__(self, *, scoring: str | Scoring = "crps") -> None:
        self.scoring = scoring

    def fit(self, mean: ArrayLike, variance: ArrayLike, y: ArrayLike) -> VarianceCalibrator:
        """Choose γ or δ.

        Parameters
        ----------
        mean, variance, y : array-like of shape (n,)
            Predicted means and variances (above zero) and the observed values of held-out rows.
        """
        score = resolve_scoring(self.scoring)
        mean, variance, y = _columns(mean=mean, variance=variance, y=y)
        if np.any(variance <= 0):
            raise InvalidInputError(
                f"Variances must be above zero; the smallest is {variance.min():g}. Set a floor before calibrating."
            )
        # The identity first: among equal scores the first candidate wins.
        candidates = [(1.0, 0.0), *((gamma, 0.0) for gamma in GRID), *((1.0, delta) for delta in GRID)]
        scores = [_score(score, y, mean, gamma * variance + delta) for gamma, delta in candidates]
        self.gamma_, self.delta_ = candidates[int(np.argmin(scores))]
        gammas, deltas = zip(*candidates, strict=True)
        self.scores_ = {"gamma": np.array(gammas), "delta": np.array(deltas), "score": np.array(scores)}
        return self

    def transform(self, variance: ArrayLike) -> Floats:
        """Return the calibrated variances γσ² + δ, of the same shape."""
        check_is_fitted(self)
        return self.gamma_ * np.asarray(variance, np.float64) + self.delta_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "gamma_")


def _score(score: Scoring, y: Floats, mean: Floats, variance: Floats) -> float:
    scale = np.sqrt(variance)
    if not np.all((scale > 0) & np.isfinite(scale)):  # a tiny factor can underflow
        return np.inf
    value = score(y, Normal(mean, scale))
    return value if not np.isnan(value) else np.inf


def _columns(**arrays: Any) -> list[Floats]:
    columns = [np.asarray(array, np.float64) for array in arrays.values()]
    shapes = {name: column.shape for name, column in zip(arrays, columns, strict=True)}
    if len(set(shapes.values())) != 1 or columns[0].ndim != 1 or not columns[0].size:
        raise InvalidInputError(f"mean, variance and y must have the same shape (n,), n of at least 1; got {shapes}.")
    for name, column in zip(arrays, columns, strict=True):
        if not np.all(np.isfinite(column)):
            raise InvalidInputError(f"{name} contains NaN or infinity.")
    return columns
