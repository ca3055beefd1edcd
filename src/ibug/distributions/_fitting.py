"""What fits of families share: checked values and moments, and the likelihood along one unknown number per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ibug._compiled import likelihood
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ibug.distributions._base import Distribution

# Equal values have no spread: they get this share of their own size, or a number whose square can still be divided by.
_LEAST_RELATIVE_SPREAD = 1e-8
_LEAST_SPREAD = 1e-100
_LOG_RATIOS = (-6.0, 3.0)  # where a standard deviation is looked for, relative to its unit
_GOLDEN = (np.sqrt(5) - 1) / 2
_N_CANDIDATES = 17
_MOST_SECTIONS = 80
_LEAST_SECTION = 1e-7  # of the width that the caller calls one


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


def checked_moments(n: int, loc: ArrayLike | None, scale: ArrayLike | None) -> tuple[Floats | None, Floats | None]:
    """Return the means and standard deviations to keep, each of shape ``(n,)`` or None."""
    mean, spread = _per_row("means to keep (loc)", n, loc), _per_row("standard deviations to keep (scale)", n, scale)
    if mean is not None and not np.isfinite(mean).all():
        raise InvalidInputError("The means to keep (loc) must be finite.")
    if spread is not None and not ((spread > 0).all() and np.isfinite(spread).all()):
        raise InvalidInputError("The standard deviations to keep (scale) must be finite and above zero.")
    return mean, spread


def _per_row(what: str, n: int, given: ArrayLike | None) -> Floats | None:
    if given is None:
        return None
    array = np.asarray(given, np.float64)
    if array.shape not in ((), (1,), (n,)):
        raise InvalidInputError(f"Expected one number for each of {n} rows as {what}; got the shape {array.shape}.")
    return np.broadcast_to(array, (n,))


def center_and_spread(values: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations of each row, (n,) each; the latter always above zero."""
    center, spread = per_row(likelihood.moments, values)
    return center, np.maximum(spread, np.maximum(_LEAST_RELATIVE_SPREAD * np.abs(center), _LEAST_SPREAD))


def most_likely_number(
    distribution_at: Callable[[Floats], Distribution], values: Floats, low: Floats, high: Floats, start: Floats
) -> Floats:
    """Return for each row the number between low and high whose distribution makes the row's values most likely, (n,).

    A grid finds the hill, golden sections its top; the start is a candidate, so that nothing less likely is returned.

    Shapes: values (n, k); low, high, start (n,).
    """

    def likelihood(t: Floats) -> Floats:
        return np.asarray(distribution_at(t).logpdf(values).mean(axis=1))

    step = (high - low) / (_N_CANDIDATES - 1)
    points = np.stack([start, *(low + i * step for i in range(_N_CANDIDATES))])
    heights = np.stack([likelihood(point) for point in points])
    top = points[heights.argmax(axis=0), np.arange(len(start))]
    a, b = np.maximum(top - step, low), np.minimum(top + step, high)
    left, right = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_left, at_right = likelihood(left), likelihood(right)
    for _ in range(_MOST_SECTIONS):
        if np.all(b - a <= _LEAST_SECTION):
            break
        lower = at_left > at_right  # then the top is in the left part
        a, b = np.where(lower, a, left), np.where(lower, right, b)
        point = np.where(lower, b - _GOLDEN * (b - a), a + _GOLDEN * (b - a))
        height = likelihood(point)
        left, right = np.where(lower, point, right), np.where(lower, left, point)
        at_left, at_right = np.where(lower, height, at_right), np.where(lower, at_left, height)
    middle = (a + b) / 2
    return np.asarray(np.where(likelihood(middle) >= heights.max(axis=0), middle, top))


def most_likely_spread(distribution_at: Callable[[Floats], Distribution], values: Floats, unit: Floats) -> Floats:
    """Return for each row the most likely standard deviation, (n,), looked for around a unit.

    Shapes: values (n, k); unit (n,).
    """
    ends = (np.full(len(values), end) for end in (*_LOG_RATIOS, 0.0))
    return np.asarray(unit * np.exp(most_likely_number(lambda t: distribution_at(unit * np.exp(t)), values, *ends)))
