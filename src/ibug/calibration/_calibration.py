"""How held-out rows correct predicted distributions: their variance first, then their coverage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._typing import Rows
from ibug._warnings import warn_user
from ibug.calibration._conformal import ConformalCalibrator, conformal_calibrator
from ibug.calibration._variance import VarianceCalibrator
from ibug.distributions import Distribution, LocationScale
from ibug.exceptions import InvalidInputError, NotCalibratedWarning
from ibug.metrics import Scoring

# From twice this number of rows on, they are divided between tuning and conformal calibration; below, a guarantee would
# say little.
_LEAST_CONFORMAL_ROWS = 100


@dataclass(frozen=True, eq=False)
class Calibration:
    """The calibration of a fitted regressor: variance ← γ · variance + δ, then conformal calibration.

    Parameters
    ----------
    gamma, delta
        Factor and summand of the variance.
    conformal
        The fitted conformal calibrator, if there is one.
    """

    gamma: float = 1.0
    delta: float = 0.0
    conformal: ConformalCalibrator | None = None

    @classmethod
    def learn(
        cls,
        predict: Callable[[Any], Distribution],
        validation: Rows | None,
        rng: np.random.RandomState,
        *,
        scoring: str | Scoring,
        calibrate: bool | str,
        conformal: Any,
    ) -> Calibration:
        """Calibrate the variance on validation rows, and the coverage on other ones if there are enough."""
        learned = cls()
        if validation is None:
            return learned
        X, y = validation
        n = np.arange(len(y))
        tuned_on, held_out = (n, n) if conformal is None else halves(len(y), rng)
        if calibrate:
            distribution = predict(_safe_indexing(X, tuned_on))
            fitted = variance_calibrator(scoring, calibrate)
            fitted.fit(distribution.mean(), distribution.var(), y[tuned_on])
            learned = cls(fitted.gamma_, fitted.delta_)
        if conformal is not None:
            distribution = learned.apply(predict(_safe_indexing(X, held_out)))
            learned = cls(learned.gamma, learned.delta, conformal_calibrator(conformal).fit(distribution, y[held_out]))
        return learned

    def apply(self, distribution: Distribution) -> Distribution:
        """Return the calibrated distributions."""
        if (self.gamma, self.delta) != (1.0, 0.0) and isinstance(distribution, LocationScale):
            scale = np.sqrt(self.gamma * distribution.var() + self.delta)
            distribution = type(distribution).from_moments(distribution.mean(), scale)
        return distribution if self.conformal is None else self.conformal.transform(distribution)


def variance_calibrator(scoring: str | Scoring, calibrate: bool | str, usual: str = "grid") -> VarianceCalibrator:
    """Return the calibrator of the variance that a regressor's parameters ask for."""
    return VarianceCalibrator(scoring=scoring, method=calibrate if isinstance(calibrate, str) else usual)


def check_without_validation(calibrate: bool | str, conformal: Any) -> None:
    """Raise or warn where there is something to calibrate, but no row that the trained model has not seen."""
    if conformal is not None:
        raise InvalidInputError(
            f"conformal={conformal!r} needs rows that the trained model has not seen: pass X_val and y_val."
        )
    if calibrate:
        warn_user(
            "There are no validation rows, so the variance is not calibrated. Pass X_val and y_val to fit, or "
            "set calibrate=False to say that this is meant.",
            NotCalibratedWarning,
        )


def rows_for_conformal(n_rows: int) -> int:
    """Return the number of validation rows that conformal calibration gets: half of them from 200 on, else all."""
    return n_rows if n_rows < 2 * _LEAST_CONFORMAL_ROWS else n_rows - n_rows // 2


def halves(n_rows: int, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to tune on and those for conformal calibration; from 200 rows on, no row is in both."""
    if rows_for_conformal(n_rows) == n_rows:
        return np.arange(n_rows), np.arange(n_rows)
    half = rng.permutation(n_rows) < n_rows // 2
    return np.flatnonzero(half), np.flatnonzero(~half)
