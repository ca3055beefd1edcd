"""What rows belong to: blocks that share what the model does not know, and groups that are added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug.exceptions import InvalidInputError

#: A column of X or several, an array of labels, or a function of X that returns one of these.
Labels = str | Sequence[str] | NDArray[Any] | Callable[[Any], Any] | Any
Codes = NDArray[np.intp]


def column_names(labels: Labels) -> list[str] | None:
    """Return the names if labels are columns of X by name; None if they are anything else."""
    if isinstance(labels, str):
        return [labels]
    if isinstance(labels, (list, tuple)) and labels and all(isinstance(one, str) for one in labels):
        return list(labels)
    return None


def label_columns(labels: Labels, X: Any, name: str) -> dict[str, NDArray[Any]]:
    """Return the labels of the rows X, each (n_rows,), by name.

    `name` is that of the parameter, for errors. A list of texts that are no columns of X is one label for each row.
    """
    n_rows = _num_samples(X)
    names, columns = column_names(labels), getattr(X, "columns", None)
    if names is not None and (isinstance(labels, str) or len(names) != n_rows or columns is not None):
        known = [] if columns is None else [str(one) for one in columns]
        missing = [one for one in names if one not in known]
        if not missing:
            return {one: _checked(np.asarray(X[one]), n_rows, f"{name} {one!r}") for one in names}
        if isinstance(labels, str) or len(names) != n_rows:
            there = f"its columns are {', '.join(known[:20])}" if known else "it has no names: pass an array of labels"
            raise InvalidInputError(f"{name}: X has no column {', '.join(map(repr, missing))}; {there}.")
    if callable(labels):
        return label_columns(labels(X), X, name)
    if hasattr(labels, "columns"):  # a data frame
        return {str(one): _checked(np.asarray(labels[one]), n_rows, f"{name} {one!r}") for one in labels.columns}
    array = np.asarray(labels)
    if array.ndim == 2:
        return {f"{name} {j}": _checked(array[:, j], n_rows, name) for j in range(array.shape[1])}
    return {str(getattr(labels, "name", None) or name): _checked(array, n_rows, name)}


def _checked(array: NDArray[Any], n_rows: int, name: str) -> NDArray[Any]:
    if array.shape != (n_rows,):
        raise InvalidInputError(f"{name} must have one label for each of the {n_rows} rows; got shape {array.shape}.")
    missing = array != array  # NaN and NaT
    if array.dtype == object:
        missing = missing | np.array([one is None for one in array])
    if np.any(missing):
        raise InvalidInputError(f"{name} has no label for {int(np.sum(missing))} of the {n_rows} rows: fill them in.")
    return array


def coded(array: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Return the distinct labels, ascending, and the number of each row's. Shapes: array (n_rows,)."""
    try:
        found, codes = np.unique(array, return_inverse=True)
    except TypeError:  # labels of several types
        found, codes = np.unique(array.astype(str), return_inverse=True)
    return found, codes.astype(np.intp)


def coded_together(columns: Sequence[Codes]) -> tuple[Codes, NDArray[np.intp]]:
    """Return the number of each row's combination of codes, and the combinations, (n_combinations, n_columns).

    Shapes: columns, each (n_rows,).
    """
    combinations, codes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return codes.reshape(-1).astype(np.intp), combinations.astype(np.intp)
