"""Tails as log-probabilities, exact however far out: where probabilities themselves underflow, or cancel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import log_ndtr, ndtri_exp

from ibug._typing import Floats

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
# From here on the score is the root of −2 log p to rounding, but for a term that grows like its logarithm.
_DEEP = -1e8
_LEAST_LOG_TAIL = -5e299  # its score is FARTHEST
# A tail below its slope: the exponent of the integrand goes from 0 to −36, which is less than rounding.
_EDGES = (0.0, 1.5, 5.0, 13.0, 36.0)
_NODES, _WEIGHTS = leggauss(11)


def score_of_tails(log_cdf: Floats, log_sf: Floats) -> Floats:
    """Return the normal score from the smaller one of both tails' log-probabilities."""
    low = log_cdf < log_sf
    log_tail = np.where(low, log_cdf, log_sf)
    tail = ndtri_exp(log_tail)
    deep = log_tail < _DEEP
    far = (log_tail < -50) & ~deep
    if np.any(far):
        # Far out, the error of the inverse is small for the score, but not for the probability: one Newton step.
        v = np.where(far, tail, -10.0)
        log_cdf_v = log_ndtr(v)
        slope = np.exp(-0.5 * np.square(v) - _HALF_LOG_2PI - log_cdf_v)
        tail = np.where(far, v - (log_cdf_v - np.where(far, log_tail, 0.0)) / slope, tail)
    if np.any(deep):
        tail = np.where(deep & np.isfinite(log_tail), -deep_score(np.maximum(log_tail, _LEAST_LOG_TAIL)), tail)
    return np.asarray(np.where(low, tail, -tail))


def deep_score(log_tail: Floats) -> Floats:
    """Return how far out the normal score of a log-probability is, below −1e8 or so."""
    square = np.maximum(-2 * log_tail, -_DEEP)
    # log Φ(−v) = −v²/2 − log v − log √(2π) + O(1/v²)
    return np.asarray(np.sqrt(square - np.log(square) - 2 * _HALF_LOG_2PI))


def log_tail_integral(log_density: Callable[[Floats], Floats], slope: Floats) -> Floats:
    """Return log ∫₀^∞ exp(φ(s) − φ(0)) ds of a concave φ that falls from the start; add φ(0) for the tail's logarithm.

    A concave φ falls at least as fast as it begins to: with s = u/slope the integrand is at most exp(−u), and
    smooth, so that 44 nodes have its integral to about 1e-13.

    Shapes: slope (n,).
    """
    total = np.zeros(np.shape(slope))
    for start, stop in pairwise(_EDGES):
        half = (stop - start) / 2
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            u = start + half * (1 + node)
            total += half * weight * np.exp(log_density(u / slope))
    return np.asarray(np.log(total) - np.log(slope))
