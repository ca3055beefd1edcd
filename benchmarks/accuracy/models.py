"""The base models of the accuracy benchmark: how many trees, and trainings that are remembered."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from ibug import VarianceCalibrator

Floats = NDArray[np.float64]

PATIENCE = 30
#: The numbers of trees that CBU has to choose from: those of the paper, as far as they are allowed (section B.2).
CBU_TREES = (25, 50, 100, 250, 500, 1000, 2000)


class Remembering:
    """A regressor that does not train twice on the same rows with the same parameters.

    Methods are compared on the same splits, and tuned for two scores, so that most trainings would be repeated.
    """

    _trained: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - shared by all clones on purpose

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        """Train, or take over what an equal estimator has learned from the same rows."""
        key = joblib.hash((type(self).__name__, sorted(self.get_params().items(), key=str), X, y, options))
        if key not in self._trained:
            super().fit(X, y, **options)
            self._trained[key] = dict(self.__dict__)
        self.__dict__.update(self._trained[key])
        return self


class Models:
    """The estimators for one training part.

    Parameters
    ----------
    X, y
        All rows; categorical columns are categories.
    train : ndarray of shape (n_train,)
        The rows of the training part.
    max_trees, threads
        Limits of each training.
    """

    def __init__(self, X: Any, y: Floats, train: NDArray[np.intp], max_trees: int, threads: int) -> None:
        Remembering._trained.clear()
        self.categories = [column for column in X if str(X[column].dtype) == "category"]
        self.X_train, self.y_train = self.prepared(X.iloc[train]), y[train]
        self.max_trees, self.threads = max_trees, threads
        self._n_trees: dict[str, int] = {}

    def prepared(self, X: Any) -> Any:
        """Return the rows with missing categories as a category of their own: CatBoost takes no missing ones."""
        X = X.reset_index(drop=True)
        for column in self.categories:
            filled = X[column].astype(object).where(X[column].notna(), "missing")
            X[column] = filled.astype(str).astype("category")
        return X

    @cached_property
    def _parts(self) -> list[Any]:
        return train_test_split(self.X_train, self.y_train, test_size=0.2, random_state=0)

    def estimator(self, base: str, scoring: str = "crps") -> Any:
        """Return an estimator with as many trees as are best on a fifth of the training part."""
        return _MAKERS[base](self.n_trees(base, scoring), self)

    def n_trees(self, base: str, scoring: str = "crps") -> int:
        """Return that number: by early stopping, and for CBU by the score."""
        key = f"{base} by {scoring}" if base == "cbu" else base
        if key not in self._n_trees:
            best = self._best_by_score(scoring) if base == "cbu" else self._stopped_early(base)
            self._n_trees[key] = max(20, best)
        return self._n_trees[key]

    def _stopped_early(self, base: str) -> int:
        X, X_val, y, y_val = self._parts
        model = _MAKERS[base](self.max_trees, self)
        if base == "lightgbm":
            import lightgbm

            stop = lightgbm.early_stopping(PATIENCE, verbose=False)
            model.fit(X, y, eval_set=[(X_val, y_val)], callbacks=[stop])
            return int(model.best_iteration_)
        model.fit(X, y, eval_set=(X_val, y_val), early_stopping_rounds=PATIENCE)
        return int(model.get_best_iteration()) + 1

    def _best_by_score(self, scoring: str) -> int:
        """Return how many trees of CBU score best, each number with a calibration of its own.

        Early stopping would be unfair to it: the likelihood of the uncalibrated laws is at its best long before means
        and calibrated laws are.
        """
        X, X_val, y, y_val = self._parts
        model = _MAKERS["cbu"](self.max_trees, self)
        model.set_params(loss_function="RMSEWithUncertainty", posterior_sampling=True)
        model.fit(X, y)
        candidates = sorted({*(count for count in CBU_TREES if count < self.max_trees), self.max_trees})
        scores = []
        for count in candidates:
            law = model.predict(X_val, prediction_type="RMSEWithUncertainty", ntree_end=count)
            calibrator = VarianceCalibrator(scoring=scoring).fit(law[:, 0], np.maximum(law[:, 1], 1e-12), y_val)
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
        cat_features=models.categories,
        random_seed=0,
        verbose=0,
        allow_writing_files=False,
        thread_count=models.threads,
    )


_MAKERS = {"lightgbm": _lightgbm, "catboost": _catboost, "cbu": _catboost}
