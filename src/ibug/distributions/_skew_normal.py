"""The skew normal law."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, owens_t

from ibug.distributions._base import Floats
from ibug.distributions._location_scale import LocationScale

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_CLEAR_SKEWNESS = 0.5
_MOST_ALPHA = 1e5  # by then the law is half a normal law


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
    shape_grid: ClassVar[Floats] = np.linspace(-np.arcsinh(_MOST_ALPHA), np.arcsinh(_MOST_ALPHA), 25)
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

    @classmethod
    def _start(cls, u: Floats) -> Floats:
        skewness = np.clip(np.mean(u**3, axis=1), -0.9, 0.9)
        power = np.abs(skewness) ** (2 / 3)
        delta = np.sign(skewness) * np.sqrt(np.pi / 2 * power / (power + ((4 - np.pi) / 2) ** (2 / 3)))
        # A shape of exactly 0 is a point where the likelihood is flat to the third order.
        delta = np.where(np.abs(delta) < 0.3, np.where(skewness < 0, -0.3, 0.3), np.clip(delta, -0.99, 0.99))
        alpha = delta / np.sqrt(1 - delta**2)
        scale = 1 / np.sqrt(cls._var(alpha))
        return np.stack([-scale * cls._mean(alpha), np.log(scale), np.arcsinh(alpha)], axis=1)

    @classmethod
    def _most_likely(cls, u: Floats, start: Floats) -> Floats:
        """Search from two starts: rows of little skewness can lean to either side, others can be half a normal law."""
        skewness = np.mean(u**3, axis=1)
        sign = np.where(skewness < 0, -1.0, 1.0)
        edge = sign * np.min(sign[:, None] * u, axis=1)
        half = np.maximum(np.sqrt(np.mean(np.square(u - edge[:, None]), axis=1)), 1e-3)
        half_normal = np.stack([edge - 0.05 * sign * half, np.log(half), sign * np.arcsinh(20.0)], axis=1)
        flipped = start * [-1.0, 1.0, -1.0]
        other = np.where((np.abs(skewness) < _CLEAR_SKEWNESS)[:, None], flipped, half_normal)
        first, second = super()._most_likely(u, start), super()._most_likely(u, other)
        zero, one = np.zeros(len(u)), np.ones(len(u))
        likelihood = [cls._from_standardized(t, zero, one).logpdf(u).mean(axis=1) for t in (first, second)]
        return np.where((likelihood[1] > likelihood[0])[:, None], second, first)

    @staticmethod
    def _to_shape(t: Floats) -> Floats:
        return np.asarray(np.sinh(t))  # like a logarithm for large shapes, of both signs

    @classmethod
    def _transformed_bounds(cls) -> tuple[float, ...]:
        return -float(np.arcsinh(_MOST_ALPHA)), float(np.arcsinh(_MOST_ALPHA))

    @staticmethod
    def _derivatives(z: Floats, *shape: Floats) -> tuple[Floats, ...]:
        (alpha,) = shape
        u = alpha * z
        log_cdf = log_ndtr(u)
        ratio = np.exp(-0.5 * np.square(u) - _HALF_LOG_2PI - log_cdf)  # φ/Φ
        curve = -ratio * (u + ratio)
        g = np.log(2) - 0.5 * np.square(z) - _HALF_LOG_2PI + log_cdf
        # with alpha = sinh(t)
        slope = np.hypot(1.0, alpha)
        gtt = np.square(z * slope) * curve + u * ratio
        return g, -z + alpha * ratio, -1 + alpha**2 * curve, slope * z * ratio, slope * (ratio + u * curve), gtt


def _delta(alpha: Floats) -> Floats:
    return np.asarray(alpha / np.hypot(1.0, alpha))
