"""CatBoost: leaf numbers from ``calc_leaf_indexes``."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import catboost
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.leaves._base import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._matrix import array_as_floats, frame_as_floats, is_pandas, names_of
from ibug.leaves.recipe import Boosting
from ibug.leaves.recipe._catboost import boosting
from ibug.leaves.walk import Answers, Link, NotWalkableError, Trees, WalkingReader
from ibug.leaves.walk._catboost import read_trees

_NO_REGRESSION = (
    "Logloss", "CrossEntropy", "MultiClass", "MultiLogloss", "MultiCrossEntropy", "MultiQuantile",
    "PairLogit", "YetiRank", "QueryRMSE", "QuerySoftMax", "StochasticRank", "LambdaMart", "Focal", "Cox",
)  # fmt: skip

_SEVERAL_TARGETS = ("MultiRMSE", "MultiRMSEWithMissingValues")
_LOG_LINK = ("Poisson", "Tweedie")


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a CatBoost model."""
    if isinstance(model, (catboost.CatBoostClassifier, catboost.CatBoostRanker)):
        raise unsupported(model, "it is not a regressor")
    if isinstance(model, catboost.CatBoost):  # CatBoostRegressor is one too
        return CatBoostReader
    raise unsupported(model)


class CatBoostReader(WalkingReader):
    """Reads ``CatBoostRegressor`` and ``CatBoost``, whatever the grow policy."""

    library = "CatBoost"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, model.is_fitted())
        loss = trained_loss(model)
        if loss == "RMSEWithUncertainty":
            raise unsupported(
                model, "RMSEWithUncertainty already predicts a variance, and has two outputs; CBURegressor takes it"
            )
        if loss.startswith(_NO_REGRESSION):
            raise unsupported(model, f"its loss is {loss!r}, and ibug needs a single-output regression model")
        self._n_outputs = int(len(model.get_leaf_values()) // sum(model.get_tree_leaf_counts()))
        if self._n_outputs > 1 and not loss.startswith(_SEVERAL_TARGETS):  # as a user's own loss may have it
            raise unsupported(model, "it has several outputs, which are not known to be several targets")

        self._names = [str(name) for name in model.feature_names_]
        self._has_log_link = loss.startswith(_LOG_LINK)
        self._loss = loss.partition(":")[0]
        self._level = _level(loss)
        # `CatBoostRegressor` predicts in the unit of the target; plain `CatBoost` stays on the log scale unless told.
        log_scale = self._has_log_link and not isinstance(model, catboost.CatBoostRegressor)
        self._options = {"prediction_type": "Exponent"} if log_scale else {}

    @property
    def changes_unit(self) -> bool:
        """Whether `predict` returns the exponential of what the model itself predicts."""
        return bool(self._options)

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves; files of several targets do not have it."""
        if self._n_outputs > 1:
            return None
        edges = np.cumsum([0, *self.model.get_tree_leaf_counts()[:n]])
        weights = np.asarray(self.model.get_leaf_weights(), np.float64)
        return [weights[start:stop] for start, stop in pairwise(edges)] if len(weights) else None

    @property
    def quantile(self) -> float | None:
        """The level of the quantile."""
        return None if self._loss == "Expectile" else self._level

    @property
    def expectile(self) -> float | None:
        """The level of the expectile."""
        return self._level if self._loss == "Expectile" else None

    @property
    def _nonnegative_loss(self) -> str:
        return self._loss if self._has_log_link else ""

    @property
    def n_outputs(self) -> int:
        """The number of targets; every tree is for all of them."""
        return self._n_outputs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's predictions in the unit of the targets, (n_rows,) or (n_rows, n_outputs)."""
        return np.asarray(self.model.predict(X, **self._options))

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns; CatBoost numbers those of arrays."""
        return _unless_numbered(self._names)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return int(self.model.tree_count_)

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self._names)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``2**depth - 1`` in a symmetric tree."""
        return as_leaf_numbers(self.model.calc_leaf_indexes(X), _num_samples(X), self.model)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the model came to its leaf values."""
        return boosting(self.model, trained_loss(self.model), y, sample_weight)

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the model came to the values that its leaves have for one output."""
        outputs = {"output": output, "n_outputs": self._n_outputs}
        return boosting(self.model, trained_loss(self.model), y, sample_weight, **outputs)

    def _trees(self) -> tuple[Trees, Link | None]:
        if self._n_outputs > 1:
            raise NotWalkableError("its leaves hold vectors")
        return read_trees(self.model, self._has_log_link)

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return arrays and pandas frames of numbers; CatBoost itself reads everything else."""
        if not is_pandas(X):
            return None if getattr(X, "dtype", None) == np.bool_ else array_as_floats(X, np.float64)
        return frame_as_floats(X, np.float64, "iuf") if names_of(X) == self._names else None

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        return self.leaves(matrix), self.predict(matrix)


def _level(loss: str) -> float | None:
    """Return the level of a loss such as ``"Quantile:alpha=0.9"``; CatBoost's own default is 0.5."""
    name, _, parameters = loss.partition(":")
    if name not in ("Quantile", "Expectile", "LogLinQuantile"):
        return None
    given = dict(part.partition("=")[::2] for part in parameters.split(";"))
    return float(given.get("alpha", 0.5))


def trained_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was trained on; CatBoost numbers those of arrays."""
    return _unless_numbered([str(name) for name in model.feature_names_])


def _unless_numbered(names: list[str]) -> list[str] | None:
    return None if names == [str(i) for i in range(len(names))] else list(names)


def trained_loss(model: Any) -> str:
    """Return the name of the loss that a model was trained with."""
    metadata = model.get_metadata()
    if "params" in metadata:
        return str(model.get_all_params().get("loss_function", ""))
    # `sum_models` keeps no parameters, and the loss only where all summands have the same.
    return str(json.loads(metadata.get("loss_function", "{}")).get("type", ""))
