"""The likelihood along one unknown number per row: how a mean or a spread is fitted while the other is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ibug._typing import Floats
from ibug.distributions._base import Distribution

_GOLDEN = (np.sqrt(5) - 1) / 2
_GRID = 17
_MOST_STEPS = 80
_TOLERANCE = 1e-7  # of the width that the caller calls one


def most_likely_number(
    law_of: Callable[[Floats], Distribution], values: Floats, low: Floats, high: Floats, start: Floats
) -> Floats:
    """Return for each row the number between low and high whose distribution makes the row's values most likely, (n,).

    A grid finds the hill, golden sections its top; the start is a candidate, so that nothing less likely is returned.

    Shapes: values (n, k); low, high, start (n,).
    """

    def likelihood(t: Floats) -> Floats:
        return np.asarray(law_of(t).logpdf(values).mean(axis=1))

    step = (high - low) / (_GRID - 1)
    points = np.stack([start, *(low + i * step for i in range(_GRID))])
    heights = np.stack([likelihood(point) for point in points])
    top = points[heights.argmax(axis=0), np.arange(len(start))]
    a, b = np.maximum(top - step, low), np.minimum(top + step, high)
    left, right = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_left, at_right = likelihood(left), likelihood(right)
    for _ in range(_MOST_STEPS):
        if np.all(b - a <= _TOLERANCE):
            break
        lower = at_left > at_right  # then the top is in the left part
        a, b = np.where(lower, a, left), np.where(lower, right, b)
        point = np.where(lower, b - _GOLDEN * (b - a), a + _GOLDEN * (b - a))
        height = likelihood(point)
        left, right = np.where(lower, point, right), np.where(lower, left, point)
        at_left, at_right = np.where(lower, height, at_right), np.where(lower, at_left, height)
    middle = (a + b) / 2
    return np.asarray(np.where(likelihood(middle) >= heights.max(axis=0), middle, top))
