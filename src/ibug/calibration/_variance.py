"""The paper's calibration of the variance (section 3.2, Eq. 2; grid in its section B.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ibug._read_only import keeps_read_only
from ibug._typing import Floats
from ibug._validation import check_weights
from ibug._weights import weighted_mean
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring, resolve_scoring

Candidate = tuple[float, float]  # a factor and a summand

METHODS = ("continuous", "grid")
GRID: tuple[float, ...] = tuple(m * 10.0**e for e in range(-8, 4) for m in (1.0, 2.5, 5.0))
GRID_CANDIDATES: list[Candidate] = [*((gamma, 0.0) for gamma in GRID), *((1.0, delta) for delta in GRID)]

# Where the continuous search starts: the best pair of a factor, relative to the one that gives the variances the size
# of the squared errors, and a summand in units of the mean squared error.
_START_FACTORS = (0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 3.0, 10.0)
_START_SUMMANDS = (1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
_LARGEST_LOG = 60.0


@keeps_read_only
class VarianceCalibrator(BaseEstimator):
    """Calibrate predicted variances on held-out data: σ² becomes γσ² + δ.

    The identity is a candidate, so that calibration never scores worse on the data it is fitted on. It works for the
    means and variances of any method, not only for those of ``IBUGRegressor``.

    Parameters
    ----------
    scoring : {"crps", "nll"} or function (y, distribution) -> float, default="crps"
        What the calibrated predictions shall be best in; lower is better.
    method : {"grid", "continuous"}, default="grid"
        ``"grid"``: either γ is tuned with δ = 0, or δ with γ = 1, over the grid of the paper, whichever scores better.
        The grid for δ is absolute, so the choice depends on the unit of the target. ``"continuous"``: the best γ and δ
        together, at least zero, found by a search that does not depend on the unit.

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
    >>> calibrator = VarianceCalibrator().fit(np.zeros(1000), np.ones(1000), y)  # σ² is said to be 1, and is 4
    >>> calibrator.transform(np.ones(1))
    array([3.5])
    >>> VarianceCalibrator(method="continuous").fit(np.zeros(1000), np.ones(1000), y).transform(np.ones(1)).round(2)
    array([3.75])
    """

    def __init__(self, *, scoring: str | Scoring = "crps", method: str = "grid") -> None:
        self.scoring = scoring
        self.method = method

    def fit(
        self, mean: ArrayLike, variance: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> VarianceCalibrator:
        """Choose γ and δ.

        Parameters
        ----------
        mean, variance, y : array-like of shape (n,)
            Predicted means and variances (above zero) and the observed values of held-out rows.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        """
        resolve_scoring(self.scoring)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise InvalidInputError(f"method must be one of {[*METHODS]}; got {self.method!r}.")
        mean, variance, y = _columns(mean=mean, variance=variance, y=y)
        weights = None if sample_weight is None else check_weights(sample_weight, len(y))
        score = resolve_scoring(self.scoring, weights)
        if np.any(variance <= 0):
            raise InvalidInputError(
                f"Variances must be above zero; the smallest is {variance.min():g}. Set a floor before calibrating."
            )

        def scored(gamma: float, delta: float) -> float:
            return _score(score, y, mean, gamma * variance + delta)

        on_grid = self.method == "grid"
        found = GRID_CANDIDATES if on_grid else continuous_candidates(scored, variance, y - mean, weights)
        candidates = [(1.0, 0.0), *found]  # the identity first: among equal scores the first candidate wins
        scores = [scored(*candidate) for candidate in candidates]
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


def continuous_candidates(
    scored: Callable[[float, float], float], variance: Floats, error: Floats, weights: Floats | None
) -> list[Candidate]:
    """Return the best γ and δ together, and the best γ alone.

    The search is over log γ and log δ, relative to the size of the errors, so that another unit of the target gives
    the same calibration in that unit.
    """
    typical = float(weighted_mean(variance, weights))
    size = float(weighted_mean(np.square(error), weights)) or typical
    factor = size / typical

    def pair(logs: Floats) -> Candidate:
        gamma, delta = np.exp(np.clip(logs, -_LARGEST_LOG, _LARGEST_LOG))
        return factor * float(gamma), size * float(delta)

    def alone(log: Floats) -> Candidate:
        return pair(np.append(log, -np.inf))[0], 0.0

    starts = [np.log([a, b]) for a in _START_FACTORS for b in _START_SUMMANDS]
    together = _search(lambda logs: scored(*pair(logs)), starts)
    only_factor = _search(lambda log: scored(*alone(log)), [np.log([a]) for a in _START_FACTORS])
    return [alone(only_factor), pair(together)]


def _search(function: Callable[[Floats], float], starts: list[Floats]) -> Floats:
    """Return where the function is lowest, from the best start on, without derivatives: the score may be anyone's."""
    best = starts[int(np.argmin([function(start) for start in starts]))]
    lowest = function(best)
    if not np.isfinite(lowest):
        return best
    options = {"xatol": 1e-4, "fatol": 1e-9 * abs(lowest), "maxiter": 400}
    return np.asarray(minimize(function, best, method="Nelder-Mead", options=options).x)


def check_calibrate(calibrate: Any) -> None:
    """Raise InvalidInputError for what a regressor's parameter `calibrate` cannot be."""
    known = calibrate in METHODS if isinstance(calibrate, str) else isinstance(calibrate, (bool, np.bool_))
    if not known:
        raise InvalidInputError(f"calibrate must be True or False, or one of {[*METHODS]}; got {calibrate!r}.")


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
