"""IBUG as in the paper: the spread of the neighbours' targets, a normal distribution around the prediction."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split, moments_of
from benchmarks.study.methods.boosters import Booster, CatBoost, ExactXGBoost, HistGradientBoosting, LightGBM, XGBoost
from ibug import IBUGRegressor


class IBUG(Method):
    """IBUG on a booster."""

    booster: ClassVar[type[Booster]]

    def fit(self, split: Split) -> Fitted:
        return FittedIBUG(self.booster().tune(split), split)


class FittedIBUG(Fitted):
    """k and the least variance ρ are chosen on validation rows, and kept for the model that is trained on all rows."""

    def __init__(self, tuned: Any, split: Split) -> None:
        self.held_out, self.parameters, self._final, self._y = {}, {}, {}, split.y_train
        for scoring in SCORINGS:
            settings = {"prefit": True, "distribution": "normal", "spread": "targets", "scoring": scoring}
            settings |= {"calibrate": False, "n_jobs": 1}
            chosen = IBUGRegressor(tuned.part, **settings)
            chosen.fit(split.X_part, split.y_part, X_val=split.X_val, y_val=split.y_val)
            self.held_out[scoring] = moments_of(chosen.predict_dist(split.X_val))
            self._final[scoring] = IBUGRegressor(tuned.full, k=chosen.k_, **settings).fit(split.X_train, split.y_train)
            self.parameters[scoring] = {**tuned.parameters, "k": chosen.k_, "rho": chosen.rule_.min_variance}

    def predict(self, X: Floats, scoring: str) -> Moments:
        final = self._final[scoring]
        values = self._y[final.kneighbors(X)[1]]
        # Not by `predict_dist`: without validation rows its least variance is another one.
        variance = np.maximum(values.var(axis=1), self.parameters[scoring]["rho"])
        return Moments(np.asarray(final.predict(X), np.float64), variance)


class IBUGCatBoost(IBUG):
    """On CatBoost: the paper's IBUG."""

    name, title, package, booster = "ibug-catboost", "IBUG", "catboost", CatBoost


class IBUGLightGBM(IBUG):
    """On LightGBM."""

    name, title, package, booster = "ibug-lightgbm", "IBUG (LightGBM)", "lightgbm", LightGBM


class IBUGXGBoost(IBUG):
    """On XGBoost."""

    name, title, package, booster = "ibug-xgboost", "IBUG (XGBoost)", "xgboost", XGBoost


class IBUGExactXGBoost(IBUG):
    """On XGBoost as the paper had it."""

    name, title, package, booster = "ibug-xgboost-exact", "IBUG (XGBoost, exact splits)", "xgboost", ExactXGBoost
    varies = "ibug-xgboost"


class IBUGHist(IBUG):
    """On scikit-learn's histogram boosting."""

    name, title, package, booster = "ibug-hist", "IBUG (HistGB)", "sklearn", HistGradientBoosting
