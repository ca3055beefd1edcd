"""kNN-CB (paper, section C.2): CatBoost's mean; the variance is that of the nearest rows in its important features."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split
from benchmarks.study.methods.boosters import CatBoost
from benchmarks.study.methods.neighbors import Neighbors, best_k, candidates, floor_of

FEATURES = (5, 10, 20)


class KNNCatBoost(Method):
    """Euclidean distance in place of affinity, all else as in IBUG."""

    name, title, package = "knn-catboost", "kNN-CB", "catboost"

    def fit(self, split: Split) -> Fitted:
        return FittedKNNCatBoost(CatBoost().tune(split), split)


class FittedKNNCatBoost(Fitted):
    """The number of features and k are the best on validation rows."""

    def __init__(self, tuned: Any, split: Split) -> None:
        n_features = split.X_part.shape[1]
        by_importance = np.argsort(-np.asarray(tuned.part.get_feature_importance()), kind="stable")
        mean = np.asarray(tuned.part.predict(split.X_val, thread_count=1))
        tried = {}
        for count in sorted({min(count, n_features) for count in FEATURES}):
            columns = by_importance[:count]
            near = Neighbors(split.X_part[:, columns], split.y_part)
            tried[count] = near.moments(split.X_val[:, columns], candidates(len(split.y_part)))
        self.held_out, self.parameters = {}, {}
        self._model, self._columns, self._near = tuned.full, {}, {}
        for scoring in SCORINGS:
            choices = {n: best_k(split.y_val, mean, each, scoring, split.tiny) for n, each in tried.items()}
            count = min(choices, key=lambda n: choices[n][1])
            k = choices[count][0]
            variance = tried[count][k].variance
            floor = floor_of(variance, split.tiny)
            self.held_out[scoring] = Moments(mean, np.maximum(variance, floor))
            self.parameters[scoring] = {**tuned.parameters, "features": count, "k": k, "rho": floor}
            self._columns[scoring] = by_importance[:count]
            self._near[scoring] = Neighbors(split.X_train[:, self._columns[scoring]], split.y_train)

    def predict(self, X: Floats, scoring: str) -> Moments:
        chosen = self.parameters[scoring]
        (found,) = self._near[scoring].moments(X[:, self._columns[scoring]], (chosen["k"],)).values()
        mean = np.asarray(self._model.predict(X, thread_count=1))
        return Moments(mean, np.maximum(found.variance, chosen["rho"]))
