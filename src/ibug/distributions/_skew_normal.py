"""The skew normal distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri, owens_t

from ibug._typing import Floats
from ibug.distributions._base import FARTHEST
from ibug.distributions._location_scale import LocationScale
from ibug.distributions._roots import solve_increasing
from ibug.exceptions import InvalidInputError

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class SkewNormal(LocationScale):
    """Skew normal distributions, leaning to the right for a positive and to the left for a negative shape.

    Parameters
    ----------
    loc, scale : array-like of shape (n,) or scalar
        Location and scale; mean and standard deviation only for ``alpha = 0``.
    alpha : array-like of shape (n,) or scalar
        The shape.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "alpha")
    compiled: ClassVar[str] = "skewnormal"
    costly_quantiles: ClassVar[bool] = True
    alpha: Floats

    def __init__(self, loc: ArrayLike, scale: ArrayLike, alpha: ArrayLike) -> None:
        super().__init__(loc, scale, alpha)
        if not np.isfinite(self.alpha).all():
            raise InvalidInputError("The shape of a skew normal distribution must be finite.")

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        leaning = np.clip(shape[0] * z, -FARTHEST, FARTHEST)
        return np.asarray(np.log(2) - 0.5 * np.square(z) - _HALF_LOG_2PI + log_ndtr(leaning))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(np.clip(ndtr(z) - 2 * owens_t(z, shape[0]), 0.0, 1.0))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        # |Z| is half normal whatever the shape, so that the quantile is between those of −|Z| and |Z|.
        p, alpha = np.broadcast_arrays(p, shape[0])
        low, high = np.maximum(ndtri(p / 2), -40.0), np.minimum(ndtri((1 + p) / 2), 40.0)
        unit = np.maximum(p, np.finfo(float).tiny)  # the solver is exact relative to 1
        inside = solve_increasing(lambda z: SkewNormal._cdf(z, alpha) / unit, np.ones(p.shape), low, high)
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))

    @classmethod
    def _sf(cls, z: Floats, *shape: Floats) -> Floats:
        return cls._cdf(-z, -shape[0])  # −Z leans the other way

    @classmethod
    def _isf(cls, p: Floats, *shape: Floats) -> Floats:
        return -cls._ppf(p, -shape[0])

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        """Return E|Z − z| − E|Z − Z'|/2, in closed form.

        With f = 2φ(z)Φ(αz) and m = E[Z] = √(2/π) α/√(1 + α²), z f = −f' + m · (density of N(0, 1/(1 + α²))): so
        E[Z; Z ≤ z] = −f(z) + m Φ(z √(1 + α²)), and E max(Z, Z') = 2 E[Z F(Z)] is a sum of probabilities that normal
        values fall into wedges, which are arcs.
        """
        (alpha,) = shape
        mean = SkewNormal._mean(alpha)
        density = np.exp(SkewNormal._logpdf(z, alpha))
        below = ndtr(np.clip(z * np.hypot(1.0, alpha), -FARTHEST, FARTHEST))
        distance = z * (2 * SkewNormal._cdf(z, alpha) - 1) + 2 * density + mean * (1 - 2 * below)
        arc = np.arcsin(np.square(alpha) / (2 + np.square(alpha)))
        half_difference = (1 + 2 / np.pi * arc) / np.sqrt(np.pi) - mean * 2 / np.pi * np.arctan(alpha / np.sqrt(2))
        return np.asarray(distance - half_difference)

    @staticmethod
    def _mean(*shape: Floats) -> Floats:
        return np.asarray(np.sqrt(2 / np.pi) * _delta(shape[0]))

    @staticmethod
    def _var(*shape: Floats) -> Floats:
        return np.asarray(1 - 2 / np.pi * np.square(_delta(shape[0])))


def _delta(alpha: Floats) -> Floats:
    return np.asarray(alpha / np.hypot(1.0, alpha))
