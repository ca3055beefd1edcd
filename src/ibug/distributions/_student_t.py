"""Student's t distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import beta, gammaln, stdtr, stdtrit

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale
from ibug.exceptions import InvalidInputError


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
        inside = stdtrit(shape[0], np.clip(p, 1e-300, 1 - 1e-16))
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))

    @staticmethod
    def _mean(*shape: Floats) -> float:
        return 0.0

    @staticmethod
    def _var(*shape: Floats) -> Floats:
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
