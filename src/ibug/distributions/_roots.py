"""Roots of increasing functions for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats

Point = tuple[Floats, Floats]  # where, and the function's value there

_MOST_STEPS = 200
_TOLERANCE = 1e-13  # of the function's value, relative where that is above 1
_LEAST_WIDTH = 2 * np.finfo(float).eps  # of the bracket, relative to its ends


def solve_increasing(function: Callable[[Floats], Floats], target: Floats, low: Floats, high: Floats) -> Floats:
    """Return x between low and high with function(x) = target, all arrays of one shape.

    By Chandrupatla's method (1997): inverse quadratic interpolation where the last three points allow it, else the
    middle of the bracket, so that it ends for any increasing function. Where the function jumps over the target, the
    result is the place of the jump.
    """
    enough = _TOLERANCE * np.maximum(np.abs(target), 1.0)
    # (a, at_a) is the newest point, (b, at_b) the other end of the bracket, (c, at_c) the point before.
    a, at_a, b, at_b = low, function(low) - target, high, function(high) - target
    c, at_c = a, at_a
    share = np.full(a.shape, 0.5)
    going = (at_a < -enough) & (at_b > enough)  # else an end is right, or rounding has put the root beyond it
    for _ in range(_MOST_STEPS):
        if not np.any(going):
            break
        x = np.where(going, a + share * (b - a), a)
        value = function(x) - target
        same_side = (value > 0) == (at_a > 0)
        c, at_c = _choose(going, _choose(same_side, (a, at_a), (b, at_b)), (c, at_c))
        b, at_b = _choose(going & ~same_side, (a, at_a), (b, at_b))
        a, at_a = _choose(going, (x, value), (a, at_a))
        tiny = _LEAST_WIDTH * np.maximum(np.abs(a), np.abs(b))
        going &= (np.minimum(np.abs(at_a), np.abs(at_b)) > enough) & (np.abs(b - a) > tiny)
        share = _share(going, a, at_a, b, at_b, c, at_c)
    return np.where(np.abs(at_a) <= np.abs(at_b), a, b)


def _choose(where: NDArray[np.bool_], one: Point, other: Point) -> Point:
    return np.where(where, one[0], other[0]), np.where(where, one[1], other[1])


def _share(
    going: NDArray[np.bool_], a: Floats, at_a: Floats, b: Floats, at_b: Floats, c: Floats, at_c: Floats
) -> Floats:
    """Return which share of the way from a to b the next point is."""
    usable = going & (b != a) & (c != b) & (c != a) & np.isfinite(at_a) & np.isfinite(at_b) & np.isfinite(at_c)
    usable &= (at_a != at_b) & (at_b != at_c) & (at_a != at_c)
    # What stands for the others is only there to be divided by.
    a, at_a, b, at_b, c, at_c = (
        np.where(usable, value, instead)
        for value, instead in zip((a, at_a, b, at_b, c, at_c), (1, 1, 2, 2, 3, 3), strict=True)
    )
    position, height = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    smooth = (np.square(height) < position) & (np.square(1 - height) < 1 - position)
    quadratic = at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (
        at_c - at_b
    )
    least = np.minimum(_LEAST_WIDTH * np.maximum(np.abs(a), np.abs(b)) / np.abs(b - a), 0.5)
    return np.where(usable & smooth, np.clip(quadratic, least, 1 - least), 0.5)
