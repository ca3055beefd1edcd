"""Normal scores Φ⁻¹(F(y)): from the probabilities of tails, exact however far out, and moved by calibration."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from ibug._typing import Floats

#: Standardised distances are cut here, so that their squares stay finite.
FARTHEST = 1e150
HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
# From here on the score is the root of −2 log p to rounding, but for a term that grows like its logarithm.
_DEEP = -1e8
_LEAST_LOG_TAIL = -5e299  # its score is FARTHEST
_UNRESOLVED = 38.0  # a score whose probability is about the smallest number above zero; it stands for infinite ones


def score_of_tails(log_cdf: Floats, log_sf: Floats) -> Floats:
    """Return the normal score from the smaller one of both tails' log-probabilities."""
    low = log_cdf < log_sf
    tail = score_of_log_tail(np.where(low, log_cdf, log_sf))
    return np.asarray(np.where(low, tail, -tail))


def score_of_log_tail(log_tail: Floats) -> Floats:
    """Return the normal score below which the probability has this logarithm, exact enough for probabilities."""
    tail = ndtri_exp(log_tail)
    deep = log_tail < _DEEP
    far = (log_tail < -50) & ~deep
    if np.any(far):
        # Far out, the error of the inverse is small for the score, but not for the probability: one Newton step.
        v = np.where(far, tail, -10.0)
        log_cdf_v = log_ndtr(v)
        slope = np.exp(-0.5 * np.square(v) - HALF_LOG_2PI - log_cdf_v)
        tail = np.where(far, v - (log_cdf_v - np.where(far, log_tail, 0.0)) / slope, tail)
    if np.any(deep):
        # log Φ(−v) = −v²/2 − log v − log √(2π) + O(1/v²)
        square = np.maximum(-2 * np.maximum(log_tail, _LEAST_LOG_TAIL), -_DEEP)
        deep_tail = -np.sqrt(square - np.log(square) - 2 * HALF_LOG_2PI)
        tail = np.where(deep & np.isfinite(log_tail), deep_tail, tail)
    return np.asarray(tail)


def mean_distance(z: Floats) -> Floats:
    """Return E|Z − z| = 2 φ(z) + z (2 Φ(z) − 1) for standard normal Z."""
    return np.asarray(z * (2 * ndtr(z) - 1) + 2 * np.exp(-0.5 * np.square(z) - HALF_LOG_2PI))


def standardised(x: Floats, center: Floats, scale: Floats) -> Floats:
    """Return (x − center)/scale, cut where squares would overflow; infinite x is cut, too."""
    with np.errstate(over="ignore"):
        z = np.asarray(x - center)
        np.divide(z, scale, out=z)
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


class Move(Protocol):
    """An increasing map of standard normal values: what had the score w has the score v afterwards."""

    def forward(self, v: Floats) -> Floats:
        """Return the scores w before the move."""

    def inverse(self, w: Floats) -> Floats:
        """Return the scores v after the move."""

    def slope_at(self, v: Floats) -> Floats:
        """Return dw/dv."""


def log_slope(move: Move, w: Floats) -> Floats:
    """Return log dΦ(v)/dΦ(w): by how much the move changes a density at scores w."""
    w = np.clip(np.where(np.isinf(w), np.copysign(_UNRESOLVED, w), w), -FARTHEST, FARTHEST)
    v = np.clip(move.inverse(w), -FARTHEST, FARTHEST)
    return np.asarray(0.5 * (w - v) * (w + v) - np.log(move.slope_at(v)))


def log_moved_density(move: Move, w: Floats) -> Floats:
    """Return log dΦ(v)/dw: the density of scores w after the move."""
    v = np.clip(move.inverse(w), -FARTHEST, FARTHEST)
    return np.asarray(-0.5 * np.square(v) - HALF_LOG_2PI - np.log(move.slope_at(v)))
