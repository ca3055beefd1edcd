"""BART (Chipman, George and McCulloch, 2010) by stochtree: the paper's bartpy cannot be installed from PyPI today."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from benchmarks.study.methods.base import SCORINGS, Fitted, Floats, Method, Moments, Split

# Numbers of trees to choose from (paper, section C.3), chains, samples kept of each.
SETTINGS: dict[str, tuple[tuple[int, ...], int, int]] = {
    "quick": ((100,), 1, 100),
    "full": ((200,), 1, 200),
    "paper": ((10, 50, 100, 200), 5, 200),
}
WARM_STARTS = 10


class BART(Method):
    """Bayesian additive regression trees."""

    name, title, package = "bart", "BART (stochtree)", "stochtree"
    row_limit: ClassVar[dict[str, int]] = {"quick": 2500, "full": 2500}

    def fit(self, split: Split) -> Fitted:
        return FittedBART(split)


class FittedBART(Fitted):
    """The number of trees is the best on validation rows by RMSE."""

    def __init__(self, split: Split) -> None:
        counts, chains, samples = SETTINGS[split.grid]
        tried = {}
        for trees in counts:
            model = _sampled(split.X_part, split.y_part, trees, chains, samples, split.seed)
            tried[trees] = _moments(model, split.X_val, split.tiny)
        best = min(tried, key=lambda trees: float(np.mean(np.square(split.y_val - tried[trees].mean))))
        self._tiny = split.tiny
        self._final = _sampled(split.X_train, split.y_train, best, chains, samples, split.seed)
        self.held_out = dict.fromkeys(SCORINGS, tried[best])
        chosen = {"trees": best, "chains": chains, "samples": samples}
        self.parameters = dict.fromkeys(SCORINGS, chosen)

    def predict(self, X: Floats, scoring: str) -> Moments:
        return _moments(self._final, X, self._tiny)


def _sampled(X: Floats, y: Floats, trees: int, chains: int, samples: int, seed: int) -> Any:
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=WARM_STARTS,
        num_mcmc=samples,
        general_params={"random_seed": seed, "num_chains": chains, "num_threads": 1},
        mean_forest_params={"num_trees": trees},
    )
    return model


def _moments(model: Any, X: Floats, tiny: float) -> Moments:
    """Return mean and variance of the posterior prediction: what samples differ by, and the noise."""
    samples = np.asarray(model.predict(X, type="posterior", terms="y_hat"))
    noise = float(np.mean(model.global_var_samples))
    return Moments(samples.mean(axis=1), np.maximum(samples.var(axis=1) + noise, tiny))
