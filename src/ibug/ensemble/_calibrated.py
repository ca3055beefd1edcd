"""What the regressors of this folder share: laws whose variance, and then coverage, held-out rows have put right."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ibug._inputs import divide
from ibug._prediction import ProbabilisticRegressorMixin, Rows
from ibug.calibration import VarianceCalibrator, conformal_calibrator
from ibug.distributions import Distribution, LocationScale
from ibug.exceptions import InvalidInputError, NotCalibratedWarning


class CalibratedRegressor(ProbabilisticRegressorMixin):
    """A regressor that says what its laws are before calibration; the calibration is here."""

    # Parameters.
    scoring: Any
    calibrate: bool | str
    conformal: Any

    # Learned.
    gamma_: float
    delta_: float
    conformal_: Any

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted laws: a batch with ``mean var std pdf logpdf cdf ppf interval rvs crps``."""
        law = self._rescaled(self._uncalibrated(self._check_rows(X)))
        return law if self.conformal_ is None else self.conformal_.transform(law)

    def _uncalibrated(self, X: Any) -> Distribution:
        """Return the laws of checked rows before any calibration."""
        raise NotImplementedError(f"{type(self).__name__} has to say what it predicts.")

    @property
    def _needs_validation(self) -> bool:
        return bool(self.calibrate or self.conformal is not None)

    def _rescaled(self, law: Distribution) -> Distribution:
        if (self.gamma_, self.delta_) == (1.0, 0.0) or not isinstance(law, LocationScale):
            return law
        return type(law).from_moments(law.mean(), np.sqrt(self.gamma_ * law.var() + self.delta_))

    def _learn_calibration(self, validation: Rows | None, random_state: np.random.RandomState) -> None:
        """Calibrate the variance, then the coverage, on other rows if there are enough."""
        self.gamma_, self.delta_, self.conformal_ = 1.0, 0.0, None
        if validation is None or not self._needs_validation:
            return
        tuned_on = held_out = validation
        if self.conformal is not None:
            tuned_on, held_out = divide(validation, random_state)
        if self.calibrate:
            X_val, y_val = tuned_on
            law = self._uncalibrated(X_val)
            method = self.calibrate if isinstance(self.calibrate, str) else "grid"
            calibrator = VarianceCalibrator(scoring=self.scoring, method=method).fit(law.mean(), law.var(), y_val)
            self.gamma_, self.delta_ = calibrator.gamma_, calibrator.delta_
        if self.conformal is not None:
            X_held_out, y_held_out = held_out
            law = self._rescaled(self._uncalibrated(X_held_out))
            self.conformal_ = conformal_calibrator(self.conformal).fit(law, y_held_out)

    def _require_validation(self, validation: Rows | None) -> None:
        """Raise or warn where there is something to calibrate, but no row that what is trained already has not seen."""
        if validation is not None:
            return
        if self.conformal is not None:
            raise InvalidInputError(
                f"conformal={self.conformal!r} needs rows that the trained model has not seen: pass X_val and y_val."
            )
        if self.calibrate:
            warnings.warn(
                "There are no validation rows, so the variance is not calibrated. Pass X_val and y_val to fit, or "
                "set calibrate=False to say that this is meant.",
                NotCalibratedWarning,
                stacklevel=3,
            )
