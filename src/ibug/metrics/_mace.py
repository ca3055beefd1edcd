"""The mean absolute calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._calibration_curve import calibration_curve


def mace(y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean absolute calibration error: how far observed and nominal coverage are apart, from 0 to 0.5.

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
    return float(np.mean(np.abs(expected - observed)))
