"""scikit-learn's HistGradientBoosting, which has no ``apply``: its own tree walk, made to answer with leaf numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from ibug.leaves._base import LeafReader, as_leaf_numbers, require_fitted, unsupported


class HistGradientBoostingReader(LeafReader):
    """Reads ``HistGradientBoostingRegressor``.

    A fitted predictor holds its nodes as an array of records. In a copy of it, each leaf's value is replaced by the
    leaf's number; scikit-learn's own compiled walk over the copy, with its numeric, missing and categorical splits,
    then returns the number of the leaf that a row reaches instead of its value.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        require_fitted(model, hasattr(model, "_predictors"))
        if model.n_trees_per_iteration_ != 1:
            raise unsupported(model, "it has several outputs")
        self._walks: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_walks": None}  # made from the model again, so that a pickle holds its trees once

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``n_leaves - 1`` in each tree."""
        model = self.model
        rows = model._preprocess_X(X, reset=False)
        known_categories, feature_map = model._bin_mapper.make_known_categories_bitsets()
        n_threads = _openmp_effective_n_threads()
        if self._walks is None:
            self._walks = [_numbering_leaves(trees[0]) for trees in model._predictors]
        numbers = np.empty((len(rows), len(self._walks)), np.int32)
        for tree, walk in enumerate(self._walks):
            numbers[:, tree] = walk.predict(rows, known_categories, feature_map, n_threads)
        return as_leaf_numbers(numbers, len(rows), model)


def _numbering_leaves(predictor: Any) -> Any:
    nodes = predictor.nodes.copy()
    is_leaf = nodes["is_leaf"].astype(bool)
    nodes["value"][is_leaf] = np.arange(is_leaf.sum())
    return type(predictor)(nodes, predictor.binned_left_cat_bitsets, predictor.raw_left_cat_bitsets)
