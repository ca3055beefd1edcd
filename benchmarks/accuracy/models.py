"""The base models of the accuracy benchmark: how many trees, and trainings that are remembered."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy.fold import Fold
from benchmarks.common.early_stopping import fit_catboost, fit_lightgbm, fit_xgboost
from benchmarks.common.remembering import Remembering, remember
from ibug import VarianceCalibrator

PATIENCE = 30
FEWEST_TREES = 20
#: The numbers of trees that CBU has to choose from: those of the paper, as far as they are allowed (section B.2).
CBU_TREES = (25, 50, 100, 250, 500, 1000, 2000)


class Models:
    """The estimators for the training rows of one fold.

    Parameters
    ----------
    fold
        The rows.
    max_trees, threads
        Limits of each training.
    """

    def __init__(self, fold: Fold, max_trees: int, threads: int = 1) -> None:
        Remembering.trained.clear()
        self.fold, self.max_trees, self.threads = fold, max_trees, threads
        self._n_trees: dict[str, int] = {}

    def estimator(self, base: str, scoring: str = "crps") -> Any:
        """Return an estimator, untrained, with the number of trees that is best on the validation rows."""
        return _MAKERS[base](self.n_trees(base, scoring), self)

    def of_part(self, base: str) -> Any:
        """Return a model that is trained on the part, and has not seen the validation rows."""
        return self.estimator(base).fit(self.fold.X_part, self.fold.y_part)

    def n_trees(self, base: str, scoring: str = "crps") -> int:
        """Return that number: by early stopping, and for CBU by the score."""
        key = f"{base} by {scoring}" if base == "cbu" else base
        if key not in self._n_trees:
            best = self._best_by_score(scoring) if base == "cbu" else self._stopped_early(base)
            self._n_trees[key] = max(FEWEST_TREES, best)
        return self._n_trees[key]

    def _stopped_early(self, base: str) -> int:
        fit = {"lightgbm": fit_lightgbm, "catboost": fit_catboost, "xgboost": fit_xgboost}[base]
        fold = self.fold
        return fit(_MAKERS[base](self.max_trees, self), fold.X_part, fold.y_part, fold.X_val, fold.y_val, PATIENCE)

    def _best_by_score(self, scoring: str) -> int:
        """Return the number of trees with which CBU scores best, each with a calibration of its own.

        Early stopping would be unfair to it: before calibration the likelihood is at its best long before means and
        calibrated distributions are.
        """
        fold = self.fold
        model = _MAKERS["cbu"](self.max_trees, self)
        model.set_params(loss_function="RMSEWithUncertainty", posterior_sampling=True)
        model.fit(fold.X_part, fold.y_part)
        candidates = sorted({*(count for count in CBU_TREES if count < self.max_trees), self.max_trees})
        scores = []
        for count in candidates:
            mean, variance = model.predict(fold.X_val, prediction_type="RMSEWithUncertainty", ntree_end=count).T
            calibrator = VarianceCalibrator(scoring=scoring).fit(mean, np.maximum(variance, 1e-12), fold.y_val)
            scores.append(calibrator.scores_["score"].min())
        return candidates[int(np.argmin(scores))]


def _lightgbm(n_trees: int, models: Models) -> Any:
    from lightgbm import LGBMRegressor

    class RememberingLGBM(Remembering, LGBMRegressor):
        pass

    return RememberingLGBM(
        n_estimators=n_trees,
        learning_rate=0.05,
        min_child_samples=10,
        random_state=0,
        verbose=-1,
        n_jobs=models.threads,
    )


def _catboost(n_trees: int, models: Models) -> Any:
    from catboost import CatBoostRegressor

    class RememberingCatBoost(Remembering, CatBoostRegressor):
        pass

    return RememberingCatBoost(
        iterations=n_trees,
        learning_rate=0.08,
        max_ctr_complexity=1,  # combinations of categories take most of the time and gain little here
        one_hot_max_size=10,
        cat_features=models.fold.categories,
        random_seed=0,
        verbose=0,
        allow_writing_files=False,
        thread_count=models.threads,
    )


def _xgboost(n_trees: int, models: Models) -> Any:
    from xgboost import XGBRegressor

    class RememberingXGB(XGBRegressor):  # whose parameters are asked of its first base class
        def fit(self, X: Any, y: Any, **options: Any) -> Any:
            return remember(self, super().fit, X, y, options)

    return RememberingXGB(
        n_estimators=n_trees, learning_rate=0.05, enable_categorical=True, random_state=0, n_jobs=models.threads
    )


_MAKERS = {"lightgbm": _lightgbm, "catboost": _catboost, "xgboost": _xgboost, "cbu": _catboost}
