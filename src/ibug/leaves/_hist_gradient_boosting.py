"""scikit-learn's HistGradientBoosting, which has no ``apply``: its own tree walk, made to answer with leaf numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ibug._typing import Floats
from ibug.leaves._base import as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._matrix import array_as_floats, frame_as_floats, is_pandas
from ibug.leaves.recipe import Boosting
from ibug.leaves.recipe._sklearn import histogram_boosting
from ibug.leaves.walk import Answers, Link, Trees, WalkingReader
from ibug.leaves.walk._hist_gradient_boosting import read_trees


class HistGradientBoostingReader(WalkingReader):
    """Reads ``HistGradientBoostingRegressor``.

    A fitted predictor holds its nodes as an array of records. In a copy of it, each leaf's value is replaced by the
    leaf's number; scikit-learn's own compiled walk over the copy, with its numeric, missing and categorical splits,
    then returns the number of the leaf that a row reaches instead of its value.
    """

    library = "scikit-learn"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, hasattr(model, "_predictors"))
        if model.n_trees_per_iteration_ != 1:
            raise unsupported(model, "it has several outputs")
        self._walks: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_walks": None}  # made from the model again, as the compiled walk is

    def leaf_sizes(self, n: int) -> list[Floats]:
        """Return the number of rows in leaves."""
        nodes = [trees[0].nodes for trees in self.model._predictors[:n]]
        return [part["count"][part["is_leaf"].astype(bool)].astype(np.float64) for part in nodes]

    @property
    def quantile(self) -> float | None:
        """The level of the quantile."""
        return float(self.model.quantile) if self.model.loss == "quantile" else None

    @property
    def _nonnegative_loss(self) -> str:
        return {"poisson": "Poisson", "gamma": "gamma"}.get(self.model.loss, "")

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.model._predictors)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``n_leaves - 1`` in each tree."""
        return self._leaves_of(self.model._preprocess_X(X, reset=False))

    def _leaves_of(self, rows: NDArray[np.float64]) -> NDArray[np.int32]:
        model = self.model
        known_categories, feature_map = model._bin_mapper.make_known_categories_bitsets()
        n_threads = _openmp_effective_n_threads()
        if self._walks is None:
            self._walks = [_numbering_leaves(trees[0]) for trees in model._predictors]
        numbers = np.empty((len(rows), len(self._walks)), np.int32)
        for tree, walk in enumerate(self._walks):
            numbers[:, tree] = walk.predict(rows, known_categories, feature_map, n_threads)
        return as_leaf_numbers(numbers, len(rows), model)

    def recipe(self, y: Floats, sample_weight: Floats | None) -> Boosting:
        """Return how the model came to its leaf values."""
        return histogram_boosting(self.model, y, sample_weight)

    def _trees(self) -> tuple[Trees, Link | None]:
        return read_trees(self.model)

    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return what the model makes of the rows; with categories, or for other rows, its own function does that."""
        plain = None
        if self.model.is_categorical_ is None:
            plain = frame_as_floats(X, np.float64) if is_pandas(X) else array_as_floats(X, np.float64)
        return np.ascontiguousarray(self.model._preprocess_X(X, reset=False)) if plain is None else plain

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        model = self.model
        raw = np.full((len(matrix), 1), model._baseline_prediction, np.float64)
        model._predict_iterations(matrix, model._predictors, raw, is_binned=False, n_threads=1)
        return self._leaves_of(matrix), model._loss.link.inverse(raw.ravel())


def _numbering_leaves(predictor: Any) -> Any:
    nodes = predictor.nodes.copy()
    is_leaf = nodes["is_leaf"].astype(bool)
    nodes["value"][is_leaf] = np.arange(is_leaf.sum())
    return type(predictor)(nodes, predictor.binned_left_cat_bitsets, predictor.raw_left_cat_bitsets)
