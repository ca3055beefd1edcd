"""The negative log likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def nll(y: ArrayLike, distribution: Any) -> float:
    """Return the mean negative log likelihood; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution
        What ``predict_dist`` returned for the same rows.
    """
    return float(-np.mean(distribution.logpdf(y)))
