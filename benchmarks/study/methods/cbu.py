"""CatBoost with uncertainty (Malinin, Prokhorenkova and Ustimenko, ICLR 2021), by ibug's CBURegressor."""

from __future__ import annotations

from typing import Any

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split, moments_of
from benchmarks.study.methods.boosters import UncertainCatBoost
from ibug import CBURegressor


class CBU(Method):
    """CBU with virtual ensembles."""

    name, title, package = "cbu", "CBU", "catboost"

    def fit(self, split: Split) -> Fitted:
        return FittedCBU(UncertainCatBoost().tune(split), split)


class FittedCBU(Fitted):
    """The same for both scores: only the calibration differs."""

    def __init__(self, tuned: Any, split: Split) -> None:
        settings = {"prefit": True, "calibrate": False, "n_jobs": 1}
        part = CBURegressor(tuned.part, **settings).fit(split.X_part, split.y_part)
        self._final = CBURegressor(tuned.full, **settings).fit(split.X_train, split.y_train)
        self.held_out = dict.fromkeys(SCORINGS, moments_of(part.predict_dist(split.X_val)))
        self.parameters = dict.fromkeys(SCORINGS, tuned.parameters)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return moments_of(self._final.predict_dist(X))
