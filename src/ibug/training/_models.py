"""Models: untrained copies, what their `fit` takes, and whether they belong to the targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from ibug._options import Options
from ibug._typing import Floats, Rows
from ibug._validation import check_unique_names, shape_of
from ibug._warnings import warn_user
from ibug.exceptions import IBUGError, InvalidInputError, TrainedAnewWarning, UnsupportedModelError
from ibug.leaves import LeafReader, library_of, reader_of, reader_type


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
    copy = None if options.prefit else fresh(estimator)
    if copy is not None and _is_trained(estimator) and not _is_trained(copy):
        warn_user(
            f"This {type(estimator).__name__} is trained already, and prefit is not set: a clone of it is trained "
            "again, and its own trees are not used. Set prefit=True to wrap it as it is, and pass X_val and y_val; or "
            "give an untrained estimator, sklearn.base.clone(model).",
            TrainedAnewWarning,
        )
    return estimator


def _is_trained(model: Any) -> bool:
    try:
        reader_of(model)
    except IBUGError:
        return False
    return True


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
    if library_of(last) not in ("xgboost", "lightgbm") or not hasattr(last, "get_params"):
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


_FOR_ONE_TARGET = ("LGBMRegressor", "GradientBoostingRegressor", "HistGradientBoostingRegressor")


def check_outputs(reader: LeafReader, y: Floats) -> None:
    """Raise InvalidInputError unless the model predicts as many targets as there are.

    Shapes: y (n_rows,) or (n_rows, n_targets).
    """
    n_targets = _n_targets(y)
    if reader.n_outputs == n_targets:
        return
    name = type(reader.model).__name__
    if n_targets == 1:
        raise InvalidInputError(
            f"This {name} predicts {reader.n_outputs} targets, and y has one: give y of shape (n_rows, "
            f"{reader.n_outputs}), with the targets that the model was trained on, in their order."
        )
    raise InvalidInputError(
        f"y has {n_targets} targets, and this {name} predicts {reader.n_outputs}. Give a model of all of them: "
        "sklearn.multioutput.MultiOutputRegressor around any supported one, XGBoost, CatBoost with MultiRMSE, a forest."
    )


def _n_targets(y: Floats) -> int:
    return 1 if y.ndim == 1 else y.shape[1]


def for_targets(model: Any, given: Any, y: Floats) -> Any:
    """Return the model to use for these targets: where none was given, one for each of several.

    Shapes: y (n_rows,) or (n_rows, n_targets).
    """
    if y.ndim == 1:
        return model
    if given is None:
        return MultiOutputRegressor(model)
    name = type(model).__name__
    if name in _FOR_ONE_TARGET:
        raise InvalidInputError(
            f"y has {y.shape[1]} targets, and a {name} is for one. Give one for each of them: "
            f"sklearn.multioutput.MultiOutputRegressor({name}(...))."
        )
    if name == "CatBoostRegressor" and not model.is_fitted():
        parameters = model.get_params()
        loss = parameters.get("objective") or parameters.get("loss_function", "RMSE")  # two names of one parameter
        if isinstance(loss, str) and not loss.startswith("Multi"):
            raise InvalidInputError(
                f"y has {y.shape[1]} targets, and a {name} with the loss {loss} is for one. Give "
                f'{name}(loss_function="MultiRMSE"), or one for each: '
                f"sklearn.multioutput.MultiOutputRegressor({name}(...))."
            )
    return model


def check_same_targets(y: Floats, later: Rows | None) -> None:
    """Raise InvalidInputError unless further rows have as many targets as the training rows.

    Shapes: y (n_rows,) or (n_rows, n_targets).
    """
    if later is None or later[1].shape[1:] == y.shape[1:]:
        return
    raise InvalidInputError(
        f"These rows have {_n_targets(later[1])} targets, and the training rows have {_n_targets(y)}: give the same "
        "ones."
    )


def target_names(y: Any) -> list[str]:
    """Return the names of several targets: those of a data frame's columns, else ``target_0`` and so on.

    Shapes: y (n_rows,) or (n_rows, n_targets).
    """
    if getattr(y, "columns", None) is not None:
        check_unique_names(y, "y")
        return [str(name) for name in y.columns]
    shape = shape_of(y)
    return [f"target_{j}" for j in range(shape[1] if len(shape) > 1 else 1)]
