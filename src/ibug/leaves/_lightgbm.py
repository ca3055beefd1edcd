"""LightGBM: leaf numbers from ``predict(pred_leaf=True)``."""

from __future__ import annotations

import re
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug.leaves._base import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._matrix import array_as_floats, frame_with_codes, is_pandas
from ibug.leaves.recipe import Boosting
from ibug.leaves.recipe._lightgbm import boosting
from ibug.leaves.walk import Answers, Link, Trees, WalkingReader
from ibug.leaves.walk._lightgbm import read_trees

_NONNEGATIVE = {"poisson": "Poisson", "gamma": "gamma", "tweedie": "Tweedie"}
_NO_REGRESSION = {"binary", "multiclass", "multiclassova", "lambdarank", "rank_xendcg"}


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a LightGBM model."""
    if isinstance(model, (lightgbm.LGBMRegressor, lightgbm.Booster)):
        return LightGBMReader
    raise unsupported(model, "it is not a regressor")


class LightGBMReader(WalkingReader):
    """Reads ``LGBMRegressor`` and ``Booster``; both stop at the best iteration of early stopping in every call."""

    library = "LightGBM"
    refused_characters = r'[",:\[\]{}\r\n]'

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        native = isinstance(model, lightgbm.Booster)
        require_fitted(model, model.num_trees() > 0 if native else model.__sklearn_is_fitted__())
        booster = model if native else model.booster_
        objective = _objective(booster)
        self._quantile = _alpha(booster) if objective == "quantile" else None
        self._loss = _NONNEGATIVE.get(objective or "", "")
        if objective in _NO_REGRESSION:
            raise unsupported(model, f"its objective is {objective!r}, and ibug needs a regression model")
        if booster.num_model_per_iteration() != 1:
            raise unsupported(model, "it has several outputs")
        self._names = booster.feature_name()
        self._n_columns = booster.num_feature()

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns; LightGBM makes some up for arrays."""
        made_up = [f"Column_{i}" for i in range(len(self._names))]
        return None if self._names == made_up else list(self._names)

    @property
    def n_trees(self) -> int:
        """The number of trees, up to the best iteration of early stopping."""
        booster = self._booster()
        n_trees = int(booster.num_trees())
        return min(booster.best_iteration, n_trees) if booster.best_iteration > 0 else n_trees

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self._n_columns)

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves; a tree that is one leaf has none in its file."""
        text = self._booster().model_to_string(num_iteration=min(n, self.n_trees)).partition("\nend of trees")[0]
        found = re.findall(r"^leaf_count=(.*)$", text, re.MULTILINE)
        return [np.fromstring(line, sep=" ") for line in found] or None

    @property
    def quantile(self) -> float | None:
        """The level of the quantile."""
        return self._quantile

    @property
    def _nonnegative_loss(self) -> str:
        return self._loss

    def written_as(self, name: str) -> str:
        """Return a column's name as LightGBM writes it: with underscores for white space."""
        return re.sub(r"\s", "_", name)

    @classmethod
    def refuses(cls, name: str) -> bool:
        """Tell whether LightGBM refuses a column of this name: an empty one, or one with a character that JSON uses."""
        return not name or super().refuses(name)

    @classmethod
    def spelled(cls, name: str) -> str:
        """Return the nearest name that LightGBM takes; it makes underscores of white space by itself."""
        return re.sub(r"\s", "_", super().spelled(name)) or "_"

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``num_leaves - 1`` in each tree."""
        return as_leaf_numbers(self.model.predict(X, pred_leaf=True), _num_samples(X), self.model)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the booster came to its leaf values."""
        booster = self._booster()
        return boosting(booster, booster.best_iteration, y, sample_weight)

    def _booster(self) -> Any:
        return self.model if isinstance(self.model, lightgbm.Booster) else self.model.booster_

    def _trees(self) -> tuple[Trees, Link | None]:
        booster = self._booster()
        return read_trees(booster, booster.best_iteration)

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return what LightGBM makes of arrays and pandas frames: integers become single precision in arrays."""
        if not is_pandas(X):
            return array_as_floats(X, np.float32)
        dtypes = X.dtypes.tolist()
        categories = self._booster().pandas_categorical or []
        if categories or any(not isinstance(dtype, np.dtype) for dtype in dtypes):
            return frame_with_codes(X, np.float64, categories, recode=True)
        if any(dtype.kind not in "biuf" for dtype in dtypes):
            return None
        return np.ascontiguousarray(X.to_numpy(dtype=np.result_type(*dtypes, np.float32)))

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        booster = self._booster()
        leaves = as_leaf_numbers(booster.predict(matrix, pred_leaf=True), len(matrix), self.model)
        return leaves, np.asarray(booster.predict(matrix))


def _objective(booster: Any) -> str | None:
    # The header of the model text names the objective also where the booster was loaded from a file; none is named
    # for a user's own objective function.
    header = booster.model_to_string(num_iteration=1).partition("\nTree=")[0]
    found = re.search(r"^objective=(\w+)", header, re.MULTILINE)
    return found and found[1]


def _alpha(booster: Any) -> float:
    """Return the level of a quantile model, from the parameters at the end of the model text."""
    found = re.search(r"^\[alpha: ([^\]]+)\]", booster.model_to_string(num_iteration=1), re.MULTILINE)
    return float(found[1]) if found else 0.9  # LightGBM's default
