"""The contract of a spread: a fitted rule that makes a variance of neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ibug._typing import Floats

#: Values of the neighbours by quantity, nearest first, each of shape (n_rows, k); k may differ.
Neighbors = Mapping[str, Floats]

#: The weights of neighbours that count alike.
ALIKE: Neighbors = MappingProxyType({})


class Spread(ABC):
    """A rule that makes a variance of each row's neighbours. Its state is plain numbers and arrays."""

    #: The class's name in a stored state.
    kind: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """What ``IBUGRegressor.spread_`` shows."""

    @property
    @abstractmethod
    def usual_k(self) -> int:
        """The number of neighbours that stands for the rule where one is to be shown."""

    @property
    @abstractmethod
    def n_neighbors(self) -> dict[str, int]:
        """How many neighbours are needed, by quantity."""

    @property
    @abstractmethod
    def shape(self) -> str:
        """The quantity that tells the shape of a distribution."""

    @abstractmethod
    def variance(self, neighbors: Neighbors, weights: Neighbors = ALIKE) -> Floats:
        """Return the variances, (n_rows,)."""

    @abstractmethod
    def at_most(self, limits: Mapping[str, int]) -> Spread:
        """Return the same rule for rows that have fewer neighbours: at most these numbers, by quantity."""

    @abstractmethod
    def scaled(self, number: Callable[[int], int]) -> Spread:
        """Return the same rule for other numbers of neighbours, each a function of the number before."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what `from_state` needs: strings, numbers, lists of them, and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Spread:
        """Return the spread that has this state."""
