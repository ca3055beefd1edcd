"""How held-out rows put predicted distributions right: their variance first, then their coverage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibug._typing import Rows
from ibug.calibration import ConformalCalibrator, VarianceCalibrator, conformal_calibrator
from ibug.distributions import Distribution, LocationScale
from ibug.exceptions import InvalidInputError, NotCalibratedWarning
from ibug.metrics import Scoring
from ibug.training import divide


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
        validation: Rows,
        rng: np.random.RandomState,
        *,
        scoring: str | Scoring,
        calibrate: bool | str,
        conformal: Any,
    ) -> Calibration:
        """Calibrate the variance on validation rows, and the coverage on other ones if there are enough."""
        tuned_on, held_out = (validation, validation) if conformal is None else divide(validation, rng)
        learned = cls()
        if calibrate:
            X, y = tuned_on
            distribution = predict(X)
            method = calibrate if isinstance(calibrate, str) else "grid"
            fitted = VarianceCalibrator(scoring=scoring, method=method).fit(distribution.mean(), distribution.var(), y)
            learned = cls(fitted.gamma_, fitted.delta_)
        if conformal is not None:
            X, y = held_out
            fitted = conformal_calibrator(conformal).fit(learned.apply(predict(X)), y)
            learned = cls(learned.gamma, learned.delta, fitted)
        return learned

    def apply(self, distribution: Distribution) -> Distribution:
        """Return the calibrated distributions."""
        if (self.gamma, self.delta) != (1.0, 0.0) and isinstance(distribution, LocationScale):
            scale = np.sqrt(self.gamma * distribution.var() + self.delta)
            distribution = type(distribution).from_moments(distribution.mean(), scale)
        return distribution if self.conformal is None else self.conformal.transform(distribution)


def require_validation(validation: Rows | None, calibrate: bool | str, conformal: Any) -> None:
    """Raise or warn where there is something to calibrate, but no row that what is trained already has not seen."""
    if validation is not None:
        return
    if conformal is not None:
        raise InvalidInputError(
            f"conformal={conformal!r} needs rows that the trained model has not seen: pass X_val and y_val."
        )
    if calibrate:
        warnings.warn(
            "There are no validation rows, so the variance is not calibrated. Pass X_val and y_val to fit, or "
            "set calibrate=False to say that this is meant.",
            NotCalibratedWarning,
            stacklevel=3,
        )
