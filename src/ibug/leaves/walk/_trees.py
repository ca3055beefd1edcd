"""The trees of a model in one form for all libraries, as the compiled walk takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A node of a tree: the struct ``Node`` of cpp/walk/forest.hpp. A split sends rows with feature <= threshold to its
#: left child, a number within the tree; a leaf has the left child -1, a value, and its number in the library.
NODE = np.dtype(
    [
        ("threshold", np.float64),
        ("value", np.float64),
        ("feature", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("categories", np.int32),
        ("number", np.int32),
        ("missing", np.uint8),
        ("default_left", np.uint8),
        ("padding", np.uint16),  # named, for NumPy drops unnamed bytes when it joins arrays
    ]
)

# What a split does with missing values.
NAN_AS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2


class NotWalkableError(Exception):
    """The walk does not know this kind of model; the library's own functions are used. The message says why."""


@dataclass(frozen=True)
class Trees:
    """A model's trees.

    Parameters
    ----------
    first : ndarray of int64, shape (n_trees + 1,)
        Where each tree's nodes begin; the first of them is its root.
    nodes : ndarray of NODE, shape (n_nodes,)
        The nodes, children after their parent. In an oblivious model: the levels, one split for each.
    reading : dict
        How the library reads a row; see ``Reading`` in cpp/walk/forest.hpp.
    categories
        The sets of categories that splits refer to.
    n_categories : dict of int
        By feature, how many categories the model knows, numbered from 0, where some of them may be in no set.
    leaf_values : ndarray of shape (n_leaves,) or None
        The values of an oblivious model's leaves, tree after tree; ``None`` for all other models.
    """

    first: NDArray[np.int64]
    nodes: NDArray[Any]
    reading: dict[str, Any]
    categories: Sequence[NDArray[np.int32]] = field(default=())
    n_categories: dict[int, int] = field(default_factory=dict)
    leaf_values: NDArray[np.float64] | None = None

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return int(self.reading["n_features"])


def new_nodes(n: int) -> NDArray[Any]:
    """Return n leaves of value 0, to be filled in."""
    nodes = np.zeros(n, NODE)
    nodes["left"] = nodes["right"] = nodes["categories"] = -1
    return nodes


def offsets(counts: Sequence[int] | NDArray[np.intp]) -> NDArray[np.int64]:
    """Return where each part begins, and at the end where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
