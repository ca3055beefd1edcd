"""The uniform distribution on an interval, tilted to one end."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.distributions._base import Distribution

_LEAST_TILT = 1e-9  # that of a uniform distribution, to rounding


class Tilted(Distribution):
    """Distributions on [lower, upper] with densities ∝ exp(−rate · y): exponential, or uniform where the rate is zero.

    Parameters
    ----------
    lower, upper : array-like of shape (n,) or scalar
        The ends; the one that the density grows to is finite, both are where the rate is zero.
    rate : array-like of shape (n,) or scalar
        Above zero the density falls from the lower end, below zero from the upper one.
    """

    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper", "rate")
    lower: Floats
    upper: Floats
    rate: Floats

    def __init__(self, lower: ArrayLike, upper: ArrayLike, rate: ArrayLike) -> None:
        super().__init__(lower=lower, upper=upper, rate=rate)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, −∞ outside the ends."""
        x, lower, upper, rate = self._match(y)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        distance = np.maximum(sign * (x - top), 0.0)
        density = np.log(decay) - decay * distance - np.log(-np.expm1(-tilt))
        return np.where((x < lower) | (x > upper), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        x, lower, upper, rate = self._match(y)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        distance = sign * (np.clip(x, lower, upper) - top)
        share = np.expm1(-decay * distance) / np.expm1(-tilt)
        return np.where(sign > 0, share, 1 - share)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""
        p, lower, upper, rate = self._match_probability(q)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        with np.errstate(divide="ignore"):  # an infinite end
            distance = -np.log1p(np.where(sign > 0, p, 1 - p) * np.expm1(-tilt)) / decay
        return np.asarray(np.clip(top + sign * distance, lower, upper))

    def mean(self) -> Floats:
        """Return the means."""
        length, top, sign, decay, tilt = _form(self.lower, self.upper, self.rate)
        t = np.minimum(tilt, 700.0)
        small = t < 1e-4  # where 1 − t/(e^t − 1) cancels
        distance = np.where(small, np.where(small, length, 0.0) * (0.5 - t / 12), (1 - t / np.expm1(t)) / decay)
        return np.asarray(top + sign * distance)

    def var(self) -> Floats:
        """Return the variances."""
        length, _, _, decay, tilt = _form(self.lower, self.upper, self.rate)
        t = np.minimum(tilt, 700.0)
        small = t < 1e-2
        series = np.square(np.where(small, length, 0.0)) * (1 / 12 - np.square(t) / 240)
        return np.where(small, series, (1 - np.square(t / 2 / np.sinh(t / 2))) / np.square(decay))


def _form(lower: Floats, upper: Floats, rate: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the lengths, the end with the highest density, the way from it, the rate, and rate times length."""
    length = upper - lower
    decay: Floats = np.maximum(np.abs(rate), _LEAST_TILT / length)
    falling = rate >= 0
    return length, np.where(falling, lower, upper), np.where(falling, 1.0, -1.0), decay, decay * length
