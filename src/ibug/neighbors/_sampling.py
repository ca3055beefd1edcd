"""Which trees and which training rows count for affinities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import InvalidInputError

TREE_ORDERS = ("first", "last", "random")


@dataclass(frozen=True)
class Sampling:
    """A share of the trees and a share of the training rows (paper, section 4.1); checked when it is made.

    Parameters
    ----------
    tree_fraction : float in (0, 1]
        The share of the trees.
    tree_order : {"first", "last", "random"}
        Which trees these are.
    row_fraction : float in (0, 1]
        The share of the training rows, drawn at random.
    """

    tree_fraction: float = 1.0
    tree_order: str = "first"
    row_fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.tree_order not in TREE_ORDERS:
            raise InvalidInputError(f"tree_order must be one of {TREE_ORDERS}; got {self.tree_order!r}.")
        _share(1, self.tree_fraction, "tree_fraction")
        _share(1, self.row_fraction, "row_fraction")

    def trees(self, n_trees: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the trees that count, ascending, or None for all.

        Parameters
        ----------
        n_trees
            The number of the model's trees.
        rng
            Draws random trees.
        """
        size = _share(n_trees, self.tree_fraction, "tree_fraction")
        if size == n_trees:
            return None
        if self.tree_order == "random":
            return np.sort(rng.choice(n_trees, size, replace=False))
        return np.arange(size) if self.tree_order == "first" else np.arange(n_trees - size, n_trees)

    def rows(self, n_rows: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the rows that can be neighbours, ascending, or None for all.

        Parameters
        ----------
        n_rows
            The number of training rows.
        rng
            Draws the rows.
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
