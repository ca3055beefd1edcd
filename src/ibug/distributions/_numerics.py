"""Roots and integrals of functions for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import ndtr

from ibug._typing import Floats

Point = tuple[Floats, Floats]  # where, and the function's value there

_MOST_STEPS = 200
_TOLERANCE = 1e-13  # of the function's value, relative where that is above 1
_LEAST_WIDTH = 2 * np.finfo(float).eps  # of the bracket, relative to its ends

_PANEL_RULE = leggauss(6)
# Panels end at the quantiles of these normal scores, so that they are narrow where the mass is.
_PANEL_SCORES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 8.2)
_PANEL_PROBABILITIES = ndtr(np.array([*(-s for s in reversed(_PANEL_SCORES[1:])), *_PANEL_SCORES]))
_MIDDLE = len(_PANEL_SCORES) - 1
# A tail below its slope: the exponent of the integrand goes from 0 to −36, which is less than rounding.
_TAIL_EDGES = (0.0, 1.5, 5.0, 13.0, 36.0)
_TAIL_RULE = leggauss(11)


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


def gauss_nodes(start: Any, stop: Any, rule: tuple[Floats, Floats]) -> Iterator[tuple[Any, Any]]:
    """Yield the places from start to stop, and their weights, of a Gauss–Legendre rule; start and stop of one shape."""
    half, center = (stop - start) / 2, (stop + start) / 2
    for node, weight in zip(*rule, strict=True):
        yield center + half * node, weight * half


def panel_edges(ppf: Callable[[Floats], Floats], lower: float, upper: float) -> Floats:
    """Return the ends of the panels, of shape (n, n_edges), from a function of probabilities (1, m) → (n, m)."""
    edges = ppf(_PANEL_PROBABILITIES[None, :])
    edges[:, 0] = lower if np.isfinite(lower) else edges[:, 0]
    edges[:, -1] = upper if np.isfinite(upper) else edges[:, -1]
    return np.maximum.accumulate(edges, axis=1)


def moments_by_value(cdf: Callable[[Floats], Floats], edges: Floats) -> tuple[Floats, Floats]:
    """Return means and variances, (n,): with the median m, E[Y] = m + ∫ above (1 − F) − ∫ below F, and so on."""
    center = edges[:, _MIDDLE]
    first, second = np.zeros(len(edges)), np.zeros(len(edges))
    for number, (begin, end) in enumerate(pairwise(edges.T)):
        for x, weight in gauss_nodes(begin, end, _PANEL_RULE):
            tail = 1 - cdf(x) if number >= _MIDDLE else -cdf(x)
            first += weight * tail
            second += 2 * weight * tail * (x - center)
    return center + first, np.maximum(second - np.square(first), 0.0)


def crps_by_value(cdf: Callable[[Floats], Floats], edges: Floats, y: Floats) -> Floats:
    """Return the integral of (F(x) − 1[x ≥ y])² for y of shape (n,)."""
    middle = np.clip(y, edges[:, 0], edges[:, -1])
    total = np.abs(y - middle)  # outside the panels the integrand is 1 up to y
    for begin, end in pairwise(edges.T):
        between = np.clip(middle, begin, end)
        for start, stop, above in ((begin, between, 0.0), (between, end, 1.0)):
            if np.array_equal(start, stop):
                continue
            for x, weight in gauss_nodes(start, stop, _PANEL_RULE):
                total += weight * np.square(cdf(x) - above)
    return total


def log_tail_integral(log_density: Callable[[Floats], Floats], slope: Floats) -> Floats:
    """Return log ∫₀^∞ exp(φ(s) − φ(0)) ds of a concave φ that falls from the start; add φ(0) for the tail's logarithm.

    A concave φ falls at least as fast as it begins to: with s = u/slope the integrand is at most exp(−u), and
    smooth, so that 44 nodes have its integral to about 1e-13.

    Shapes: slope (n,).
    """
    total = np.zeros(np.shape(slope))
    for start, stop in pairwise(_TAIL_EDGES):
        for u, weight in gauss_nodes(start, stop, _TAIL_RULE):
            total += weight * np.exp(log_density(u / slope))
    return np.asarray(np.log(total) - np.log(slope))
