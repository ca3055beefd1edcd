"""scikit-learn: forests and gradient boosting through ``apply``, and what wraps another model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_array

from ibug._typing import Floats
from ibug.leaves._base import (
    LeafReader,
    as_leaf_numbers,
    feature_names_of,
    read_leaves_of,
    reader_type,
    require_fitted,
    unsupported,
)
from ibug.leaves._hist_gradient_boosting import HistGradientBoostingReader
from ibug.leaves._matrix import some_rows
from ibug.leaves._multioutput import ChainReader, MultiOutputReader, PerTargetReader, is_fitted
from ibug.leaves.recipe import Bagging, Boosting, NotRedoneError
from ibug.leaves.recipe._sklearn import forest, gradient_boosting
from ibug.leaves.walk import CHECKED_ROWS


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a scikit-learn model."""
    for cls, reader in _READERS.items():
        if isinstance(model, cls):
            if issubclass(reader, (WrapperReader, PerTargetReader)):
                reader_type(reader.wrapped(model))  # so that a pipeline around a classifier is refused right away
            return reader
    if isinstance(model, BaseSearchCV):
        raise unsupported(model, "pass its best_estimator_ with prefit=True, or search around IBUGRegressor instead")
    raise unsupported(model)


class SklearnReader(LeafReader):
    """Reads the estimators that have ``apply``."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, is_fitted(model))

    @property
    def n_outputs(self) -> int:
        """The number of targets; every tree is for all of them."""
        return int(getattr(self.model, "n_outputs_", 1))

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Bagging:
        """Return how the forest came to the leaf values of one output."""
        return forest(self.model, y, sample_weight, output)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the forest came to its leaf values."""
        return forest(self.model, y, sample_weight)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.model.estimators_)

    def leaf_sizes(self, n: int) -> list[Floats]:
        """Return the number of rows in leaves; a bootstrap sample has as many rows as there were."""
        trees = [estimator.tree_ for estimator in np.ravel(self.model.estimators_)[:n]]
        return [np.asarray(tree.weighted_n_node_samples[tree.children_left == -1]) for tree in trees]

    @property
    def quantile(self) -> float | None:
        """The level of the quantile."""
        return float(self.model.alpha) if getattr(self.model, "loss", None) == "quantile" else None

    @property
    def _nonnegative_loss(self) -> str:
        return "Poisson" if getattr(self.model, "criterion", None) == "poisson" else ""

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``n_leaves - 1`` in each tree; ``apply`` numbers all nodes."""
        nodes = as_leaf_numbers(self.model.apply(X), _num_samples(X), self.model)
        for tree, estimator in enumerate(np.ravel(self.model.estimators_)):
            is_leaf = estimator.tree_.children_left == -1
            nodes[:, tree] = (np.cumsum(is_leaf, dtype=np.int32) - 1)[nodes[:, tree]]
        return nodes


class GradientBoostingReader(SklearnReader):
    """Reads ``GradientBoostingRegressor``."""

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the model came to its leaf values."""
        return gradient_boosting(self.model, y, sample_weight)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``n_leaves - 1`` in each tree."""
        # Its `apply` hands a data frame on to its trees, which were fitted without names and warn of them.
        return super().leaves(check_array(X, dtype=np.float32, accept_sparse="csr"))


class WrapperReader(LeafReader):
    """Reads a model that wraps another: predictions are the outer one's, leaves the inner one's."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, is_fitted(model))
        self.inner = read_leaves_of(self.wrapped(model))
        self._agrees = True

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the wrapped model: fitted, where the wrapper is."""
        raise NotImplementedError

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the wrapped model's columns."""
        return self.inner.feature_names

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves of the wrapped model."""
        return self.inner.leaf_sizes(n)

    @property
    def quantile(self) -> float | None:
        """The level of the quantile that the wrapped model was trained for."""
        return self.inner.quantile

    @property
    def expectile(self) -> float | None:
        """The level of the expectile that the wrapped model was trained for."""
        return self.inner.expectile

    @property
    def nonnegative_losses(self) -> list[str]:
        """The loss of each output of the wrapped model."""
        return self.inner.nonnegative_losses

    @property
    def n_outputs(self) -> int:
        """The number of targets of the wrapped model."""
        return self.inner.n_outputs

    @property
    def outputs(self) -> NDArray[np.intp] | None:
        """The output of each of the wrapped model's trees."""
        return self.inner.outputs

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the wrapped model came to the leaf values of one output."""
        return self.inner.recipe_of(output, y, sample_weight)

    def written_as(self, name: str) -> str:
        """Return a column's name as the wrapped model's library writes it."""
        return self.inner.written_as(name)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the inner model's leaf numbers."""
        return self.inner.leaves(self._inner_rows(X))

    @property
    def n_trees(self) -> int:
        """The number of the wrapped model's trees."""
        return self.inner.n_trees

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the wrapped model came to its leaf values."""
        return self.inner.recipe(y, sample_weight)

    def state(self) -> dict[str, Any]:
        """Return what the inner reader has found, and whether the outer model's predictions follow from it."""
        return {"inner": self.inner.state(), "agrees": self._agrees}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Get the inner reader ready."""
        self.inner.restore(state["inner"])
        self._agrees = bool(state["agrees"])

    def prepare(self, X: Any = None) -> None:
        """Prepare the inner reader, and see whether the outer model makes of its predictions what is expected."""
        if X is None:
            self.inner.prepare()
            return
        self._agrees = True  # until the rows show that it does not
        sample = some_rows(X, CHECKED_ROWS)  # so that not all rows are transformed at once
        self.inner.prepare(self._inner_rows(sample))
        if self.inner.predicts_by_walk:
            self._agrees = np.allclose(self.read(sample)[1], self.predict(sample), rtol=1e-9, atol=0, equal_nan=True)

    @property
    def how(self) -> str:  # type: ignore[override]  # a constant of other readers
        """How the inner reader finds leaf numbers, in words."""
        return self.inner.how

    @property
    def predicts_by_walk(self) -> bool:
        """Whether the inner reader does, and the outer model's predictions follow from its."""
        return self._agrees and self.inner.predicts_by_walk

    def read(self, X: Any, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return leaf numbers and predictions, the fastest way."""
        if not self.predicts_by_walk:
            return super().read(X, n_jobs=n_jobs)
        leaves, predictions = self.inner.read(self._inner_rows(X), n_jobs=n_jobs)
        return leaves, self._outer_predictions(predictions)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return the inner model's leaf numbers, the fastest way."""
        return self.inner.read_leaves(self._inner_rows(X), n_jobs=n_jobs, trees=trees)

    def _inner_rows(self, X: Any) -> Any:
        """Return the rows as the wrapped model sees them."""
        return X

    def _outer_predictions(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Return what the wrapper makes of the wrapped model's predictions, (n_rows,)."""
        return predictions


class FrozenReader(WrapperReader):
    """Reads a ``FrozenEstimator``."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the frozen model."""
        return model.estimator


class TransformedTargetReader(WrapperReader):
    """Reads a ``TransformedTargetRegressor``: neighbours and their targets are in the original unit."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the regressor of the transformed target."""
        if hasattr(model, "regressor_"):
            return model.regressor_
        if model.regressor is None:
            raise unsupported(model, "its regressor is None, which means a linear model")
        return model.regressor

    @property
    def nonnegative_losses(self) -> list[str]:
        """None: the loss is of the transformed target."""
        return [""] * self.n_outputs

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the regressor of the transformed target came to its leaf values."""
        inner = self.inner.recipe(self.model.transformer_.transform(y.reshape(-1, 1)).reshape(-1), sample_weight)
        return replace(inner, link=lambda raw: self._outer_predictions(inner.link(raw)))

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Say that it is not known: a transformation may mix the targets."""
        raise NotRedoneError("its targets are transformed together")

    def _outer_predictions(self, predictions: NDArray[Any]) -> NDArray[Any]:
        columns = predictions.reshape(len(predictions), -1)
        return np.asarray(self.model.transformer_.inverse_transform(columns)).reshape(predictions.shape)


class PipelineReader(WrapperReader):
    """Reads a ``Pipeline`` whose last step is a supported model."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the last step."""
        last = model.steps[-1][1] if model.steps else None
        if last is None or last == "passthrough":
            raise unsupported(model, "its last step is no model")
        return last

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the first step's columns: what comes out of it is named otherwise."""
        return self.inner.feature_names if len(self.model.steps) == 1 else feature_names_of(self.model)

    def written_as(self, name: str) -> str:
        """Return the name as it is, unless the only step is the model."""
        return self.inner.written_as(name) if len(self.model.steps) == 1 else name

    def _inner_rows(self, X: Any) -> Any:
        # Step by step, as the pipeline's own `predict` does it: `model[:-1].transform` would ask each transformer
        # whether it is fitted, and one without a state cannot say yes.
        for _, step in self.model.steps[:-1]:
            if step is not None and step != "passthrough":
                X = step.transform(X)
        return X


_READERS: dict[type, type[LeafReader]] = {
    HistGradientBoostingRegressor: HistGradientBoostingReader,
    GradientBoostingRegressor: GradientBoostingReader,
    RandomForestRegressor: SklearnReader,
    ExtraTreesRegressor: SklearnReader,
    Pipeline: PipelineReader,
    FrozenEstimator: FrozenReader,
    TransformedTargetRegressor: TransformedTargetReader,
    MultiOutputRegressor: MultiOutputReader,
    RegressorChain: ChainReader,
}
