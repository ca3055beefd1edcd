"""Which trees and which training rows count for affinities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug._validation import require
from ibug.exceptions import InvalidInputError

TREE_ORDERS = ("first", "last", "random", "gain")

#: What stands for a share that validation rows choose.
TUNE = "tune"


# Of each share that was tried: its score on the validation rows, by how much that is above the score of all trees, and
# the standard error of this difference.
_COLUMNS: dict[str, Any] = {
    "order": str,
    "fraction": np.float64,
    "score": np.float64,
    "loss": np.float64,
    "error": np.float64,
    "chosen": np.bool_,
}


def tree_table(columns: Mapping[str, Any] | None = None) -> dict[str, NDArray[Any]]:
    """Return the shares that were tried as columns, ready for a DataFrame; without any, columns of their type."""
    if columns is None:
        return {name: np.array([], kind) for name, kind in _COLUMNS.items()}
    require(columns.keys() == _COLUMNS.keys(), "its table of trees is impossible")
    table = {name: np.asarray(columns[name], kind) for name, kind in _COLUMNS.items()}
    same = all(column.shape == (len(table["order"]),) for column in table.values())
    require(same, "its table of trees is impossible")
    return table


class TreeShare(NamedTuple):
    """A share of the trees.

    ``"gain"`` are the trees whose leaves tell most of the training targets: those with the largest share of the
    targets' variance between their leaves.
    """

    order: str  # of TREE_ORDERS
    fraction: float  # in (0, 1]

    def n_trees(self, n_trees: int) -> int:
        """Return how many of n_trees trees these are."""
        return _share(n_trees, self.fraction, "tree_fraction")

    def trees(self, gains: Floats, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the trees of the share, ascending, or None for all. Shapes: gains (n_trees,)."""
        n_trees, size = len(gains), self.n_trees(len(gains))
        if size == n_trees:
            return None
        if self.order == "random":
            return np.sort(rng.choice(n_trees, size, replace=False))
        if self.order == "gain":
            return np.sort(np.argsort(-gains, kind="stable")[:size])
        return np.arange(size) if self.order == "first" else np.arange(n_trees - size, n_trees)


@dataclass(frozen=True)
class Sampling:
    """A share of the trees and a share of the training rows (paper, section 4.1); checked when it is made.

    Parameters
    ----------
    tree_fraction : float in (0, 1] or "tune"
        The share of the trees. With ``"tune"`` it is all of them until validation rows have chosen.
    tree_order : {"first", "last", "random", "gain"}
        Which trees these are.
    row_fraction : float in (0, 1]
        The share of the training rows, drawn at random.
    """

    tree_fraction: float | str = 1.0
    tree_order: str = "first"
    row_fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.tree_order not in TREE_ORDERS:
            raise InvalidInputError(f"tree_order must be one of {TREE_ORDERS}; got {self.tree_order!r}.")
        if self.tunes_trees:
            if self.tree_order not in ("first", "gain"):  # the default, or what it is
                raise InvalidInputError(
                    f'tree_fraction="tune" takes trees by their gain: leave tree_order={self.tree_order!r} out, or '
                    "give tree_fraction a number."
                )
        else:
            _share(1, self.tree_fraction, "tree_fraction", f', or "{TUNE}"')
        _share(1, self.row_fraction, "row_fraction")

    @property
    def tunes_trees(self) -> bool:
        """Whether validation rows choose the share of the trees."""
        return isinstance(self.tree_fraction, str) and self.tree_fraction == TUNE

    @property
    def share(self) -> TreeShare:
        """The trees that count, as far as they are known before validation rows have chosen."""
        return TreeShare(self.tree_order, 1.0 if isinstance(self.tree_fraction, str) else float(self.tree_fraction))

    @property
    def takes_gains(self) -> bool:
        """Whether the trees that count can be told only once all trees have been read."""
        return self.tree_order == "gain"

    def trees(self, n_trees: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the trees to read, ascending, or None for all."""
        return None if self.takes_gains else self.share.trees(np.zeros(n_trees), rng)

    def rows(self, n_rows: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """Return the rows that can be neighbours, ascending, or None for all."""
        size = self.n_rows(n_rows)
        return None if size == n_rows else np.sort(rng.choice(n_rows, size, replace=False))

    def n_rows(self, n_rows: int) -> int:
        """Return the number of training rows that can be neighbours."""
        return _share(n_rows, self.row_fraction, "row_fraction")


def _share(n: int, fraction: float | str, name: str, otherwise: str = "") -> int:
    """Return a fraction of n trees or rows, at least one."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float, np.number)) or not 0 < fraction <= 1:
        raise InvalidInputError(f"{name} must be a number above 0 and up to 1{otherwise}; got {fraction!r}.")
    return max(1, round(float(fraction) * n))
