"""Conformalized quantile regression (Romano, Patterson and Candès, 2019): LightGBM's quantiles, corrected by MAPIE."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split
from benchmarks.study.methods.boosters import LightGBM

COVERAGE = 0.9
LEVELS = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2, 0.5)  # MAPIE's order


class CQR(Method):
    """Three quantile models and a split conformal correction.

    The correction is for the models that have not seen the validation rows, so these are kept, not refitted. The normal
    distribution of the tables has the median as mean and the standard deviation that gives it a 90 % interval of the
    same width.
    """

    name, title, package = "cqr", "CQR (LightGBM)", "mapie"

    def fit(self, split: Split) -> Fitted:
        return FittedCQR(split)


class FittedCQR(Fitted):
    """The interval is the method's own."""

    def __init__(self, split: Split) -> None:
        from mapie.regression import ConformalizedQuantileRegressor

        models, trees = [], {}
        for level in LEVELS:
            chosen, model = _quantile(level)().tune_part(split)
            models.append(model)
            trees[f"trees_{level:.2f}"] = chosen["trees"]
        self._tiny = split.tiny
        self._model = ConformalizedQuantileRegressor(models, confidence_level=COVERAGE, prefit=True)
        self._model.conformalize(split.X_val, split.y_val)
        self.held_out = dict.fromkeys(SCORINGS, self.predict(split.X_val, SCORINGS[0]))
        self.parameters = dict.fromkeys(SCORINGS, trees)

    def predict(self, X: Floats, scoring: str) -> Moments:
        median, interval = self._read(X)
        deviation = (interval[:, 1] - interval[:, 0]) / (2 * norm.ppf(LEVELS[1]))
        return Moments(median, np.maximum(np.square(deviation), self._tiny))

    def quantiles(self, X: Floats, levels: Floats) -> Floats | None:
        """Return those of two halves of normal distributions that meet at the median and end at the interval."""
        median, interval = self._read(X)
        lower = np.minimum(interval[:, 0], median)  # quantile models may cross
        upper = np.maximum(interval[:, 1], median)
        z = norm.ppf(levels) / norm.ppf(LEVELS[1])
        side = np.where(z < 0, (median - lower)[:, None], (upper - median)[:, None])
        return median[:, None] + side * z

    def interval(self, X: Floats, coverage: float) -> Floats | None:
        return self._read(X)[1] if coverage == COVERAGE else None

    def _read(self, X: Floats) -> tuple[Floats, Floats]:
        median, interval = self._model.predict_interval(X, symmetric_correction=True)
        return np.asarray(median, np.float64), np.asarray(interval, np.float64)[:, :, 0]


def _quantile(level: float) -> type[LightGBM]:
    class Quantile(LightGBM):
        options: ClassVar[dict[str, Any]] = {"objective": "quantile", "alpha": level}

        def loss(self, y: Floats, predicted: Floats) -> float:
            return float(mean_pinball_loss(y, predicted, alpha=level))

    return Quantile
