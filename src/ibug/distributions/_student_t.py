"""Student's t distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import beta, gammaln, stdtr, stdtrit

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale
from ibug.distributions._numerics import log_tail_integral
from ibug.exceptions import InvalidInputError

_LEAST_EXACT = 1e-50  # SciPy's inverse of the distribution function is exact from here on
_LEAST_FAR, _LARGEST_LOG = 8.0, 345.0  # a tail of less than 1e-50 begins farther out; its squares are finite
_TOLERANCE, _MOST_STEPS = 1e-14, 100


class StudentT(LocationScale):
    """Student's t distributions: tails as heavy as the data have them, by the degrees of freedom.

    Parameters
    ----------
    loc, scale : array-like of shape (n,) or scalar
        Location and scale; the variance is ``scale² df / (df − 2)``, infinite for ``df <= 2``.
    df : array-like of shape (n,) or scalar
        The degrees of freedom, above zero; the CRPS is infinite for ``df <= 1``.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "df")
    compiled: ClassVar[str] = "student_t"
    symmetric: ClassVar[bool] = True
    df: Floats

    def __init__(self, loc: ArrayLike, scale: ArrayLike, df: ArrayLike) -> None:
        super().__init__(loc, scale, df)
        if not (self.df > 0).all():
            raise InvalidInputError("The degrees of freedom of a t distribution must be above zero.")

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        (df,) = shape
        constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi)
        # log1p(z²/df) without squaring a huge z
        return np.asarray(constant - (df + 1) * np.log(np.hypot(1.0, z / np.sqrt(df))))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(stdtr(shape[0], z))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        p, df = np.broadcast_arrays(p, shape[0])
        inside = np.asarray(stdtrit(df, np.clip(p, _LEAST_EXACT, 1 - 1e-16)))
        far = (p < _LEAST_EXACT) & (p > 0)
        if np.any(far):  # where SciPy's inverse is not exact, or infinite
            inside[far] = StudentT._from_log_cdf(np.log(p[far]), df[far])
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        (df,) = shape
        # P(Z ≤ z) = ∫ f(z eᵛ) |z| eᵛ dv over v ≥ 0, whose logarithm is concave in v, so far below the middle.
        weight = np.abs(z) / np.sqrt(df)
        share = np.square(weight / np.hypot(1.0, weight))

        def falls(v: Floats) -> Floats:
            # (df + 1)/2 · log of (1 + z²e²ᵛ/df)/(1 + z²/df), without squares of what is huge
            return np.asarray(v - (df + 1) / 2 * np.log1p(share * np.expm1(2 * v)))

        slope = (df + 1) * share - 1
        return np.asarray(cls._logpdf(z, df) + np.log(np.abs(z)) + log_tail_integral(falls, slope))

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        (df,) = shape
        # Far out P(Z ≤ −t) = C t^−df, and the logarithm of P is concave in log t: Newton's method, from where the tail
        # is a power. A step that goes beyond comes back from the other side.
        constant = cls._logpdf(np.zeros(df.shape), df) + (df + 1) / 2 * np.log(df) - np.log(df)
        log_t = np.maximum((constant - log_p) / df, np.log(_LEAST_FAR))
        log_t = np.minimum(log_t, np.log(np.maximum(np.sqrt(-2 * log_p), _LEAST_FAR)) + (constant - log_p) / df)
        log_t, going = np.minimum(log_t, _LARGEST_LOG), np.ones(df.shape, np.bool_)
        for _ in range(_MOST_STEPS):
            z = -np.exp(log_t[going])
            tail = cls._log_cdf(z, df[going])
            slope = -np.exp(cls._logpdf(z, df[going]) + log_t[going] - tail)
            step = np.clip((log_p[going] - tail) / slope, -1.0, 1.0)
            after = np.clip(log_t[going] + step, np.log(_LEAST_FAR), _LARGEST_LOG)
            done = np.abs(after - log_t[going]) < _TOLERANCE
            log_t[going] = after
            going[going] = ~done
            if not np.any(going):
                break
        return -np.exp(log_t)

    @classmethod
    def _var(cls, *shape: Floats) -> Floats:
        df = np.asarray(shape[0])
        return np.where(df > 2, df / np.maximum(df - 2, 1e-12), np.inf)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        # Jordan et al., 2019; infinite for at most 1 degree of freedom.
        exists = shape[0] > 1
        df = np.where(exists, shape[0], 2.0)
        density = np.exp(StudentT._logpdf(z, df))
        spread = 2 * np.sqrt(df) / (df - 1) * beta(0.5, df - 0.5) / np.square(beta(0.5, df / 2))
        # density · (df + z²) with a huge z: the density falls faster than z² rises
        tail = 2 * (density * df + density * np.abs(z) * np.abs(z)) / (df - 1)
        return np.where(exists, z * (2 * stdtr(df, z) - 1) + tail - spread, np.inf)
