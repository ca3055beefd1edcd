"""Distances between weighted points, row by row: what energy and variogram scores are made of."""

from __future__ import annotations

import numpy as np

from ibug._compiled import stack as kernel
from ibug._typing import Floats


def mean_distances(points: Floats, weights: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return E|X − y| of each measure on a row's points, and E|X − X'| of each two of them.

    Shapes: points (n, m, d); weights (n, J, m); y (n, d); to_target (n, J); to_each_other (n, J, J).
    """
    n, j = weights.shape[:2]
    to_target, to_each_other = np.empty((n, j)), np.empty((n, j, j))
    places, masses, values = (np.ascontiguousarray(part, np.float64) for part in (points, weights, y))
    kernel.mean_distances(places, masses, values, 0, n, to_target, to_each_other)
    return to_target, to_each_other


def variogram(points: Floats, weights: Floats, y: Floats, p: float) -> Floats:
    """Return Σᵢ<ⱼ (|yᵢ − yⱼ|ᵖ − E|Xᵢ − Xⱼ|ᵖ)² over pairs of targets, (n,).

    Shapes: points (n, m, d); weights (n, m); y (n, d).
    """
    total = np.zeros(len(points))
    d = y.shape[1]
    for i in range(d):
        for j in range(i + 1, d):
            expected = np.sum(weights * np.abs(points[:, :, i] - points[:, :, j]) ** p, axis=1)
            total += np.square(np.abs(y[:, i] - y[:, j]) ** p - expected)
    return total
