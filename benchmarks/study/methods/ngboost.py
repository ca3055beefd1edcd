"""NGBoost (Duan et al., ICML 2020): boosting of mean and variance along the natural gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.study import facts
from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split
from ibug.distributions import Normal
from ibug.metrics import crps, nll

# Largest number of trees, learning rate, patience, share of the rows and of the columns that a tree sees. The paper has
# no other hyperparameters here than the number of trees.
SETTINGS = {"quick": (200, 0.1, 15, 0.5), "full": (2000, 0.05, 50, 0.5), "paper": (2000, 0.01, 50, 1.0)}


class NGBoost(Method):
    """NGBoost, trained for the likelihood; the number of trees is the best on validation rows by each score."""

    name, title, package = "ngboost", "NGBoost", "ngboost"

    def fit(self, split: Split) -> Fitted:
        return FittedNGBoost(split)


class NGBoostCRPS(Method):
    """NGBoost as the authors of IBUG trained it where they report the CRPS: for the CRPS, with as many trees."""

    name, title, package, varies = "ngboost-crps", "NGBoost, trained for the CRPS", "ngboost", "ngboost"

    def fit(self, split: Split) -> Fitted:
        return FittedNGBoostCRPS(split)


class FittedNGBoostCRPS(Fitted):
    """One model for both scores."""

    def __init__(self, split: Split) -> None:
        most, rate, _, share = SETTINGS["paper" if split.grid == "full" else split.grid]
        trees = min(most, int(facts.selected().get((split.dataset, "NGBoost"), {}).get("T", most)))
        part = _make(trees, rate, share, split.seed, crps=True).fit(split.X_part, split.y_part)
        held_out = _moments(part.pred_dist(split.X_val), split.tiny)
        self.held_out = dict.fromkeys(SCORINGS, held_out)
        self.parameters = {scoring: {"trees": trees, "rate": rate, "share": share} for scoring in SCORINGS}
        self._tiny = split.tiny
        self._final = _make(trees, rate, share, split.seed, crps=True).fit(split.X_train, split.y_train)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return _moments(self._final.pred_dist(X), self._tiny)


class FittedNGBoost(Fitted):
    """One model for both scores, cut at two numbers of trees."""

    def __init__(self, split: Split) -> None:
        most, rate, patience, share = SETTINGS[split.grid]
        part = _make(most, rate, share, split.seed)
        part.fit(split.X_part, split.y_part, X_val=split.X_val, Y_val=split.y_val, early_stopping_rounds=patience)
        stages = [_moments(stage, split.tiny) for stage in part.staged_pred_dist(split.X_val)]
        self.held_out, self.parameters = {}, {}
        for scoring, score in zip(SCORINGS, (crps, nll), strict=True):
            scores = [_score(score, split.y_val, stage) for stage in stages]
            best = int(np.argmin(scores))
            self.held_out[scoring] = stages[best]
            self.parameters[scoring] = {"trees": best + 1, "rate": rate, "share": share}
        self._tiny = split.tiny
        trees = max(chosen["trees"] for chosen in self.parameters.values())
        self._final = _make(trees, rate, share, split.seed).fit(split.X_train, split.y_train)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return _moments(self._final.pred_dist(X, max_iter=self.parameters[scoring]["trees"]), self._tiny)


def _make(trees: int, rate: float, share: float, seed: int, crps: bool = False) -> Any:
    from ngboost import NGBRegressor
    from ngboost.learners import default_tree_learner
    from ngboost.scores import CRPScore, LogScore

    # The seed of the regressor does not reach its trees, which break ties between equal splits at random.
    tree = clone(default_tree_learner).set_params(random_state=seed)
    return NGBRegressor(
        Base=tree,
        Score=CRPScore if crps else LogScore,
        n_estimators=trees,
        learning_rate=rate,
        minibatch_frac=share,
        col_sample=share,
        random_state=seed,
        verbose=False,
    )


def _moments(normal: Any, tiny: float) -> Moments:
    variance = np.square(np.asarray(normal.scale, np.float64))
    return Moments(np.asarray(normal.loc, np.float64), np.maximum(variance, tiny))


def _score(score: Any, y: Floats, moments: Moments) -> float:
    if not all(np.all(np.isfinite(each)) for each in moments):
        return np.inf
    return float(score(y, Normal(moments.mean, np.sqrt(moments.variance))))
