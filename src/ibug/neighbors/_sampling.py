"""Which trees and which training rows count for affinities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError

TREE_ORDERS = ("first", "last", "random", "gain")


@dataclass(frozen=True)
class Sampling:
    """A share of the trees and a share of the training rows (paper, section 4.1); checked when it is made."""

    tree_fraction: float = 1.0  # in (0, 1]
    tree_order: str = "first"  # of TREE_ORDERS; "gain": those whose leaves explain most of the targets' variance
    row_fraction: float = 1.0  # in (0, 1], drawn at random

    def __post_init__(self) -> None:
        if self.tree_order not in TREE_ORDERS:
            raise InvalidInputError(f"tree_order must be one of {TREE_ORDERS}; got {self.tree_order!r}.")
        _share(1, self.tree_fraction, "tree_fraction")
        _share(1, self.row_fraction, "row_fraction")

    @property
    def takes_gains(self) -> bool:
        """Whether the trees that count are known only once all trees have been read."""
        return self.tree_order == "gain"

    def trees(self, n_trees: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the trees to read, ascending, or None for all."""
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
        """Return the rows that can be neighbours, ascending, or None for all."""
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
