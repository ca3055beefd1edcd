"""The skew normal law."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, owens_t

from ibug.distributions._base import Floats
from ibug.distributions._location_scale import LocationScale

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class SkewNormal(LocationScale):
    """Skew normal laws: a normal law, leaning to the right for a positive and to the left for a negative shape.

    Parameters
    ----------
    loc, scale : array-like of shape (n,) or scalar
        Location and scale; mean and standard deviation only for ``alpha = 0``.
    alpha : array-like of shape (n,) or scalar
        The shape.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "alpha")
    compiled: ClassVar[str] = "skewnormal"
    alpha: Floats

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(np.log(2) - 0.5 * np.square(z) - _HALF_LOG_2PI + log_ndtr(shape[0] * z))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(np.clip(ndtr(z) - 2 * owens_t(z, shape[0]), 0.0, 1.0))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        # |Z| is half normal whatever the shape, so that the quantile is between those of −|Z| and |Z|.
        low, high = np.broadcast_arrays(ndtri(p / 2), ndtri((1 + p) / 2))
        low, high = np.maximum(low, -40.0), np.minimum(high, 40.0)
        for _ in range(64):
            middle = (low + high) / 2
            below = SkewNormal._cdf(middle, *shape) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, (low + high) / 2))

    @staticmethod
    def _mean(*shape: Floats) -> Floats:
        return np.asarray(np.sqrt(2 / np.pi) * _delta(shape[0]))

    @staticmethod
    def _var(*shape: Floats) -> Floats:
        return np.asarray(1 - 2 / np.pi * np.square(_delta(shape[0])))


def _delta(alpha: Floats) -> Floats:
    return np.asarray(alpha / np.hypot(1.0, alpha))
