"""XGBoost: leaf numbers from ``predict(pred_leaf=True)``."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.leaves._base import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._matrix import array_as_floats, categories_of, frame_as_floats, frame_with_codes, is_pandas, names_of
from ibug.leaves.recipe import Boosting, NotRedoneError
from ibug.leaves.recipe._xgboost import boosting
from ibug.leaves.walk import Answers, Link, Trees, WalkingReader
from ibug.leaves.walk._ubjson import parse
from ibug.leaves.walk._xgboost import read_trees

_LINEAR = "its booster is 'gblinear', which has no trees"
_NONNEGATIVE = {"count:poisson": "Poisson", "reg:gamma": "gamma", "reg:tweedie": "Tweedie"}
_UNIT_HESSIANS = ("reg:squarederror", "reg:absoluteerror", "reg:quantileerror")
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


class XGBoostReader(WalkingReader):
    """What the two readers share: the booster, and how it reads rows."""

    library = "XGBoost"
    refused_characters = r"[\[\]<]"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        booster = self._booster
        self._n_outputs = _check_booster(model, booster)
        self._names = booster.feature_names
        self._quantile = _quantile(booster)
        self._has_categories = "c" in (booster.feature_types or ())
        self._categories: list[list[Any]] = []

    @property
    @abstractmethod
    def _booster(self) -> Any:
        """The native booster."""

    @property
    def _n_rounds(self) -> int:
        """The rounds that `predict` uses; 0 means all."""
        return 0

    @property
    def _missing(self) -> float:
        """The value that stands for a missing one."""
        return np.nan

    @property
    def n_outputs(self) -> int:
        """The number of targets."""
        return self._n_outputs

    @property
    def outputs(self) -> NDArray[np.intp] | None:
        """The output of each tree: they take turns, unless leaves hold vectors."""
        if self._n_outputs == 1 or _has_vector_leaves(self._booster):
            return None
        rounds = self._n_rounds or int(self._booster.num_boosted_rounds())
        return np.tile(np.repeat(np.arange(self._n_outputs), self._n_parallel), rounds)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the booster came to its leaf values."""
        return boosting(self._booster, self._n_rounds, y, sample_weight)

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the booster came to the leaf values of one output, if it has trees of its own."""
        if _has_vector_leaves(self._booster):
            raise NotRedoneError("its leaves hold vectors")
        outputs = {"output": output, "n_outputs": self._n_outputs}
        return boosting(self._booster, self._n_rounds, y, sample_weight, **outputs)

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves: the sum of their second derivatives, which are 1 for some losses."""
        objective = json.loads(self._booster.save_config())["learner"]["objective"]["name"]
        if objective not in _UNIT_HESSIANS or (self._n_outputs > 1 and self.outputs is None):
            return None
        rounds = -(-n // (self._n_outputs * self._n_parallel))
        learner = parse(bytes(self._booster[: min(rounds, self._booster.num_boosted_rounds())].save_raw("ubj")))
        trees = learner["learner"]["gradient_booster"]["model"]["trees"]
        return [
            np.where(np.array(tree["left_children"]) < 0, np.array(tree["sum_hessian"], np.float64), 0.0)
            for tree in trees[:n]
        ]

    @property
    def _nonnegative_loss(self) -> str:
        return _NONNEGATIVE.get(json.loads(self._booster.save_config())["learner"]["objective"]["name"], "")

    @property
    def quantile(self) -> float | None:
        """The level of the quantile."""
        return self._quantile

    def _trees(self) -> tuple[Trees, Link | None]:
        trees, margin = read_trees(self._booster, self._n_rounds, self._missing)
        return trees, margin if self._n_outputs == 1 else None  # one sum does not tell several predictions

    def prepare(self, X: Any = None) -> None:
        """Compile and check the walk; remember the categories of X, with which it is checked."""
        if X is not None and self._has_categories and is_pandas(X):
            self._categories = [categories for _, categories in categories_of(X)]
        super().prepare(X)

    def state(self) -> dict[str, Any]:
        """Return what the walk has shown, and the categories of the training rows."""
        return {**super().state(), "categories": self._categories}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the categories, and get the walk ready."""
        self._categories = [list(categories) for categories in state["categories"]]
        super().restore(state)

    @property
    def n_trees(self) -> int:
        """The number of trees: rounds, up to the best one of early stopping, times those grown in each."""
        booster = self._booster
        rounds = self._n_rounds or int(booster.num_boosted_rounds())
        outputs = 1 if self._n_outputs == 1 or _has_vector_leaves(booster) else self._n_outputs
        return rounds * self._n_parallel * outputs

    @property
    def _n_parallel(self) -> int:
        learner = json.loads(self._booster.save_config())["learner"]["gradient_booster"]
        return int(learner.get("gbtree", learner)["gbtree_model_param"]["num_parallel_tree"])

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self._booster.num_features())

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return arrays and pandas frames of numbers; XGBoost itself reads frames with other names or categories."""
        if not is_pandas(X):
            return array_as_floats(X, np.float32)
        if names_of(X) != self._names:
            return None
        if self._has_categories:
            return frame_with_codes(X, np.float32, self._categories, recode=False)
        return frame_as_floats(X, np.float32)

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        booster = self._booster
        rows = xgboost.DMatrix(
            matrix, missing=self._missing, feature_names=booster.feature_names, feature_types=booster.feature_types
        )
        rounds = (0, self._n_rounds)
        leaves = booster.predict(rows, pred_leaf=True, iteration_range=rounds)
        return as_leaf_numbers(leaves, len(matrix), self.model), booster.predict(rows, iteration_range=rounds)


class XGBRegressorReader(XGBoostReader):
    """Reads ``XGBRegressor`` and ``XGBRFRegressor``; like ``predict``, up to the best iteration of early stopping."""

    def __init__(self, model: Any) -> None:
        require_fitted(model, model.__sklearn_is_fitted__())
        super().__init__(model)

    @property
    def _booster(self) -> Any:
        return self.model.get_booster()

    @property
    def _n_rounds(self) -> int:
        return int(getattr(self.model, "best_iteration", -1)) + 1  # the attribute is there after early stopping

    @property
    def _missing(self) -> float:
        return float(self.model.missing)

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
        leaves = model.get_booster().predict(rows, pred_leaf=True, iteration_range=(0, self._n_rounds))
        return as_leaf_numbers(leaves, _num_samples(X), model)


class BoosterReader(XGBoostReader):
    """Reads ``Booster``, whose ``predict`` uses all trees; XGBoost itself checks the names of its columns."""

    def __init__(self, model: Any) -> None:
        require_fitted(model, _rounds_of(model) > 0)
        super().__init__(model)

    @property
    def _booster(self) -> Any:
        return self.model

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the booster's own predictions, (n_rows,) or (n_rows, n_outputs)."""
        return np.asarray(self.model.predict(_dmatrix(X)))

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the numbers of the leaf nodes."""
        return as_leaf_numbers(self.model.predict(_dmatrix(X), pred_leaf=True), _num_samples(X), self.model)


def _dmatrix(X: Any) -> Any:
    return xgboost.DMatrix(X, enable_categorical=True)


def _rounds_of(booster: Any) -> int:
    try:
        return int(booster.num_boosted_rounds())
    except xgboost.core.XGBoostError:  # an empty Booster() cannot even count
        return 0


def _quantile(booster: Any) -> float | None:
    """Return the level of a model with the objective reg:quantileerror, which has one level here."""
    objective = json.loads(booster.save_config())["learner"]["objective"]
    levels = objective.get("quantile_loss_param", {}).get("quantile_alpha")
    return None if levels is None else float(str(levels).strip("[]()").split(",")[0])


def _has_vector_leaves(booster: Any) -> bool:
    """Tell whether a model of several outputs has one tree for all of them (``multi_strategy="multi_output_tree"``)."""
    model = json.loads(booster.save_config())["learner"]["gradient_booster"]
    parameters = model.get("gbtree", model)["gbtree_model_param"]
    rounds = int(booster.num_boosted_rounds())
    return int(parameters["num_trees"]) == rounds * int(parameters["num_parallel_tree"])


def _check_booster(model: Any, booster: Any) -> int:
    """Return the number of outputs of a booster, after refusing one that is no regression model."""
    learner = json.loads(booster.save_config())["learner"]
    kind, objective = learner["gradient_booster"]["name"], learner["objective"]["name"]
    if kind == "gblinear":
        raise unsupported(model, _LINEAR)
    if objective.startswith(_NO_REGRESSION):
        raise unsupported(model, f"its objective is {objective!r}, and ibug needs a regression model")
    # A user's own objective may ask for classes without a name that tells; several quantiles are outputs, too.
    n_classes, n_targets = (int(learner["learner_model_param"].get(name, 1)) for name in ("num_class", "num_target"))
    if n_classes > 1 or (n_targets > 1 and "quantile" in objective):
        raise unsupported(model, "it has several outputs, which are not several targets")
    return max(n_targets, 1)
