"""The area between the calibration curve and the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._calibration_curve import calibration_curve


def miscalibration_area(
    y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None
) -> float:
    """Return the area between the curve of observed over nominal coverage and the diagonal, from 0 to 0.5.

    The curve is piecewise linear; where a piece crosses the diagonal both triangles count.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    n_levels
        Levels of central intervals, evenly spaced from 0 to 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    expected, observed = calibration_curve(y, distribution, n_levels=n_levels, sample_weight=sample_weight)
    gap = observed - expected
    left, right = np.abs(gap[:-1]), np.abs(gap[1:])
    width = np.diff(expected)
    crosses = gap[:-1] * gap[1:] < 0
    same_side = width * (left + right) / 2
    # Two triangles over the same base, which the crossing divides in the ratio of their heights.
    with_crossing = width * (np.square(left) + np.square(right)) / (2 * np.where(crosses, left + right, 1.0))
    return float(np.sum(np.where(crosses, with_crossing, same_side)))
