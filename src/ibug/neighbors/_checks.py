"""What an index takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._inputs import require
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError


def check_k(k: int, n_rows: int) -> None:
    """Raise InvalidInputError unless k is an integer from 1 to n_rows."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_rows:
        raise InvalidInputError(f"k must be an integer from 1 to the number of training rows, {n_rows}; got {k!r}.")


def check_candidates(candidates: int, k: int, n_rows: int) -> int:
    """Return the number of candidates, or raise InvalidInputError unless it is from k to n_rows."""
    if isinstance(candidates, bool) or not isinstance(candidates, (int, np.integer)) or not k <= candidates <= n_rows:
        raise InvalidInputError(
            f"candidates must be None or an integer from k={k} to the number of training rows, {n_rows}; "
            f"got {candidates!r}."
        )
    return int(candidates)


def as_leaves(leaves: ArrayLike) -> NDArray[np.int32]:
    """Return leaf numbers, (n_rows, n_trees), as int32; raise InvalidInputError for what is none."""
    array = np.asarray(leaves)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"Leaf numbers must be integers of shape (n_rows, n_trees); got {array.dtype} of shape {array.shape}."
        )
    if array.dtype.itemsize < 4:
        array = array.astype(np.int32)
    # As unsigned numbers of the same width, negative ones are the largest: one look at the array instead of two.
    if array.size and array.view(array.dtype.str.replace("i", "u")).max() > np.iinfo(np.int32).max - 1:
        raise InvalidInputError(
            f"Leaf numbers must be from 0 to 2**31 - 2; got numbers from {array.min()} to {array.max()}."
        )
    return np.require(array, np.int32, ["C_CONTIGUOUS", "ALIGNED"])


def ascending(array: Any) -> NDArray[np.intp] | None:
    """Return row or tree numbers, ascending."""
    if array is None:
        return None
    numbers = np.asarray(array)
    require(numbers.dtype.kind == "i" and numbers.ndim == 1 and numbers.size, "its row or tree numbers are impossible")
    require(numbers[0] >= 0 and np.all(np.diff(numbers) > 0), "its row or tree numbers are not ascending")
    return numbers.astype(np.intp, copy=False)


def plain_floats(array: Any, *, several: bool = False) -> Floats:
    """Return targets or residuals, (n_rows,); of several targets (n_rows, n_targets), where that may be."""
    floats = np.asarray(array)
    columns = floats.ndim == 1 or (several and floats.ndim == 2 and floats.shape[1] >= 2)
    require(floats.dtype == np.float64 and columns, "its targets or residuals are no numbers")
    return floats
