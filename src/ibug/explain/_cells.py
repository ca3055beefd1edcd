"""Rows whose cells come from one row or from others: what a Shapley value compares, in the form that a model takes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ibug._typing import Integers
from ibug.exceptions import InvalidInputError
from ibug.leaves import is_pandas


class Table(Protocol):
    """Rows to explain, and below them the rows that they are compared with."""

    @property
    def values(self) -> Integers:
        """Whole numbers that are equal where cells of a column are, (n_rows, n_features)."""

    def cells(self, rows: Integers) -> Any:
        """Return rows of which each cell is taken from a row of its own, in the form of X.

        Shapes: rows (n_new_rows, n_features).
        """

    def column(self, position: int) -> NDArray[Any]:
        """Return one column as an array, (n_rows,)."""


def table_of(X: Any, background: Any) -> Table:
    """Put the rows of X and those of the background into one table."""
    if issparse(X) or issparse(background):
        raise InvalidInputError("explain_width takes no sparse matrix: the model must take arrays; pass X.toarray().")
    if is_pandas(X) and is_pandas(background):
        return PandasTable(X, background)
    if hasattr(X, "vstack") and hasattr(background, "vstack"):
        return PolarsTable(X.vstack(background))
    if hasattr(X, "columns") or hasattr(background, "columns"):
        raise InvalidInputError(
            f"X and background must be of the same kind; got {type(X).__name__} and {type(background).__name__}."
        )
    return ArrayTable(np.concatenate([np.asarray(X), np.asarray(background)]))


class ArrayTable:
    """A table that is an array.

    Parameters
    ----------
    array : ndarray of shape (n_rows, n_features)
        All rows.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._columns = np.arange(array.shape[1])
        self.values = _values(array.T)

    def cells(self, rows: Integers) -> Any:
        """Return rows of which each cell is taken from a row of its own."""
        return self._array[rows, self._columns]

    def column(self, position: int) -> NDArray[Any]:
        """Return one column as an array, (n_rows,)."""
        return np.asarray(self._array[:, position])


class PandasTable:
    """A table that is a frame of pandas; each column keeps its type.

    Parameters
    ----------
    X, background : DataFrame
        The rows, and those that they are compared with.
    """

    def __init__(self, X: Any, background: Any) -> None:
        import pandas as pd

        for name, own, other in zip(X.columns, X.dtypes, background.dtypes, strict=True):
            if isinstance(own, pd.CategoricalDtype) and own != other:
                raise InvalidInputError(
                    f"The column {name!r} has other categories in the background than in X. Give both the "
                    "type that the column had in training."
                )
        self._make = pd.DataFrame
        self._names = X.columns
        table = pd.concat([X, background], ignore_index=True)
        self._columns = [table.iloc[:, j].array for j in range(table.shape[1])]
        self.values = _values([np.asarray(column) for column in self._columns])

    def cells(self, rows: Integers) -> Any:
        """Return rows of which each cell is taken from a row of its own."""
        frame = self._make({j: column.take(rows[:, j]) for j, column in enumerate(self._columns)})
        frame.columns = self._names
        return frame

    def column(self, position: int) -> NDArray[Any]:
        """Return one column as an array, (n_rows,)."""
        return np.asarray(self._columns[position])


class PolarsTable:
    """A table that is a frame of polars; each column keeps its type.

    Parameters
    ----------
    table : DataFrame
        All rows.
    """

    def __init__(self, table: Any) -> None:
        self._make = type(table)
        self._columns = {name: table[name] for name in table.columns}
        self.values = _values([self.column(j) for j in range(len(self._columns))])

    def cells(self, rows: Integers) -> Any:
        """Return rows of which each cell is taken from a row of its own."""
        return self._make([column.gather(rows[:, j]) for j, column in enumerate(self._columns.values())])

    def column(self, position: int) -> NDArray[Any]:
        """Return one column as an array, (n_rows,)."""
        column = list(self._columns.values())[position]
        numbers = np.asarray(column.to_numpy())
        return numbers if numbers.dtype.kind in "biuf" else np.asarray(column.to_list(), object)


def _values(columns: Any) -> Integers:
    """Return whole numbers that are equal where values of a column are, (n_rows, n_columns); NaN equals NaN."""
    return np.stack([_ranks(column) for column in columns], axis=1)


def _ranks(column: NDArray[Any]) -> Integers:
    comparable = column if column.dtype.kind in "biufmMUS" else np.array([repr(value) for value in column])
    return np.unique(comparable, return_inverse=True)[1].astype(np.int64).reshape(-1)
