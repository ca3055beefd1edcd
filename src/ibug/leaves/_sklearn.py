"""scikit-learn: forests and gradient boosting through ``apply``, HistGradientBoosting through its own predictors."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    _forest,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import _num_samples, check_array

from ibug._typing import Floats
from ibug.leaves._matrix import array_as_floats, frame_as_floats, is_pandas
from ibug.leaves._multioutput import ChainReader, MultiOutputReader
from ibug.leaves._reader import LeafReader, as_leaf_numbers, require_fitted, unsupported
from ibug.leaves._recipe import Bagging, Boosting, LeafValues, Loss, RecipeError, identity
from ibug.leaves._walk import (
    NAN_IS_MISSING,
    Answers,
    Link,
    NotWalkableError,
    Trees,
    WalkingReader,
    members_of,
    new_nodes,
)
from ibug.leaves._wrappers import FrozenReader, PipelineReader, TransformedTargetReader

_LOSSES_OF_HISTOGRAMS = {"squared_error": Loss(), "poisson": Loss("poisson"), "gamma": Loss("gamma")}


def find(model: Any) -> type[LeafReader]:
    """Return the reader for a scikit-learn model."""
    for cls, reader in _READERS.items():
        if isinstance(model, cls):
            return reader
    if isinstance(model, BaseSearchCV):
        raise unsupported(model, "pass its best_estimator_ with prefit=True, or search around IBUGRegressor instead")
    raise unsupported(model)


class ForestReader(LeafReader):
    """Reads the estimators that have ``apply``: forests, and with some changes gradient boosting."""

    def __init__(self, model: Any) -> None:
        require_fitted(model)
        super().__init__(model)
        self.n_trees = len(model.estimators_)
        self.n_outputs = int(getattr(model, "n_outputs_", 1))  # every tree is for all of them
        self.quantile = float(model.alpha) if getattr(model, "loss", None) == "quantile" else None
        self.nonnegative_loss = "Poisson" if getattr(model, "criterion", None) == "poisson" else ""

    def leaf_sizes(self, n: int) -> list[Floats]:
        """Return the number of rows in leaves; a bootstrap sample has as many rows as there were."""
        trees = [estimator.tree_ for estimator in np.ravel(self.model.estimators_)[:n]]
        return [np.asarray(tree.weighted_n_node_samples[tree.children_left == -1]) for tree in trees]

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers, 0 to ``n_leaves - 1`` in each tree; ``apply`` numbers all nodes."""
        nodes = as_leaf_numbers(self.model.apply(X), _num_samples(X), self.model)
        for tree, estimator in enumerate(np.ravel(self.model.estimators_)):
            is_leaf = estimator.tree_.children_left == -1
            nodes[:, tree] = (np.cumsum(is_leaf, dtype=np.int32) - 1)[nodes[:, tree]]
        return nodes

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Bagging | Boosting:
        model = self.model
        trees = [estimator.tree_ for estimator in model.estimators_]
        leaves = LeafValues.of([_leaf_means(tree, output) for tree in trees])
        parents = LeafValues.of([_means_above_leaves(tree, output) for tree in trees])
        drawn, refusal = 1.0, ""
        if model.bootstrap:
            drawn = float(np.mean([tree.n_node_samples[0] for tree in trees])) / getattr(model, "_n_samples", len(y))
        else:
            refusal = "each of its trees has seen all rows (bootstrap=False), so that none are out of bag"
        # From 1.8 on, scikit-learn draws a row as often as it weighs, and then all draws weigh the same.
        drawn_by_weight = "sample_weight" in signature(_forest._generate_sample_indices).parameters
        return Bagging(
            leaves,
            parents,
            lambda: model.estimators_samples_,
            y,
            None if drawn_by_weight else sample_weight,
            identity,
            drawn=drawn,
            refusal=refusal,
        )


class GradientBoostingReader(ForestReader):
    """Reads ``GradientBoostingRegressor``."""

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting:
        model = self.model
        if model.loss != "squared_error":
            raise RecipeError(f"its loss, {model.loss!r}, makes leaf values of medians or quantiles")
        refusal, seen = "", None
        if model.n_iter_no_change is not None:
            if isinstance(model.random_state, numbers.Integral):
                seen = _split_for_stopping(len(y), model.validation_fraction, model.random_state)
            else:
                refusal = "its early stopping has held out a part of the rows (n_iter_no_change, without random_state)"
        if model.subsample < 1:
            refusal = f"its trees have seen samples of the rows (subsample={model.subsample:g})"
        trees = [estimator.tree_ for estimator in model.estimators_.ravel()]
        return Boosting(
            LeafValues.of([model.learning_rate * _leaf_means(tree) for tree in trees]),
            Loss(),
            _constant(model.init_),
            np.full(len(trees), float(model.learning_rate)),
            y,
            sample_weight,
            identity,
            seen=seen,
            sampled=model.subsample < 1,
            refusal=refusal,
        )

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        # Its `apply` hands a data frame on to its trees, which were fitted without names and warn of them.
        return super().library_leaves(check_array(X, dtype=np.float32, accept_sparse="csr"))


class HistGradientBoostingReader(WalkingReader):
    """Reads ``HistGradientBoostingRegressor``.

    A fitted predictor holds its nodes as an array of records. In a copy of it, each leaf's value is replaced by the
    leaf's number; scikit-learn's own compiled walk over the copy, with its numeric, missing and categorical splits,
    then returns the number of the leaf that a row reaches instead of its value.
    """

    library = "scikit-learn"

    def __init__(self, model: Any) -> None:
        require_fitted(model, hasattr(model, "_predictors"))
        if model.n_trees_per_iteration_ != 1:
            raise unsupported(model, "it has several outputs")
        super().__init__(model)
        self.n_trees = len(model._predictors)
        self.quantile = float(model.quantile) if model.loss == "quantile" else None
        self.nonnegative_loss = {"poisson": "Poisson", "gamma": "gamma"}.get(model.loss, "")
        self._walks: list[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_walks": None}  # made from the model again, as the compiled walk is

    def leaf_sizes(self, n: int) -> list[Floats]:
        nodes = [trees[0].nodes for trees in self.model._predictors[:n]]
        return [part["count"][part["is_leaf"].astype(bool)].astype(np.float64) for part in nodes]

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        return self._leaves_of(self.model._preprocess_X(X, reset=False))

    def _leaves_of(self, rows: NDArray[np.float64]) -> NDArray[np.int32]:
        model = self.model
        known_categories, feature_map = model._bin_mapper.make_known_categories_bitsets()
        n_threads = _openmp_effective_n_threads()
        if self._walks is None:
            self._walks = [_numbering_leaves(trees[0]) for trees in model._predictors]
        found = np.empty((len(rows), len(self._walks)), np.int32)
        for tree, walk in enumerate(self._walks):
            found[:, tree] = walk.predict(rows, known_categories, feature_map, n_threads)
        return as_leaf_numbers(found, len(rows), model)

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting:
        model = self.model
        if model.loss not in _LOSSES_OF_HISTOGRAMS:
            raise RecipeError(f"its loss, {model.loss!r}, makes leaf values of medians or quantiles")
        seen = None
        if model.do_early_stopping_ and getattr(model, "_use_validation_data", True):
            seen = _split_for_stopping(len(y), model.validation_fraction, model._random_seed)
        suspects = {
            "monotonic_cst holds values between those of other leaves": model.monotonic_cst is not None,
            "early stopping holds out a part of the rows, which needs these in the order of the training, or X_val": (
                seen is not None
            ),
        }
        nodes = [trees[0].nodes for trees in model._predictors]
        loss = _LOSSES_OF_HISTOGRAMS[model.loss]
        return Boosting(
            LeafValues.of([part["value"][part["is_leaf"].astype(bool)] for part in nodes]),
            loss,
            float(np.asarray(model._baseline_prediction).item()),
            np.full(len(nodes), float(model.learning_rate)),
            y,
            sample_weight,
            loss.link,
            l2=float(model.l2_regularization),
            seen=seen,
            suspects=", ".join(name for name, is_set in suspects.items() if is_set),
        )

    def _trees(self) -> tuple[Trees, Link | None]:
        model, mapper = self.model, self.model._bin_mapper
        categories: list[NDArray[np.int32]] = []
        nodes = [_nodes(trees[0], categories) for trees in model._predictors]
        reading = {
            "n_features": int(mapper.n_bins_non_missing_.shape[0]),
            "others_as_missing": True,
            "start": float(np.asarray(model._baseline_prediction).item()),
        }
        bitsets, places = model._bin_mapper.make_known_categories_bitsets()
        known = {
            feature: members_of(bitsets[places[feature]])
            for feature in np.flatnonzero(model._bin_mapper.is_categorical_)
        }
        if any(not np.array_equal(members, np.arange(len(members))) for members in known.values()):
            raise NotWalkableError("its categories are not numbered from 0 on")
        n_categories = {int(feature): len(members) for feature, members in known.items()}
        return Trees.of(nodes, reading, categories, n_categories), model._loss.link.inverse

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


def _nodes(predictor: Any, categories: list[NDArray[np.int32]]) -> NDArray[Any]:
    """Return the nodes of one tree, its leaves numbered in their order, and add its sets of categories to the list."""
    given = predictor.nodes
    nodes = new_nodes(len(given))
    leaf = given["is_leaf"].astype(bool)
    nodes["value"] = given["value"]
    nodes["number"][leaf] = np.arange(leaf.sum())
    nodes["feature"][~leaf] = given["feature_idx"][~leaf]
    nodes["threshold"][~leaf] = given["num_threshold"][~leaf]
    nodes["left"][~leaf], nodes["right"][~leaf] = given["left"][~leaf], given["right"][~leaf]
    nodes["missing"] = NAN_IS_MISSING
    nodes["default_left"] = given["missing_go_to_left"]
    for node in np.flatnonzero(~leaf & given["is_categorical"].astype(bool)):
        nodes["categories"][node], nodes["threshold"][node] = len(categories), 0.0
        categories.append(members_of(predictor.raw_left_cat_bitsets[given["bitset_idx"][node]]))
    return nodes


def _leaf_means(tree: Any, output: int = 0) -> Floats:
    """Return the values of a tree's leaves for one output, in their order."""
    return np.asarray(tree.value[tree.children_left == -1, output, 0])


def _means_above_leaves(tree: Any, output: int) -> Floats:
    """Return the value of the node above each leaf, in the order of the leaves; a root has its own."""
    above = np.arange(tree.node_count)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children != -1)
        above[children[inner]] = inner
    return np.asarray(tree.value[above[tree.children_left == -1], output, 0])


def _split_for_stopping(n_rows: int, fraction: Any, seed: Any) -> Callable[[slice], NDArray[np.bool_]]:
    """Return the rows that are not held out for early stopping, which scikit-learn splits off by a seed."""
    seen = np.zeros((1, n_rows), bool)
    seen[0, train_test_split(np.arange(n_rows), test_size=fraction, random_state=seed)[0]] = True
    return lambda trees: seen


def _constant(init: Any) -> float:
    """Return what comes before the first tree, if that is one number."""
    if isinstance(init, str) and init == "zero":
        return 0.0
    if not isinstance(init, DummyRegressor):
        raise RecipeError(f"its first prediction is that of another model (init={type(init).__name__})")
    return float(np.asarray(init.constant_).item())


_READERS: dict[type, type[LeafReader]] = {
    HistGradientBoostingRegressor: HistGradientBoostingReader,
    GradientBoostingRegressor: GradientBoostingReader,
    RandomForestRegressor: ForestReader,
    ExtraTreesRegressor: ForestReader,
    Pipeline: PipelineReader,
    FrozenEstimator: FrozenReader,
    TransformedTargetRegressor: TransformedTargetReader,
    MultiOutputRegressor: MultiOutputReader,
    RegressorChain: ChainReader,
}
