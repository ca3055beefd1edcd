"""Other packages, with the tuning that the study gives them, and the distributions that they predict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.accuracy.fold import Floats, Fold
from benchmarks.study import methods as study
from benchmarks.study.task import NotRun
from ibug import VarianceCalibrator
from ibug.distributions import Distribution, Empirical, Normal

#: Quantiles that a distribution is made of: `Empirical` takes k values as its quantiles at 1/(k + 1), …, k/(k + 1).
LEVELS = np.arange(1, 100) / 100
#: How a method is tuned, where that is not the study's usual way.
GRIDS = {"quantile-forest": "search"}


class Peer:
    """A method of the study, fitted on the rows of a fold.

    Where the method predicts quantiles, its distribution is made of these: it has no density, and so no NLL. Otherwise
    it is a normal distribution, whose variance is calibrated on validation rows as in the study.
    """

    def __init__(self, name: str, fold: Fold) -> None:
        method = study.METHODS[name]()
        if not study.importable(method.package):
            raise NotRun(f"{method.package} is not installed; nox's session `study` has it")
        self._split, self._X_test = fold.encoded
        self._fitted = method.fit(replace(self._split, grid=GRIDS.get(name, "quick")))

    def predict_dist(self, scoring: str) -> Distribution:
        """Return the distributions of the test rows."""
        quantiles = self._fitted.quantiles(self._X_test, LEVELS)
        if quantiles is not None:
            return Empirical(quantiles)
        mean, variance = self._fitted.predict(self._X_test, scoring)
        calibrator = VarianceCalibrator(scoring=scoring).fit(*self._fitted.held_out[scoring], self._split.y_val)
        return Normal(mean, np.sqrt(calibrator.transform(variance)))

    def predict(self, scoring: str) -> Floats:
        """Return the point predictions of the test rows, (n_rows,)."""
        return self._fitted.predict(self._X_test, scoring).mean

    def about(self, scoring: str) -> dict[str, Any]:
        """Return what was chosen."""
        return self._fitted.parameters[scoring]
