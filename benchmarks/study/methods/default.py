"""What IBUGRegressor does by default: a stack, tuned on out-of-fold predictions. The paper has nothing like it."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.common.remembering import Remembering, remembering
from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split, moments_of
from benchmarks.study.methods.boosters import Booster, CatBoost, LightGBM
from ibug import IBUGRegressor
from ibug.distributions import Distribution
from ibug.explain import plain_neighbors


class Default(Method):
    """The default on a booster, with the hyperparameters that IBUG gets."""

    booster: ClassVar[type[Booster]]

    def fit(self, split: Split) -> Fitted:
        return FittedDefault(self.booster(), split)


class FittedDefault(Fitted):
    """Trained by ``fit(X, y)`` on all training rows, as a user would; its distributions are scored as they are."""

    def __init__(self, booster: Booster, split: Split) -> None:
        tuned = booster.tune(split)
        self.held_out, self.parameters, self._final = {}, {}, {}
        Remembering.trained.clear()
        for scoring in SCORINGS:
            settings: dict[str, Any] = {"scoring": scoring, "n_jobs": 1, "random_state": split.seed}
            part = IBUGRegressor(tuned.part, prefit=True, **settings)
            part.fit(split.X_part, split.y_part, X_val=split.X_val, y_val=split.y_val)
            self.held_out[scoring] = moments_of(part.predict_dist(split.X_val))
            final = IBUGRegressor(remembering(booster.make(tuned.parameters, split.seed)), **settings)
            self._final[scoring] = final.fit(split.X_train, split.y_train)
            chosen = {"spread": final.spread_, "distribution": final.distribution_}
            self.parameters[scoring] = {**tuned.parameters, **chosen}

    def predict(self, X: Floats, scoring: str) -> Moments:
        return moments_of(self._final[scoring].predict_dist(X))

    def distribution(self, X: Floats, scoring: str, *, calibrated: bool) -> Distribution | None:
        final = self._final[scoring]
        return (final if calibrated else plain_neighbors(final)).predict_dist(X)


class DefaultCatBoost(Default):
    """On CatBoost."""

    name, title, package, booster = "default-catboost", "ibug's default", "catboost", CatBoost


class DefaultLightGBM(Default):
    """On LightGBM."""

    name, title, package, booster = "default-lightgbm", "ibug's default (LightGBM)", "lightgbm", LightGBM
