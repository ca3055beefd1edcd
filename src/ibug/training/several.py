"""Whether a model and its targets belong together, where there may be several."""

from __future__ import annotations

from typing import Any

from sklearn.multioutput import MultiOutputRegressor

from ibug._inputs import check_unique_names, shape_of
from ibug._typing import Floats, Rows
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader
from ibug.rule import AnyRule, JointRule, Rule

_FOR_ONE_TARGET = ("LGBMRegressor", "GradientBoostingRegressor", "HistGradientBoostingRegressor")


def check_outputs(reader: LeafReader, y: Floats) -> None:
    """Raise InvalidInputError unless the model predicts as many targets as there are. Shapes: y (n_rows,)."""
    n_targets = 1 if y.ndim == 1 else y.shape[1]
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


def for_targets(model: Any, given: Any, y: Floats) -> Any:
    """Return the model to use for these targets: where none was given, one for each of several.

    Shapes: y (n_rows,).
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
    """Raise InvalidInputError unless further rows have as many targets as the training rows. Shapes: y (n_rows,)."""
    if later is None or later[1].shape[1:] == y.shape[1:]:
        return
    n_targets, n_given = (1 if one.ndim == 1 else one.shape[1] for one in (y, later[1]))
    raise InvalidInputError(
        f"These rows have {n_given} targets, and the training rows have {n_targets}: give the same ones."
    )


def target_names(y: Any) -> list[str]:
    """Return the names of several targets: those of a data frame's columns, else ``target_0`` and so on.

    Shapes: y (n_rows,).
    """
    columns = getattr(y, "columns", None)
    if columns is not None:
        check_unique_names(y, "y")
        return [str(name) for name in columns]
    shape = shape_of(y)
    return [f"target_{j}" for j in range(shape[1] if len(shape) > 1 else 1)]


def one_target(rule: AnyRule, action: str) -> Rule:
    """Return the rule, or raise InvalidInputError if it is one of several targets."""
    if isinstance(rule, JointRule):
        raise InvalidInputError(
            f"{action} is for one target, and this estimator has {rule.n_targets}: fit an IBUGRegressor for the target."
        )
    return rule
