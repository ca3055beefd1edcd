"""PGBM (Sprangers, Schelter and de Rijke, KDD 2021) by pgbm.sklearn: leaves are random, so that trees add variances."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split
from benchmarks.study.methods.boosters import HistGradientBoosting
from ibug.distributions import Normal
from ibug.metrics import crps, nll

# With the package's own value variances of later trees nearly cancel, and intervals are far too narrow.
CORRELATIONS = (-0.2, -0.1, -0.05, -0.02, -0.01, 0.0, 0.01, 0.02, 0.05)


class Booster(HistGradientBoosting):
    """The package's fork of scikit-learn's histogram boosting."""

    name = package = "pgbm"

    @staticmethod
    def regressor() -> type[Any]:
        from pgbm.sklearn import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor


class PGBM(Method):
    """PGBM with the correlation between trees tuned on validation rows."""

    name, title, package = "pgbm", "PGBM", "pgbm"
    row_limit: ClassVar[dict[str, int]] = {"quick": 3000, "full": 3000}

    def fit(self, split: Split) -> Fitted:
        return FittedPGBM(Booster().tune(split), split)


class FittedPGBM(Fitted):
    """One model for both scores, read with two correlations."""

    def __init__(self, tuned: Any, split: Split) -> None:
        self._tiny, self._final = split.tiny, tuned.full
        self.held_out, self.parameters = {}, {}
        candidates = [_moments(tuned.part, split.X_val, correlation, self._tiny) for correlation in CORRELATIONS]
        for scoring, score in zip(SCORINGS, (crps, nll), strict=True):
            scores = [
                score(split.y_val, Normal(each.mean, np.sqrt(each.variance)))
                if np.all(np.isfinite(each.variance))
                else np.inf
                for each in candidates
            ]
            best = int(np.argmin(scores))
            self.held_out[scoring] = candidates[best]
            self.parameters[scoring] = {**tuned.parameters, "tree_correlation": CORRELATIONS[best]}

    def predict(self, X: Floats, scoring: str) -> Moments:
        return _moments(self._final, X, self.parameters[scoring]["tree_correlation"], self._tiny)


def _moments(model: Any, X: Floats, correlation: float, tiny: float) -> Moments:
    mean, deviation = model.set_params(tree_correlation=correlation).predict(X, return_std=True)
    return Moments(np.asarray(mean, np.float64), np.maximum(np.square(np.asarray(deviation, np.float64)), tiny))
