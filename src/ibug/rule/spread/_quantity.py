"""The contract of what neighbours are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from ibug._typing import Floats


class Quantity(ABC):
    """One number per training row, whose values at the neighbours tell how far a prediction may be off."""

    #: Its name, by which it is registered.
    name: ClassVar[str]

    @abstractmethod
    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the variance of each row's neighbours, (n_rows,). Shapes: values (n_rows, k); weights (n_rows, k)."""

    @abstractmethod
    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the variance of each row's first k neighbours for several k, (n_rows, len(ks)).

        Shapes: values (n_rows, k_max); weights (n_rows, k_max).
        """

    @abstractmethod
    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return what the neighbours say the target may be, (n_rows, k): the values that a family is fitted to.

        Shapes: values (n_rows, k); mean (n_rows,).
        """
