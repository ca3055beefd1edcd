"""The trees of a loaded scikit-learn model: scikit-learn itself checks no number in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.tree._tree import Tree

from ibug.persistence._container import FormatProblemError

_KEYS_OF_MERSENNE_TWISTER = 624
_WORDS_OF_A_SET, _CATEGORIES = 8, 256  # of a categorical split: one bit per category


def check_trees(model: Any) -> None:
    """Raise FormatProblemError for trees that no fit has made, wherever in the model they are.

    A walk down such a tree might read memory that is not its own, never end, or lead to no number. scikit-learn checks
    that rows have as many columns as the estimator says: so trees are compared with that number, not with
    their own.
    """
    for part in _parts(model):
        if isinstance(part, Tree):
            _check_tree(part, part.n_features)
        elif isinstance(part, BaseForest) and hasattr(part, "estimators_"):  # else it is not fitted
            _check_members(part, np.asarray(part.estimators_, object))
        elif isinstance(part, GradientBoostingRegressor) and hasattr(part, "estimators_"):
            _check_boosting(part)
        elif isinstance(part, HistGradientBoostingRegressor) and hasattr(part, "_predictors"):
            _check_hist_boosting(part)
        elif type(part).__name__ in ("KDTree", "BallTree"):
            _require(is_whole(part), "a search tree that leads out of its own arrays")
        elif type(part).__name__ == "BSpline":
            _check_spline(part)
        elif isinstance(part, np.random.RandomState):
            state: Any = part.get_state(legacy=True)
            _require(0 <= state[2] <= _KEYS_OF_MERSENNE_TWISTER, "random numbers that lead out of their own keys")
        elif hasattr(part, "tree_"):
            _check_tree(part.tree_, part.n_features_in_)


def _check_members(ensemble: Any, trees: NDArray[Any]) -> None:
    width = ensemble.n_features_in_
    _require(trees.size > 0 and len(trees) == trees.size, "no trees, or several in one place")
    for tree in trees.ravel():
        _require(tree.n_features_in_ == width, "a tree of another number of features than the model")
        _check_tree(tree.tree_, width)


def _check_boosting(model: Any) -> None:
    trees = np.asarray(model.estimators_, object)
    _require(trees.ndim == 2 and getattr(model, "n_trees_per_iteration_", 1) == 1, "several trees in one place")
    _check_members(model, trees)
    _require(all(tree.tree_.n_outputs == 1 for tree in trees.ravel()), "a tree with several outputs")


def _check_tree(tree: Any, n_features: Any) -> None:
    """Check a tree of the kind that forests and GradientBoosting have."""
    _require(type(tree) is Tree, "something else in the place of a tree")
    # Before any array is looked at: they are made as long as this number says.
    _require(1 <= tree.node_count == tree.capacity, "a tree that leads out of its own arrays")
    _require(tree.n_features == n_features, "a tree of another number of features than the model")
    left, right = tree.children_left, tree.children_right
    leaf = left == -1
    _check_children(left, right, leaf)
    _check_features(tree.feature[~leaf], n_features)
    _require(np.isfinite(tree.value[leaf]).all(), "a leaf whose value is not finite")


def _check_hist_boosting(model: Any) -> None:
    width, mapper = model.n_features_in_, model._bin_mapper
    _require(isinstance(width, (int, np.integer)) and width > 0, "an impossible number of features")
    categorical = np.asarray(mapper.is_categorical_)
    fits = categorical.shape == (width,) == np.shape(mapper.n_bins_non_missing_) and categorical.dtype.kind in "bui"
    _require(fits and len(mapper.bin_thresholds_) == width, "features that are not those of the model")
    for feature in np.flatnonzero(categorical):
        _check_categories(mapper.bin_thresholds_[feature])
    _check_preprocessor(model._preprocessor, width)
    _require(np.shape(model._baseline_prediction) in ((), (1,), (1, 1)), "an impossible start of its predictions")
    _require(np.isfinite(model._baseline_prediction).all(), "a start of its predictions that is not finite")
    _require(len(model._predictors) > 0, "no trees")
    for trees in model._predictors:
        _require(len(trees) == 1, "several trees in one place")
        _check_predictor(trees[0], width, categorical != 0)


def _check_categories(known: Any) -> None:
    """Check that each category is a bit of the sets: scikit-learn sets bits without asking."""
    values = np.asarray(known)
    _require(values.dtype.kind in "uif" and values.ndim == 1, "categories that are no numbers")
    _require(np.all((values >= 0) & (values < _CATEGORIES)), "a category beyond the sets of its splits")


def _check_preprocessor(preprocessor: Any, width: int) -> None:
    """Check the transformer that makes the columns where there are categories: scikit-learn does not count them."""
    if preprocessor is None:
        return
    _require(type(preprocessor) is ColumnTransformer, "an unknown way to read columns")
    made = 0
    for name, transformer, columns in preprocessor.transformers_:
        chosen = np.asarray(columns)
        n = int(chosen.sum()) if chosen.dtype == bool else chosen.size
        _require(
            np.size(preprocessor._transformer_to_input_indices[name]) == n, "other columns in frames than in arrays"
        )
        if hasattr(transformer, "categories_"):
            _require(len(transformer.categories_) == n, "categories that are not those of its columns")
        else:
            function = getattr(transformer, "func", None)
            plain = isinstance(function, partial) and function.func.__name__ == "check_array"
            _require(transformer == "passthrough" or function is None or plain, "an unknown way to read columns")
        made += n
    _require(made == width and preprocessor.n_features_in_ == width, "another number of columns than features")


def _check_predictor(predictor: Any, n_features: int, categorical: NDArray[np.bool_]) -> None:
    """Check a tree of HistGradientBoosting."""
    _require(type(predictor).__name__ == "TreePredictor", "something else in the place of a tree")
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    _require(nodes.ndim == 1 and len(nodes) > 0, "a tree without nodes")
    leaf = nodes["is_leaf"].astype(bool)
    _check_children(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), leaf)
    inner = nodes[~leaf]
    _check_features(inner["feature_idx"], n_features)
    by_set = inner["is_categorical"].astype(bool)
    _require(np.all(categorical[inner["feature_idx"][by_set]]), "a split by categories of a feature that has none")
    _require(sets.ndim == 2 and sets.shape[1] == _WORDS_OF_A_SET and sets.dtype == np.uint32, "impossible sets")
    _require(np.all(inner["bitset_idx"][by_set] < len(sets)), "a split by categories that are not there")
    _require(np.isfinite(nodes["value"][leaf]).all(), "a leaf whose value is not finite")


def _check_spline(spline: Any) -> None:
    """SciPy takes knots and coefficients of a spline as they are once it is made."""
    t, c, k = np.asarray(spline.t), np.asarray(spline.c), spline.k
    whole = isinstance(k, (int, np.integer)) and k >= 0 and t.ndim == 1 and c.ndim >= 1
    whole = whole and len(t) >= 2 * k + 2 and len(c) >= len(t) - k - 1 and bool(np.all(np.diff(t) >= 0))
    _require(whole, "a spline that leads out of its own arrays")


def _check_children(left: NDArray[Any], right: NDArray[Any], leaf: NDArray[np.bool_]) -> None:
    """Children come after their parent and are inside, so that every walk ends; each has one parent."""
    parents = np.flatnonzero(~leaf)
    for children in (left[parents], right[parents]):
        inside = np.all((children > parents) & (children < len(leaf)))
        _require(inside, "a tree that leads out of its own arrays, or back")
    n_parents = np.bincount(np.concatenate([left[parents], right[parents]]), minlength=len(leaf))
    _require(np.all(n_parents[1:] == 1), "a node with several parents, or none")


def _check_features(features: NDArray[Any], n_features: int) -> None:
    _require(np.all((features >= 0) & (features < n_features)), "a split by a feature that it does not have")


def _require(condition: Any, otherwise: str = "a part that leads out of its own arrays") -> None:
    if not condition:
        raise FormatProblemError(f"its scikit-learn model has {otherwise}")


def _parts(value: Any) -> Iterator[Any]:
    """Yield a model and all that it is made of."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or part is None or isinstance(part, (str, bytes, int, float, type)):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype.hasobject):
            waiting += list(part.ravel() if isinstance(part, np.ndarray) else part)
        elif isinstance(part, BaseEstimator) or type(part).__module__.partition(".")[0] == "sklearn":
            waiting += getattr(part, "__dict__", {}).values()


# What `__getstate__` of both returns, in this order, since scikit-learn 0.19.
_DATA, _INDICES, _NODES, _BOUNDS, _LEAF_SIZE, _N_LEVELS, _N_NODES = range(7)


def is_whole(tree: Any) -> bool:
    """Return whether all nodes of a search tree stay inside its own arrays, so that every search does."""
    state = tree.__getstate__()
    data, indices, nodes, bounds = (np.asarray(state[i]) for i in (_DATA, _INDICES, _NODES, _BOUNDS))
    n_levels, n_nodes = int(state[_N_LEVELS]), int(state[_N_NODES])
    if data.ndim != 2 or not 0 < n_levels < 60 or n_nodes != 2**n_levels - 1 or int(state[_LEAF_SIZE]) < 1:
        return False
    n_rows, n_features = data.shape
    n_bounds = 2 if type(tree).__name__ == "KDTree" else 1  # corners of a box, or the centre of a ball
    if indices.shape != (n_rows,) or nodes.shape != (n_nodes,) or bounds.shape != (n_bounds, n_nodes, n_features):
        return False
    starts, ends, is_leaf = nodes["idx_start"], nodes["idx_end"], nodes["is_leaf"]
    last_level = np.arange(n_nodes) >= n_nodes // 2  # children of node i are 2 i + 1 and 2 i + 2
    return bool(
        np.all((indices >= 0) & (indices < n_rows))
        and np.all((starts >= 0) & (starts <= ends) & (ends <= n_rows))
        and np.all(is_leaf[last_level] != 0)
    )
