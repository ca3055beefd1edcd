"""Quantile regression forests (Meinshausen, 2006) by quantile-forest."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split

# Trees, candidates of the fewest rows of a leaf and of the share of the features that a split may use.
SETTINGS: dict[str, tuple[int, tuple[int, ...], tuple[float, ...]]] = {
    "quick": (100, (5,), (1 / 3,)),
    "search": (100, (1, 5, 20), (1 / 3, 1.0)),  # of the accuracy benchmark
    "full": (300, (1, 5, 20), (1 / 3, 1.0)),
    "paper": (500, (1, 5, 20), (1 / 3, 1.0)),
}
LEVELS = (np.arange(40) + 0.5) / 40


class QuantileForest(Method):
    """A random forest that keeps the targets of its leaves.

    The normal distribution of the tables has the forest's mean and the variance of its quantiles; the interval is its
    own.
    """

    name, title, package = "quantile-forest", "Quantile forest", "quantile_forest"

    def fit(self, split: Split) -> Fitted:
        return FittedForest(split)


class FittedForest(Fitted):
    """The size of the leaves is the best on validation rows by RMSE."""

    def __init__(self, split: Split) -> None:
        trees, leaves, shares = SETTINGS[split.grid]
        tried = {}
        for leaf, share in product(leaves, shares):
            model = _make(trees, leaf, share, split.seed).fit(split.X_part, split.y_part)
            tried[leaf, share] = _moments(model, split.X_val, split.tiny)
        best = min(tried, key=lambda key: float(np.mean(np.square(split.y_val - tried[key].mean))))
        self._tiny = split.tiny
        self._final = _make(trees, *best, split.seed).fit(split.X_train, split.y_train)
        self.held_out = dict.fromkeys(SCORINGS, tried[best])
        chosen = {"trees": trees, "min_samples_leaf": best[0], "features": best[1]}
        self.parameters = dict.fromkeys(SCORINGS, chosen)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return _moments(self._final, X, self._tiny)

    def quantiles(self, X: Floats, levels: Floats) -> Floats | None:
        return np.asarray(self._final.predict(X, quantiles=list(levels)), np.float64)

    def interval(self, X: Floats, coverage: float) -> Floats | None:
        return self.quantiles(X, np.array([(1 - coverage) / 2, (1 + coverage) / 2]))


def _make(trees: int, leaf: int, share: float, seed: int) -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(
        n_estimators=trees, min_samples_leaf=leaf, max_features=share, random_state=seed, n_jobs=1
    )


def _moments(model: Any, X: Floats, tiny: float) -> Moments:
    quantiles = np.asarray(model.predict(X, quantiles=list(LEVELS)), np.float64)
    mean = np.asarray(model.predict(X, quantiles="mean"), np.float64)
    return Moments(mean, np.maximum(quantiles.var(axis=1), tiny))
