"""The share of observed values inside their interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def coverage(y: ArrayLike, distribution: Any, level: float = 0.9) -> float:
    """Return the share of values inside the central interval of the given level; it should be the level.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution
        What ``predict_dist`` returned for the same rows.
    level
        The nominal coverage of the interval.
    """
    lower, upper = distribution.interval(level)
    values = np.asarray(y, np.float64)
    return float(np.mean((lower <= values) & (values <= upper)))
