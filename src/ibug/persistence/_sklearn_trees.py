"""The trees of a loaded scikit-learn model: scikit-learn itself believes every number in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ibug.persistence._format import FormatProblemError
from ibug.persistence._search_trees import is_whole

_KEYS_OF_MERSENNE_TWISTER = 624


def check_trees(model: Any) -> None:
    """Raise FormatProblemError for trees that lead out of their own arrays, wherever in the model they are.

    A walk down such a tree would read memory that is not its own.
    """
    for part in _parts(model):
        kind = type(part).__name__
        if kind == "Tree":
            _check_tree(part)
        elif kind == "TreePredictor":
            _check_predictor(part)
        elif kind in ("KDTree", "BallTree"):
            _require(is_whole(part))
        elif kind == "BSpline":
            _check_spline(part)
        elif isinstance(part, np.random.RandomState):
            state: Any = part.get_state(legacy=True)
            _require(0 <= state[2] <= _KEYS_OF_MERSENNE_TWISTER)


def _check_tree(tree: Any) -> None:
    n, width = tree.node_count, tree.n_features
    left, right = tree.children_left, tree.children_right
    _check_children(left, right, left == -1, n)
    inner = left != -1
    _require(len(left) == n and np.all((tree.feature[inner] >= 0) & (tree.feature[inner] < width)))


def _check_predictor(predictor: Any) -> None:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    _check_children(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), is_leaf, len(nodes))
    inner = nodes[~is_leaf]
    n_sets = len(predictor.raw_left_cat_bitsets)
    categorical = inner[inner["is_categorical"].astype(bool)]
    _require(np.all(categorical["bitset_idx"] < n_sets) and predictor.raw_left_cat_bitsets.shape[1:] == (8,))


def _check_spline(spline: Any) -> None:
    """SciPy takes knots and coefficients of a spline as they are once it is made."""
    t, c, k = np.asarray(spline.t), np.asarray(spline.c), spline.k
    _require(isinstance(k, (int, np.integer)) and k >= 0 and t.ndim == 1 and c.ndim >= 1)
    _require(len(t) >= 2 * k + 2 and len(c) >= len(t) - k - 1 and np.all(np.diff(t) >= 0))


def _check_children(left: NDArray[Any], right: NDArray[Any], is_leaf: NDArray[Any], n_nodes: int) -> None:
    """Children come after their parent and are inside: then every walk ends."""
    _require(n_nodes > 0)
    parents = np.flatnonzero(~is_leaf)
    for children in (left[parents], right[parents]):
        _require(np.all((children > parents) & (children < n_nodes)))


def _require(condition: Any) -> None:
    if not condition:
        raise FormatProblemError("its scikit-learn model has a tree that leads out of its own arrays")


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
