"""What distributions share that keep the values of the neighbours themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._fitting import rows_of_values
from ibug.exceptions import InvalidInputError

_CHUNK = 2**17  # doubles held at a time: few enough for a processor's cache, so that more would be slower


class SampleDistribution(Distribution):
    """Distributions with k values per row: ``values`` has shape ``(n, k)``, or ``(k,)`` for a single row."""

    values: Floats

    def __init__(self, values: ArrayLike) -> None:
        array = np.asarray(values, np.float64)
        if array.ndim not in (1, 2) or array.shape[-1] == 0:
            raise InvalidInputError(f"Values must be of shape (n, k) or (k,) with k of at least 1; got {array.shape}.")
        if not np.all(np.isfinite(array)):
            raise InvalidInputError(f"A distribution of kind {type(self).__name__} needs finite values.")
        self.values = array
        self._shape = array.shape[:-1]

    def __repr__(self) -> str:
        rows = f"{len(self)} rows of " if self._shape else ""
        return f"<{type(self).__name__}: {rows}{self.values.shape[-1]} values>"

    def var(self) -> Floats:
        return np.square(self.std())

    def _parameter(self, name: str, value: Any, shape: tuple[int, ...]) -> Floats:
        """Return a further parameter, above zero, in the given shape."""
        array = np.asarray(value, np.float64)
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise InvalidInputError(
                f"The {name} must be of shape {shape} for values of shape {self.values.shape}; got {array.shape}."
            ) from None
        if not np.all((array > 0) & np.isfinite(array)):
            raise InvalidInputError(f"The {name} must be finite and above zero.")
        return array

    @property
    def _table(self) -> Floats:
        """The values as ``(n, k)``, with n = 1 for the distribution of one row."""
        return self.values.reshape(-1, self.values.shape[-1])

    def _elements(self, argument: ArrayLike) -> tuple[Floats, NDArray[np.intp], tuple[int, ...]]:
        """Return an argument's elements, (n_elements,), the row of each, (n_elements,), and the shape of the result."""
        x = np.asarray(argument, np.float64)
        self._check_argument(x)
        if not self._shape:
            return x.reshape(-1), np.zeros(x.size, np.intp), x.shape
        n = len(self)
        if x.ndim == 2:
            m = x.shape[1]
            return np.broadcast_to(x, (n, m)).reshape(-1), np.repeat(np.arange(n), m), (n, m)
        return np.broadcast_to(x, (n,)), np.arange(n), (n,)


def blocks(count: int, width: int) -> Iterator[slice]:
    """Cut ``count`` rows of ``width`` doubles into slices of about `_CHUNK` doubles."""
    step = max(1, _CHUNK // max(1, width))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def least_width(values: Floats) -> Floats:
    """Return the width of a distribution whose values are all the same, of shape ``(n,)`` for values ``(n, k)``."""
    return np.asarray(np.maximum(1e-8 * np.abs(values).max(axis=1), 1e-100))


def resolution(values: Floats) -> Floats:
    """Return the width below which the differences of a row's values are rounding errors, of shape ``(n,)``."""
    return np.asarray(np.maximum(8 * np.finfo(float).eps * np.abs(values).max(axis=1), 1e-100))


def checked_sample(values: ArrayLike) -> Floats:
    """Return the values to fit to, of shape ``(n, k)``."""
    x = rows_of_values(values)
    if not np.all(np.isfinite(x)):
        raise InvalidInputError("The values to fit to must be finite.")
    return x


def deviation(values: Floats) -> Floats:
    """Return the rows' standard deviations, without overflow or underflow of their squares."""
    offsets = values - values[:, :1]
    width = np.abs(offsets).max(axis=1)
    safe = np.where(width > 0, width, 1.0)
    return np.asarray(safe * np.std(offsets / safe[:, None], axis=1))
