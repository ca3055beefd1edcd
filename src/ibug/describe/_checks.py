"""Checks of what plots and reports are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError


def require(estimator: Any, *methods: str) -> Any:
    """Return the estimator if it has all these methods or attributes."""
    missing = [method for method in methods if not hasattr(estimator, method)]
    if missing:
        raise InvalidInputError(
            f"A fitted estimator with {' and '.join(methods)} is expected (IBUGRegressor, say); this "
            f"{type(estimator).__name__} has no {' and no '.join(missing)}."
        )
    return estimator


def finite(values: ArrayLike, name: str, *, size: int | None = None) -> Floats:
    """Return numbers of shape (n,), all finite, at least one. Shapes: values (n,)."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not array.size or (size is not None and array.size != size):
        expected = "(n,), n of at least 1" if size is None else f"({size},)"
        raise InvalidInputError(f"{name} must have shape {expected}; got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise InvalidInputError(f"{name} contains {np.sum(~np.isfinite(array))} NaN or infinite values.")
    return array


def at_least_one(value: Any, name: str) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInputError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)
