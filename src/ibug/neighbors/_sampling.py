"""Which trees and which training rows count for affinities, and for how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug._validation import check_flags
from ibug.exceptions import InvalidInputError

TREE_ORDERS = ("first", "last", "random", "gain")


@dataclass(frozen=True)
class Sampling:
    """Which trees and which training rows make neighbours, and how much each counts (paper, section 4.1).

    It is the parameter `sampling` of `IBUGRegressor`. Point predictions use all trees in any case.

    Parameters
    ----------
    tree_fraction : float in (0, 1], default=1.0
        The share of the trees that count for affinities.
    tree_order : {"first", "last", "random", "gain"}, default="first"
        Which trees these are. ``"gain"``: those with most of the training targets' variance between their leaves.
    row_fraction : float in (0, 1], default=1.0
        The share of the training rows, drawn at random, that can be neighbours.
    weight_neighbors : bool, default=False
        Let each training row count for its `sample_weight` among the neighbours: in the spread, and in a stack.
    output_weights : sequence of int, default=None
        Of several targets: how often the trees of each count for joint affinities; ``None``: once.

    Examples
    --------
    >>> from ibug import Sampling
    >>> Sampling(tree_fraction=0.2, tree_order="gain")
    Sampling(tree_fraction=0.2, tree_order='gain', row_fraction=1.0, weight_neighbors=False, output_weights=None)
    >>> Sampling(tree_fraction=20)
    Traceback (most recent call last):
        ...
    ibug.exceptions.InvalidInputError: tree_fraction must be a number above 0 and up to 1; got 20.
    """

    tree_fraction: float = 1.0
    tree_order: str = "first"
    row_fraction: float = 1.0
    weight_neighbors: bool = False
    output_weights: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.tree_order not in TREE_ORDERS:
            raise InvalidInputError(f"tree_order must be one of {TREE_ORDERS}; got {self.tree_order!r}.")
        _share(1, self.tree_fraction, "tree_fraction")
        _share(1, self.row_fraction, "row_fraction")
        check_flags(weight_neighbors=self.weight_neighbors)
        object.__setattr__(self, "output_weights", _whole_weights(self.output_weights))

    @property
    def takes_gains(self) -> bool:
        """Whether the trees that count are known only once all trees have been read."""
        return self.tree_order == "gain"

    def trees(self, n_trees: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the trees to read, ascending, or None for all.

        Parameters
        ----------
        n_trees, rng
            The number of trees of the model, and what draws a random order.
        """
        size = _share(n_trees, self.tree_fraction, "tree_fraction")
        if size == n_trees or self.takes_gains:
            return None
        if self.tree_order == "random":
            return np.sort(rng.choice(n_trees, size, replace=False))
        return np.arange(size) if self.tree_order == "first" else np.arange(n_trees - size, n_trees)

    def trees_of_most_gain(self, gains: Floats) -> NDArray[np.intp]:
        """Return the trees that explain most, ascending. Shapes: gains (n_trees,)."""
        size = _share(len(gains), self.tree_fraction, "tree_fraction")
        return np.sort(np.argsort(-gains, kind="stable")[:size])

    def rows(self, n_rows: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the rows that can be neighbours, ascending, or None for all.

        Parameters
        ----------
        n_rows, rng
            The number of training rows, and what draws some of them.
        """
        size = self.n_rows(n_rows)
        return None if size == n_rows else np.sort(rng.choice(n_rows, size, replace=False))

    def n_rows(self, n_rows: int) -> int:
        """Return the number of training rows that can be neighbours."""
        return _share(n_rows, self.row_fraction, "row_fraction")


def _share(n: int, fraction: float, name: str) -> int:
    """Return a fraction of n trees or rows, at least one."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float, np.number)) or not 0 < fraction <= 1:
        raise InvalidInputError(f"{name} must be a number above 0 and up to 1; got {fraction!r}.")
    return max(1, round(float(fraction) * n))


def _whole_weights(weights: Any) -> tuple[int, ...] | None:
    """Return the weights of the targets' trees as a tuple."""
    if weights is None:
        return None
    found = tuple(weights) if isinstance(weights, (list, tuple, np.ndarray)) else ()
    whole = all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) and 1 <= one <= 100 for one in found)
    if not found or not whole:
        raise InvalidInputError(
            f"output_weights must be whole numbers from 1 to 100, one for each target, [2, 1] say; got {weights!r}."
        )
    return tuple(int(one) for one in found)
