"""What IBUGRegressor refuses, and why."""

from __future__ import annotations

import warnings
from typing import Any

from ibug._inputs import check_count, check_flags, check_fraction
from ibug.affinity import check_sampling, sample_size
from ibug.calibration import check_calibrate, conformal_calibrator
from ibug.exceptions import InvalidInputError, NotCalibratedWarning
from ibug.learning import NeighborLearner, Rows
from ibug.metrics import resolve_scoring
from ibug.posterior import LOCATIONS, prepare
from ibug.selection import SPREADS
from ibug.targets import TargetFacts, check_support


class InputChecks(NeighborLearner):
    """The part of IBUGRegressor that looks at parameters and data before anything is trained."""

    # Parameters, set by the constructor of IBUGRegressor.
    cv: Any
    refit: bool
    prefit: bool
    validation_fraction: Any

    @property
    def _needs_validation(self) -> bool:
        chosen = self._chooses_family or self.k == "tune"
        return bool(chosen or self.calibrate or self.conformal is not None)

    @property
    def _chooses_family(self) -> bool:
        return isinstance(self.distribution, (list, tuple)) or self.distribution == "tune"

    def _check_options(self) -> None:
        resolve_scoring(self.scoring)
        check_flags(refit=self.refit, prefit=self.prefit)
        check_calibrate(self.calibrate)
        if self.spread not in SPREADS:
            raise InvalidInputError(f"spread must be one of {SPREADS}; got {self.spread!r}.")
        conformal_calibrator(self.conformal)
        check_fraction(self.validation_fraction)
        check_sampling(self.tree_fraction, self.tree_order, self.row_fraction)

    def _check_k(self, n_rows: int) -> None:
        """Check k against the rows that will be in the index at the end; one neighbour alone has no variance."""
        if self.k != "tune":
            most = sample_size(n_rows, self.row_fraction, "row_fraction")
            check_count(self.k, min(2, most), most, 'k, unless it is "tune",')

    def _check_posterior(self, targets: TargetFacts) -> None:
        if self.location not in LOCATIONS:
            raise InvalidInputError(f"location must be one of {LOCATIONS}; got {self.location!r}.")
        prepare(self.distribution, targets, self.location, check_support(self.support, targets))

    def _check_prefit(self, fit_params: dict[str, Any], validation: Rows | None) -> None:
        """Check what a trained model needs beside it: rows that it has not seen, or the permission to train clones."""
        if self.cv is not None:
            return
        if fit_params:
            raise InvalidInputError(
                f"With prefit=True the estimator is not trained, so {sorted(fit_params)} would have no effect: "
                "leave them out, or set prefit=False."
            )
        if validation is not None:
            return
        if self.spread == "residuals":
            raise InvalidInputError(
                'spread="residuals" needs errors that the trained model made on rows it has not seen; on its own '
                "training rows they are too small. Either pass such rows, fit(X_train, y_train, X_val=X_val, "
                "y_val=y_val), or let IBUGRegressor(model, prefit=True, cv=5) train five clones for residuals of the "
                'training rows, or choose spread="targets".'
            )
        if self.k == "tune":
            raise InvalidInputError(
                'k="tune" needs rows that the trained model has not seen. Either pass them, '
                "fit(X_train, y_train, X_val=X_val, y_val=y_val), or fix the number of neighbours, "
                "IBUGRegressor(model, prefit=True, k=100), or let cv=5 train five clones to tune on."
            )
        if self._chooses_family:
            raise InvalidInputError(
                f"distribution={self.distribution!r} needs rows that the trained model has not seen: pass X_val and "
                "y_val, or name one family."
            )
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
