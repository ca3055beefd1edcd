"""XGBoost: leaf numbers from ``predict(pred_leaf=True)``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug.leaves._base import LeafReader, as_leaf_numbers, require_fitted, unsupported

_LINEAR = "its booster is 'gblinear', which has no trees"
_NO_REGRESSION = ("binary:", "multi:", "rank:", "survival:cox")


def find(model: Any) -> type[LeafReader]:
    """Return the reader for an XGBoost model."""
    if isinstance(model, xgboost.Booster):
        return BoosterReader
    if isinstance(model, xgboost.XGBRegressor):  # XGBRFRegressor is one too
        if model.booster == "gblinear":
            raise unsupported(model, _LINEAR)
        return XGBRegressorReader
    raise unsupported(model, "it is not a regressor")


class XGBRegressorReader(LeafReader):
    """Reads ``XGBRegressor`` and ``XGBRFRegressor``; like ``predict``, up to the best iteration of early stopping."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, model.__sklearn_is_fitted__())
        _check_booster(model, model.get_booster())

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the numbers of the leaf nodes."""
        # What `apply` does; but XGBoost 2's `apply` refuses the categorical columns that its `predict` takes.
        model = self.model
        rows = xgboost.DMatrix(
            X,
            missing=model.missing,
            feature_types=model.feature_types,
            nthread=model.n_jobs,
            enable_categorical=model.enable_categorical,
        )
        n_rounds = getattr(model, "best_iteration", -1) + 1  # the attribute is there after early stopping; 0 means all
        leaves = model.get_booster().predict(rows, pred_leaf=True, iteration_range=(0, n_rounds))
        return as_leaf_numbers(leaves, _num_samples(X), model)


class BoosterReader(LeafReader):
    """Reads ``Booster``, whose ``predict`` uses all trees; XGBoost itself checks the names of its columns."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, _n_rounds(model) > 0)
        _check_booster(model, model)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the booster's own predictions, of shape (n_rows,)."""
        return np.asarray(self.model.predict(_matrix(X)))

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the numbers of the leaf nodes."""
        return as_leaf_numbers(self.model.predict(_matrix(X), pred_leaf=True), _num_samples(X), self.model)


def _matrix(X: Any) -> Any:
    return xgboost.DMatrix(X, enable_categorical=True)


def _n_rounds(booster: Any) -> int:
    try:
        return int(booster.num_boosted_rounds())
    except xgboost.core.XGBoostError:  # an empty Booster() cannot even count
        return 0


def _check_booster(model: Any, booster: Any) -> None:
    learner = json.loads(booster.save_config())["learner"]
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if kind == "gblinear":
        raise unsupported(model, _LINEAR)
    if objective.startswith(_NO_REGRESSION):
        raise unsupported(model, f"its objective is {objective!r}, and ibug needs a regression model")
    # A user's own objective may ask for classes without a name that tells.
    if any(int(learner["learner_model_param"].get(name, 1)) > 1 for name in ("num_target", "num_class")):
        raise unsupported(model, "it has several outputs")
