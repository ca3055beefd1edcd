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
        """Return the variance of each row's neighbours, (n_rows,).

        Parameters
        ----------
        values : ndarray of shape (n_rows, k)
            Their values.
        weights : ndarray of shape (n_rows, k) or None
            What each counts for, above zero; None where all count alike.
        """

    @abstractmethod
    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the variance of each row's first k neighbours for several k, (n_rows, len(ks)).

        Parameters
        ----------
        values : ndarray of shape (n_rows, k_max)
            Their values, nearest first.
        ks
            The numbers of neighbours, ascending.
        weights : ndarray of shape (n_rows, k_max) or None
            What each counts for.
        """

    @abstractmethod
    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return what the neighbours say the target may be, (n_rows, k): the values that a family is fitted to.

        Parameters
        ----------
        values : ndarray of shape (n_rows, k)
            The neighbours' values.
        mean : ndarray of shape (n_rows,)
            The model's predictions of the rows.
        """
