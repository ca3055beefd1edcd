"""The spread of one quantity at one number of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ibug._typing import Floats
from ibug.rule.spread._base import ALIKE, Neighbors, Spread
from ibug.rule.spread._registry import QUANTITIES


@dataclass(frozen=True)
class SingleSpread(Spread):
    """The variance of the k nearest neighbours' targets (the paper's rule) or residuals.

    Parameters
    ----------
    quantity : {"targets", "residuals"}
        What it is the variance of.
    k : int
        The number of neighbours.
    """

    kind: ClassVar[str] = "single"
    quantity: str
    k: int

    @property
    def name(self) -> str:
        """The quantity."""
        return self.quantity

    @property
    def usual_k(self) -> int:
        """Return k."""
        return self.k

    @property
    def n_neighbors(self) -> dict[str, int]:
        """K of the quantity."""
        return {self.quantity: self.k}

    @property
    def shape(self) -> str:
        """The quantity."""
        return self.quantity

    def variance(self, neighbors: Neighbors, weights: Neighbors = ALIKE) -> Floats:
        """Return the variances of the first k, (n_rows,)."""
        own = weights.get(self.quantity)
        values = neighbors[self.quantity][:, : self.k]
        return QUANTITIES[self.quantity].variance(values, None if own is None else own[:, : self.k])

    def at_most(self, limits: Mapping[str, int]) -> SingleSpread:
        """Return the spread of fewer neighbours, where `limits` has a smaller number for the quantity."""
        return replace(self, k=min(self.k, limits.get(self.quantity, self.k)))

    def scaled(self, number: Callable[[int], int]) -> SingleSpread:
        """Return the spread of another number of neighbours."""
        return replace(self, k=number(self.k))

    def state(self) -> dict[str, Any]:
        """Return quantity and k."""
        return {"kind": self.kind, "quantity": self.quantity, "k": self.k}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> SingleSpread:
        """Return the spread that has this state."""
        return cls(str(state["quantity"]), int(state["k"]))
