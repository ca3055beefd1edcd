"""Moments and CRPS from distribution functions alone: for distributions whose quantiles are costly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from ibug._typing import Floats

_NODES, _WEIGHTS = leggauss(6)
# Panels end at the quantiles of these normal scores, so that they are narrow where the mass is.
_SCORES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 8.2)
_PROBABILITIES = ndtr(np.array([*(-s for s in reversed(_SCORES[1:])), *_SCORES]))
_MIDDLE = len(_SCORES) - 1

Function = Callable[[Floats], Floats]


def edges_of(ppf: Function, lower: float, upper: float) -> Floats:
    """Return the ends of the panels, of shape (n, n_edges), from a function of probabilities (1, m) → (n, m)."""
    edges = ppf(_PROBABILITIES[None, :])
    edges[:, 0] = lower if np.isfinite(lower) else edges[:, 0]
    edges[:, -1] = upper if np.isfinite(upper) else edges[:, -1]
    return np.maximum.accumulate(edges, axis=1)


def moments(cdf: Function, edges: Floats) -> tuple[Floats, Floats]:
    """Return means and variances, (n,): with the median m, E[Y] = m + ∫ above (1 − F) − ∫ below F, and so on."""
    center = edges[:, _MIDDLE]
    first, second = np.zeros(len(edges)), np.zeros(len(edges))
    for number, (begin, end) in enumerate(pairwise(edges.T)):
        for x, weight in _nodes(begin, end):
            tail = 1 - cdf(x) if number >= _MIDDLE else -cdf(x)
            first += weight * tail
            second += 2 * weight * tail * (x - center)
    return center + first, np.maximum(second - np.square(first), 0.0)


def crps(cdf: Function, edges: Floats, y: Floats) -> Floats:
    """Return the integral of (F(x) − 1[x ≥ y])² for y of shape (n,)."""
    middle = np.clip(y, edges[:, 0], edges[:, -1])
    total = np.abs(y - middle)  # outside the panels the integrand is 1 up to y
    for begin, end in pairwise(edges.T):
        between = np.clip(middle, begin, end)
        for start, stop, above in ((begin, between, 0.0), (between, end, 1.0)):
            if np.array_equal(start, stop):
                continue
            for x, weight in _nodes(start, stop):
                total += weight * np.square(cdf(x) - above)
    return total


def _nodes(start: Floats, stop: Floats) -> Iterator[tuple[Floats, Floats]]:
    half, center = (stop - start) / 2, (stop + start) / 2
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        yield center + half * node, weight * half
