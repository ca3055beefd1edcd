"""Rows of values, as the compiled fits take them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError


def rows_of_values(values: ArrayLike) -> Floats:
    """Return the values as the compiled fits take them, shape (n, k)."""
    rows = np.ascontiguousarray(values, np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(f"Expected the values of each row's neighbours, shape (n, k); got {rows.shape}.")
    return rows


def per_row(function: Callable[[Floats, Floats, Floats], None], values: Floats) -> tuple[Floats, Floats]:
    """Return the two numbers, (n,) each, that a compiled function writes for each row of the values (n, k)."""
    first, second = np.empty(len(values)), np.empty(len(values))
    function(values, first, second)
    return first, second
