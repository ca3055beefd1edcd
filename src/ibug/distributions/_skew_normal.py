"""The skew normal distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp, owens_t

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale
from ibug.distributions._normal_scores import FARTHEST, HALF_LOG_2PI
from ibug.distributions._numerics import log_tail_integral, solve_increasing
from ibug.exceptions import InvalidInputError

_FAR_TAIL = 1e-9  # below it the distribution function is known by its logarithm
_TOLERANCE, _MOST_STEPS = 1e-14, 60


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
        return np.asarray(np.log(2) - 0.5 * np.square(z) - HALF_LOG_2PI + log_ndtr(leaning))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        z, alpha = np.broadcast_arrays(z, shape[0])
        probability = SkewNormal._inner_cdf(z, alpha)
        far = (probability < _FAR_TAIL) & (z < 0)
        if np.any(far):  # the difference of two nearly equal numbers
            probability[far] = np.exp(SkewNormal._log_tail(z[far], alpha[far])[0])
        return probability

    @staticmethod
    def _inner_cdf(z: Floats, alpha: Floats) -> Floats:
        return np.asarray(np.clip(ndtr(z) - 2 * owens_t(z, alpha), 0.0, 1.0))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return cls._log_tail(z, shape[0])[0]

    @staticmethod
    def _log_tail(z: Floats, alpha: Floats) -> tuple[Floats, Floats]:
        """Return log P(Z ≤ z) for z below zero, where the density has a concave logarithm and rises, and its slope."""
        here = np.clip(alpha * z, -FARTHEST, FARTHEST)
        below, log_here = np.minimum(here, 0.0), log_ndtr(here)
        log_below = np.log(erfcx(-below / np.sqrt(2)))

        def falls(s: Floats) -> Floats:
            # log Φ(x − d) − log Φ(x), for x far below zero without the squares, whose difference has no digits.
            d = np.maximum(alpha * s, 0.0)
            deep = (below - 0.5 * d) * d + np.log(erfcx((d - below) / np.sqrt(2))) - log_below
            leaning = np.clip(alpha * (z - s), -FARTHEST, FARTHEST)
            return np.asarray(s * z - 0.5 * np.square(s) + np.where(here < 0, deep, log_ndtr(leaning) - log_here))

        # φ(x)/Φ(x), which is √(2/π)/erfcx(−x/√2)
        hazard = np.sqrt(2 / np.pi) / erfcx(-np.minimum(here, 30.0) / np.sqrt(2))
        ratio = log_tail_integral(falls, -z + alpha * hazard)
        return np.asarray(SkewNormal._logpdf(z, alpha) + ratio), np.exp(-ratio)

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        alpha = shape[0]
        # P(Z ≤ z) is at most 2Φ(z), and at most exp(−z²(1 + α²)/2) for a positive shape. Its logarithm is concave, so
        # that Newton's method goes from there up to the quantile, and never beyond.
        leaning = -np.sqrt(-2 * log_p) / np.hypot(1.0, np.maximum(alpha, 0.0))
        z, going = np.maximum(ndtri_exp(log_p - np.log(2)), leaning), np.arange(len(log_p))
        for _ in range(_MOST_STEPS):
            if not len(going):
                break
            tail, slope = cls._log_tail(z[going], alpha[going])
            step = (log_p[going] - tail) / slope
            z[going] = np.minimum(z[going] + step, -np.finfo(float).tiny)
            going = going[np.abs(step) > -_TOLERANCE * z[going]]
        return np.asarray(z)

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        p, alpha = np.broadcast_arrays(p, shape[0])
        quantile = SkewNormal._inner_ppf(p, alpha)
        for tail, side in ((p, 1.0), (1 - p, -1.0)):
            below_zero = np.arctan2(1.0, side * alpha) / np.pi  # P(side · Z < 0)
            far = (tail > 0) & (tail < np.minimum(_FAR_TAIL, below_zero))
            if np.any(far):
                quantile[far] = side * SkewNormal._from_log_cdf(np.log(tail[far]), side * alpha[far])
        return quantile

    @staticmethod
    def _inner_ppf(p: Floats, alpha: Floats) -> Floats:
        # |Z| is half normal whatever the shape, so that the quantile is between those of −|Z| and |Z|.
        low, high = np.maximum(ndtri(p / 2), -40.0), np.minimum(ndtri((1 + p) / 2), 40.0)
        unit = np.maximum(p, np.finfo(float).tiny)  # the solver is exact relative to 1
        inside = solve_increasing(lambda z: SkewNormal._inner_cdf(z, alpha) / unit, np.ones(p.shape), low, high)
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))

    @classmethod
    def _mirrored(cls, *shape: Floats) -> tuple[Floats, ...]:
        return (-shape[0],)  # −Z leans the other way

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

    @classmethod
    def _mean(cls, *shape: Floats) -> Floats:
        return np.asarray(np.sqrt(2 / np.pi) * _delta(shape[0]))

    @classmethod
    def _var(cls, *shape: Floats) -> Floats:
        return np.asarray(1 - 2 / np.pi * np.square(_delta(shape[0])))


def _delta(alpha: Floats) -> Floats:
    return np.asarray(alpha / np.hypot(1.0, alpha))
