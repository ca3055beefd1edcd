"""The Gumbel distribution of maxima."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import exp1

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale

# exp(700) is near the largest double: with it log densities stay finite however far below the distribution y is.
_LARGEST_EXPONENT = 700.0


class Gumbel(LocationScale):
    """Gumbel distributions (of maxima), skewed to the right: the distribution function is exp(−exp(−z))."""

    compiled: ClassVar[str] = "gumbel"

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-z - _exp(-z))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(np.exp(-_exp(-z)))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # the quantiles of 0 and 1 are infinite
            return np.asarray(-np.log(-np.log(p)))

    @classmethod
    def _sf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.expm1(-_exp(-z)))

    @classmethod
    def _isf(cls, p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(-np.log1p(-p)))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return -_exp(-z)

    @classmethod
    def _log_sf(cls, z: Floats, *shape: Floats) -> Floats:
        return -z  # log(1 − exp(−e^{−z})) to rounding, far above

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.log(-log_p))

    @classmethod
    def _from_log_sf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return -log_p

    @staticmethod
    def _mean(*shape: Floats) -> float:
        return float(np.euler_gamma)

    @staticmethod
    def _var(*shape: Floats) -> float:
        return float(np.pi**2 / 6)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        # Friederichs and Thorarinsdottir, 2012.
        # Far above the distribution exp1 grows like z − γ, and z itself cancels half of it; from 36 on the rest is
        # rounded away.
        above = z > 36
        inner = np.where(above, 0.0, z)
        near = -inner + np.euler_gamma - np.log(2) + 2 * exp1(_exp(-inner))
        return np.asarray(np.where(above, z - np.euler_gamma - np.log(2), near))


def _exp(x: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(x, _LARGEST_EXPONENT)))
