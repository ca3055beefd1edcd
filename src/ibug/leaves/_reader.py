"""What ibug asks of a trained model of any library, and which reader answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ibug._typing import Floats
from ibug.exceptions import ModelNotFittedError, UnsupportedModelError
from ibug.leaves._recipe import Bagging, Boosting, RecipeError

# By the name of the library that defines a model's class: those of its models that are supported. The module
# `ibug.leaves._<library>` is imported when a model is of it, and has a function `find(model) -> type[LeafReader]`.
# scikit-learn comes last: the boosters' estimators are also scikit-learn's.
_LIBRARIES = {
    "lightgbm": "LightGBM LGBMRegressor and Booster",
    "xgboost": "XGBoost XGBRegressor, XGBRFRegressor and Booster",
    "catboost": "CatBoost CatBoostRegressor and CatBoost",
    "sklearn": "scikit-learn GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor and "
    "ExtraTreesRegressor",
}
#: The boosters among them, by the names that they are imported by.
BOOSTERS = tuple(name for name in _LIBRARIES if name != "sklearn")
_AROUND_THEM = (
    "a Pipeline, FrozenEstimator or TransformedTargetRegressor around one of these; and for several targets XGBoost, "
    "CatBoost's MultiRMSE, forests, MultiOutputRegressor and RegressorChain"
)


class LeafReader(ABC):
    """What ibug asks of a trained model: its point predictions, and the leaf of each row in each tree."""

    #: How leaf numbers are found, in words.
    how = "the library's own functions"
    #: The number of trees that `predict` uses.
    n_trees: int
    #: The number of targets that the model predicts.
    n_outputs: int = 1
    #: The output that each tree is for, (n_trees,); None where every tree is for all outputs.
    outputs: NDArray[np.intp] | None = None
    #: The number and the names of the columns that the model was trained on; None where it does not know them.
    n_features: int | None
    feature_names: list[str] | None
    #: Whether `predict` is in another unit than what the model itself predicts: that of the target.
    changes_unit: bool = False
    #: The level of the quantile or expectile that the model was trained for; None if it was for something else.
    quantile: float | None = None
    expectile: float | None = None
    #: The name of the loss if it is for targets from 0 on (Poisson, gamma or Tweedie); else empty.
    nonnegative_loss: str = ""
    #: The characters that the library refuses in names of columns, as a class of a regular expression; none by default.
    refused_characters = ""
    #: Whether a model of this kind makes an array of its rows: the model that it wraps does not see names of columns.
    drops_names = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.n_features = n_features_of(model)
        self.feature_names = feature_names_of(model)

    def prepare(self, X: Any = None) -> None:  # noqa: B027 - most readers need no preparation
        """Get ready to read fast, checked on the training rows X; a reader works without it as well."""

    @property
    def predicts_by_walk(self) -> bool:
        """Whether `read` finds predictions along with the leaves, so that they cost next to nothing."""
        return False

    def read(self, X: Any, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return leaf numbers of shape (n_rows, n_trees) and the predictions, the fastest way.

        Leaf numbers are those of `library_leaves`; predictions equal those of `predict` to a relative 1e-9 at least.
        """
        return self.read_leaves(X, n_jobs=n_jobs), self.predict(X)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return the leaf numbers the fastest way, or for trees (n_chosen,) their columns: (n_rows, n_chosen)."""
        leaves = self.library_leaves(X)
        return leaves if trees is None else leaves[:, trees]

    @abstractmethod
    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers by the library, of shape (n_rows, n_trees), for the trees that `predict` uses."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own predictions, untouched, of shape (n_rows,), or (n_rows, n_outputs) of several."""
        prediction = np.asarray(self.model.predict(X))
        multioutput = self.n_outputs > 1
        if prediction.ndim != 1 + multioutput or (multioutput and prediction.shape[1] != self.n_outputs):
            expected = f"{self.n_outputs} numbers" if multioutput else "one number"
            raise UnsupportedModelError(
                f"{type(self.model).__name__} predicts an array of shape {prediction.shape}. ibug needs {expected} per "
                "row: for several targets, give a model that was trained on all of them (MultiOutputRegressor, say)."
            )
        return prediction

    def state(self) -> dict[str, Any]:
        """Return what `prepare` has found out with the training rows, as plain values, for `restore`."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - most readers find nothing out
        """Get ready as `prepare` did, without the training rows: read the same way, so that answers stay the same."""

    @property
    def nonnegative_losses(self) -> list[str]:
        """By output, the name of a loss for targets from 0 on; else empty."""
        return [self.nonnegative_loss] * self.n_outputs

    @property
    def n_training_rows(self) -> int | None:
        """The number of rows that the first tree was trained on, if the model has it; with weights it is their sum."""
        sizes = self.leaf_sizes(1)
        return None if sizes is None else round(float(sizes[0].sum())) or None

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of training rows in each leaf of the first n trees, by its number; with weights, their sum.

        None where the model does not have them. There may be gaps in the numbers of a tree's leaves, of size 0.
        """
        return None

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting | Bagging:
        """Return how the model came to the leaf values of the trees for one output; y, sample_weight (n_rows,)."""
        raise RecipeError("it is not known how its leaf values are made")

    def written_as(self, name: str) -> str:
        """Return a column's name as the library writes it."""
        return name

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the model that a model of this kind wraps, fitted where the wrapper is; None if it wraps none."""
        return None

    @classmethod
    def refuses(cls, name: str) -> bool:
        """Return whether the library refuses a column of this name."""
        return bool(cls.refused_characters and re.search(cls.refused_characters, name))

    @classmethod
    def spelled(cls, name: str) -> str:
        """Return the nearest name that the library takes."""
        return re.sub(cls.refused_characters, "_", name) if cls.refused_characters else name


def library_of(model: Any) -> str | None:
    """Return the name that a model's library is imported by; None if it is none of those supported."""
    libraries = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    return next((library for library in _LIBRARIES if library in libraries), None)


def reader_type(model: Any) -> type[LeafReader]:
    """Find the reader for a model, fitted or not, by its class."""
    if isinstance(model, type):
        raise unsupported(model, f"it is a class; write {model.__name__}() for a model")
    library = library_of(model)
    if library is None:
        raise unsupported(model)
    found: type[LeafReader] = import_module(f"ibug.leaves._{library}").find(model)
    if (inner := found.wrapped(model)) is not None:
        reader_type(inner)  # so that a pipeline around a classifier is refused right away
    return found


def reader_of(model: Any) -> LeafReader:
    """Make the reader of a fitted model, after checking that ibug can work with the model."""
    return reader_type(model)(model)


def n_features_of(model: Any) -> int | None:
    """Return the number of columns that a scikit-learn estimator was fitted with, or None."""
    n_features = getattr(model, "n_features_in_", None)
    return None if n_features is None else int(n_features)


def feature_names_of(model: Any) -> list[str] | None:
    """Return the column names that a scikit-learn estimator was fitted with, or None."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def catboost_training(model: Any) -> tuple[str, list[str] | None]:
    """Return the name of the loss that a CatBoost model was trained with, and those of its columns, or None."""
    library = import_module("ibug.leaves._catboost")
    return library.trained_loss(model), library.trained_names(model)


def unsupported(model: Any, reason: str = "") -> UnsupportedModelError:
    """Make the error for a model that cannot be used, with the reason and the way out."""
    cls = model if isinstance(model, type) else type(model)
    name = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
    supported = "; ".join([*_LIBRARIES.values(), _AROUND_THEM])
    return UnsupportedModelError(f"ibug cannot use this {name}{reason and ': ' + reason}. Supported are {supported}.")


def require_fitted(model: Any, is_fitted: bool | None = None) -> None:
    """Raise ModelNotFittedError unless the library calls its model fitted; None asks scikit-learn."""
    if is_fitted is None:
        try:
            check_is_fitted(model)
            is_fitted = True
        except NotFittedError:
            is_fitted = False
    if not is_fitted:
        raise ModelNotFittedError(
            f"This {type(model).__name__} is not fitted: fit it before you wrap it, or use prefit=False. If you did, "
            "and scikit-learn made an unfitted copy (clone, cross-validation), wrap it in a FrozenEstimator."
        )


def as_leaf_numbers(leaves: Any, n_rows: int, model: Any) -> NDArray[np.int32]:
    """Bring a library's answer to int32 of shape (n_rows, n_trees); some drop an axis, some answer in floats."""
    array = np.ascontiguousarray(np.asarray(leaves).reshape(n_rows, -1), np.int32)
    if array.shape[1] == 0:
        raise unsupported(model, "it has no trees")
    return array
