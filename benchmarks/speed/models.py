"""What ``speed.py`` measures: the libraries' models, and the sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.common.timing import BATCH, Floats
from benchmarks.speed.rows import synthetic_rows

VALIDATION = 500  # rows on which k is tuned when the time of `fit` is measured
USUAL_FEATURES, FEATURES_OF_HUGE = 9, 90
LARGE, SMALL, QUICK, HUGE = (40_000, 2_000), (7_000, 500), (2_000, 100), (500_000, 1_000)  # rows, trees
THREADED, GIGABYTE = (40_000, 1_000), (500_000, 2_000)  # where a second processor, and the first use, are measured
MATCHING = (8_000, 500)  # at which other packages are measured, and ibug beside them
# A walk over leaf members of more codes than this would need more memory than most machines have.
_WALKABLE_CODES = 2**28


@dataclass(frozen=True)
class Setting:
    """What is measured: a library's model on a number of rows and trees."""

    library: str
    n_rows: int
    n_trees: int
    n_features: int = USUAL_FEATURES

    def __str__(self) -> str:
        features = "" if self.n_features == USUAL_FEATURES else f" of {self.n_features} features"
        return f"{self.library}, {self.n_rows:,} rows{features}, {self.n_trees:,} trees"

    @property
    def is_huge(self) -> bool:
        """Whether a walk over leaf members would need more memory than most machines have."""
        return self.n_rows * self.n_trees > _WALKABLE_CODES


@dataclass(frozen=True)
class Rows:
    """Rows to train on, to tune on and to predict, and their targets."""

    X: Floats  # (n_rows, n_features)
    y: Floats  # (n_rows,)
    X_val: Floats  # (VALIDATION, n_features)
    y_val: Floats
    queries: Floats  # (BATCH, n_features)


def rows_of(setting: Setting) -> Rows:
    """Draw the rows of a setting, the same ones in every process."""
    n = setting.n_rows
    X, y = synthetic_rows(n + BATCH + VALIDATION, setting.n_features)
    return Rows(X[:n], y[:n], X[-VALIDATION:], y[-VALIDATION:], X[n : n + BATCH])


def _lightgbm(n_trees: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=n_trees, num_leaves=31, learning_rate=0.05, n_jobs=1, verbose=-1)


def _catboost(n_trees: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=n_trees, depth=7, thread_count=1, random_seed=0, allow_writing_files=False, verbose=False
    )


def _xgboost(n_trees: int) -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=n_trees, max_depth=6, learning_rate=0.05, n_jobs=1)


def _hist_gradient_boosting(n_trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=31, learning_rate=0.05, early_stopping=False)


MODELS: Mapping[str, Callable[[int], Any]] = {
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
    "HistGradientBoosting": _hist_gradient_boosting,
}

#: The packages whose versions count.
PACKAGES: Mapping[str, str] = {
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "CatBoost": "catboost",
    "HistGradientBoosting": "scikit-learn",
}
