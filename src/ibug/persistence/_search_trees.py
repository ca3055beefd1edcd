"""KDTree and BallTree of a loaded scikit-learn model: their own code believes every number in them."""

from __future__ import annotations

from typing import Any

import numpy as np

# What `__getstate__` of both returns, in this order, since scikit-learn 0.19.
_DATA, _INDICES, _NODES, _BOUNDS, _LEAF_SIZE, _N_LEVELS, _N_NODES = range(7)


def is_whole(tree: Any) -> bool:
    """Tell whether no node of a search tree leads out of the tree's own arrays, so that every search stays inside."""
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
