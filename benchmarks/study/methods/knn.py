"""kNN (paper, section C.2): mean and variance of the nearest rows by Euclidean distance, with two numbers of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split
from benchmarks.study.methods.neighbors import Neighbors, best_k, candidates, floor_of


class KNN(Method):
    """k nearest neighbours after standard scaling."""

    name, title, package = "knn", "kNN", "sklearn"
    scaled: ClassVar[bool] = True

    def fit(self, split: Split) -> Fitted:
        return FittedKNN(split, self.scaled)


class UnscaledKNN(KNN):
    """The same on the columns as they are.

    The paper says that it scales, yet its values are those of this one wherever the two differ much (Bike, California,
    Energy).
    """

    name, title, scaled, varies = "knn-unscaled", "kNN, unscaled", False, "knn"


class FittedKNN(Fitted):
    """One k for the mean, by RMSE; one for the variance, by the score."""

    def __init__(self, split: Split, scaled: bool) -> None:
        near = Neighbors(split.X_part, split.y_part, scaled=scaled)
        moments = near.moments(split.X_val, candidates(len(split.y_part)))
        errors = {k: float(np.mean(np.square(split.y_val - each.mean))) for k, each in moments.items()}
        k_mean = min(errors, key=errors.__getitem__)
        mean = moments[k_mean].mean
        self.held_out, self.parameters = {}, {}
        for scoring in SCORINGS:
            k, _ = best_k(split.y_val, mean, moments, scoring, split.tiny)
            floor = floor_of(moments[k].variance, split.tiny)
            self.held_out[scoring] = Moments(mean, np.maximum(moments[k].variance, floor))
            self.parameters[scoring] = {"k_mean": k_mean, "k": k, "rho": floor}
        self._final = Neighbors(split.X_train, split.y_train, scaled=scaled)

    def predict(self, X: Floats, scoring: str) -> Moments:
        chosen = self.parameters[scoring]
        moments = self._final.moments(X, (chosen["k_mean"], chosen["k"]))
        return Moments(moments[chosen["k_mean"]].mean, np.maximum(moments[chosen["k"]].variance, chosen["rho"]))
