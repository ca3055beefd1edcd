"""The continuous ranked probability score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def crps(y: ArrayLike, distribution: Any) -> float:
    """Return the mean continuous ranked probability score (paper, section B), in the unit of y; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution
        What ``predict_dist`` returned for the same rows.
    """
    return float(np.mean(distribution.crps(y)))
