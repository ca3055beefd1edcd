"""Rows as the plain matrix of numbers that a library would make of them, where that is sure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def array_as_floats(X: Any, integers: type[np.floating[Any]]) -> NDArray[Any] | None:
    """Return a NumPy array as contiguous floats of single or double precision.

    Parameters
    ----------
    X
        The rows that a user handed in.
    integers
        The floats that integers and booleans become.

    Returns
    -------
    ndarray of float32 or float64, shape (n_rows, n_features), or None
        The rows themselves where they are floats; ``None`` for what is no plain array of numbers.
    """
    if type(X) is not np.ndarray or X.ndim != 2:
        return None
    if X.dtype == np.float64 or X.dtype == np.float32:
        return np.ascontiguousarray(X)
    return X.astype(integers, order="C") if X.dtype.kind in "biu" or X.dtype == np.float16 else None


def is_pandas(X: Any) -> bool:
    """Tell whether X is a pandas data frame, without importing pandas."""
    if type(X) is np.ndarray:
        return False
    return any(cls.__name__ == "DataFrame" and cls.__module__.partition(".")[0] == "pandas" for cls in type(X).__mro__)


def names_of(X: Any) -> list[str]:
    """Return the names of a pandas frame's columns."""
    return [str(name) for name in X.columns.tolist()]


def frame_as_floats(X: Any, floats: type[np.floating[Any]], kinds: str = "biuf") -> NDArray[Any] | None:
    """Return a pandas frame of plain numeric columns as contiguous floats; ``None`` for any other frame.

    Parameters
    ----------
    X
        A pandas frame.
    floats
        The type that all columns become.
    kinds
        The kinds of columns that are taken, as NumPy names them: booleans, integers, floats.
    """
    if not all(isinstance(dtype, np.dtype) and dtype.kind in kinds for dtype in X.dtypes.tolist()):
        return None
    return np.ascontiguousarray(X.to_numpy(dtype=floats))
