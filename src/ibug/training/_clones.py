"""Untrained copies of a model, and what their `fit` takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ibug._options import Options
from ibug.exceptions import InvalidInputError, UnsupportedModelError
from ibug.leaves import reader_type
from ibug.training._guards import guard_training


def fresh(model: Any) -> Any:
    """Return an unfitted copy of a model."""
    try:
        return clone(model)
    except (TypeError, RuntimeError) as error:
        # CatBoost's estimators change some of their parameters, which scikit-learn's clone does not take; they can copy
        # themselves.
        if hasattr(model, "fit") and hasattr(model, "copy"):
            return model.copy()
        copy = _around_a_fresh_one(model)
        if copy is not None:
            return copy
        raise UnsupportedModelError(
            f"ibug cannot train this {type(model).__name__}. If it is trained already, set prefit=True; else use the "
            "library's scikit-learn estimator (LGBMRegressor, XGBRegressor, say)."
        ) from error


def checked_model(estimator: Any, options: Options, rng: np.random.RandomState) -> Any:
    """Return the model to use or to train; refuse one that cannot be used, or not be trained where it must be."""
    if estimator is None:
        estimator = HistGradientBoostingRegressor(random_state=rng.randint(2**31 - 1))
    reader_type(estimator)
    if not options.prefit:
        guard_training(estimator, fresh(estimator))
    return estimator


def _around_a_fresh_one(model: Any) -> Any:
    """Return a copy of an estimator around another one, its ``estimator``, that scikit-learn cannot clone; or None."""
    if not isinstance(model, BaseEstimator) or not hasattr(getattr(model, "estimator", None), "fit"):
        return None
    inner = model.estimator
    parameters = model.get_params(deep=False)
    return type(model)(**{key: fresh(v) if v is inner else clone(v, safe=False) for key, v in parameters.items()})


def with_sample_weight(model: Any, fit_params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
    """Add the weights to the parameters of `fit`, under the name by which the model takes them."""
    if sample_weight is None:
        return fit_params
    steps = []
    while isinstance(model, Pipeline):
        steps.append(model.steps[-1][0])
        model = model.steps[-1][1]
    return {**fit_params, "__".join([*steps, "sample_weight"]): sample_weight}


def _innermost(model: Any) -> Any:
    """Return what pipelines and TransformedTargetRegressor are around."""
    while isinstance(model, Pipeline) or hasattr(model, "regressor"):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.regressor
    return model


def check_stopping(model: Any, fit_params: Mapping[str, Any]) -> None:
    """Refuse early stopping without rows to stop on, which the library would complain of in its own words."""
    last = _innermost(model)
    if type(last).__module__.partition(".")[0] not in ("xgboost", "lightgbm") or not hasattr(last, "get_params"):
        return
    given = last.get_params()
    name = next((name for name in ("early_stopping_rounds", "early_stopping_round") if given.get(name)), None)
    if name is not None and not any(each.endswith(("eval_set", "eval_X")) for each in fit_params):
        raise InvalidInputError(
            f"This {type(last).__name__} has {name}={given[name]}, and it or its clones are trained here without rows "
            "to stop on. Pass them to fit, eval_set=[(X_stop, y_stop)]; or set n_estimators to what early stopping has "
            f"found, best_iteration + 1, and {name}=None."
        )


def trainable(model: Any) -> Any:
    """Return the model to clone: what a FrozenEstimator holds; refuse one that a clone would not train anew."""
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    if not hasattr(model, "fit"):
        raise UnsupportedModelError(
            f"cv trains clones, and a {type(model).__name__} cannot be trained: give the library's scikit-learn "
            "estimator (LGBMRegressor, XGBRegressor, say), or leave cv out and pass X_val and y_val."
        )
    if isinstance(_innermost(model), FrozenEstimator):
        raise InvalidInputError(
            f"The {type(model).__name__} holds a FrozenEstimator, whose clones are not trained anew: their residuals "
            'on training rows would be too small. Take the estimator out of it, or choose spread="targets".'
        )
    return model
