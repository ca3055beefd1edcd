"""Training until validation rows gain no more."""

from __future__ import annotations

from inspect import signature
from typing import Any


def fit_lightgbm(model: Any, X: Any, y: Any, X_val: Any, y_val: Any, patience: int) -> int:
    """Train a LightGBM regressor and return its best number of trees."""
    from lightgbm import early_stopping

    watched: dict[str, Any] = {"eval_set": [(X_val, y_val)]}
    if "eval_X" in signature(model.fit).parameters:  # from LightGBM 4.7 on, which deprecates the other
        watched = {"eval_X": X_val, "eval_y": y_val}
    model.fit(X, y, callbacks=[early_stopping(patience, verbose=False)], **watched)
    return int(model.best_iteration_)


def fit_catboost(model: Any, X: Any, y: Any, X_val: Any, y_val: Any, patience: int) -> int:
    """Train a CatBoost regressor, cut it at its best number of trees, and return that number."""
    model.fit(X, y, eval_set=(X_val, y_val), early_stopping_rounds=patience)
    return int(model.tree_count_)


def fit_xgboost(model: Any, X: Any, y: Any, X_val: Any, y_val: Any, patience: int) -> int:
    """Train an XGBoost regressor and return its best number of trees."""
    model.set_params(early_stopping_rounds=patience)
    model.fit(X, y, eval_set=[(X_val, y_val)], verbose=False)
    return int(model.best_iteration) + 1
