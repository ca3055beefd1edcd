"""Normal scores from log-probabilities, exact however far out in a tail."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ibug._typing import Floats

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def score_of_tails(log_cdf: Floats, log_sf: Floats) -> Floats:
    """Return the normal score from the smaller one of both tails' log-probabilities."""
    low = log_cdf < log_sf
    log_tail = np.where(low, log_cdf, log_sf)
    tail = ndtri_exp(log_tail)
    far = (log_tail < -50) & np.isfinite(log_tail)
    if np.any(far):
        # Far out, the error of the inverse is small for the score, but not for the probability: one Newton step.
        v = np.where(far, tail, -10.0)
        log_cdf_v = log_ndtr(v)
        slope = np.exp(-0.5 * np.square(v) - _HALF_LOG_2PI - log_cdf_v)
        tail = np.where(far, v - (log_cdf_v - np.where(far, log_tail, 0.0)) / slope, tail)
    return np.asarray(np.where(low, tail, -tail))
