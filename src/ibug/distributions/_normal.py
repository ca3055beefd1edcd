"""The normal law."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ibug.distributions._base import Distribution, Floats
from ibug.exceptions import InvalidInputError

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class Normal(Distribution):
    """Normal laws.

    Parameters
    ----------
    loc : array-like of shape (n,) or scalar
        The means.
    scale : array-like of shape (n,) or scalar
        The standard deviations, above zero.

    Examples
    --------
    >>> from ibug.distributions import Normal
    >>> d = Normal(loc=[0.0, 10.0], scale=[1.0, 2.0])
    >>> d.ppf([[0.05, 0.5, 0.95]]).round(2)
    array([[-1.64,  0.  ,  1.64],
           [ 6.71, 10.  , 13.29]])
    >>> d[1]
    Normal(loc=10, scale=2)
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    loc: Floats
    scale: Floats

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        super().__init__(loc=loc, scale=scale)
        if not np.all(np.isfinite(self.loc)) or not np.all((self.scale > 0) & np.isfinite(self.scale)):
            raise InvalidInputError("A normal law needs finite means and finite standard deviations above zero.")

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y."""
        x, loc, scale = self._match(y)
        return np.asarray(-0.5 * np.square((x - loc) / scale) - np.log(scale) - _HALF_LOG_2PI)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        x, loc, scale = self._match(y)
        return np.asarray(ndtr((x - loc) / scale))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""
        p, loc, scale = self._match_probability(q)
        return np.asarray(loc + scale * ndtri(p))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return (y − μ)/σ, exact however far from the mean."""
        x, loc, scale = self._match(y)
        return np.asarray((x - loc) / scale)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return μ + σw."""
        score, loc, scale = self._match(w)
        return np.asarray(loc + scale * score)

    def mean(self) -> Floats:
        """Return the means."""
        return self.loc.copy()

    def var(self) -> Floats:
        """Return the variances."""
        return np.square(self.scale)

    def std(self) -> Floats:
        """Return the standard deviations."""
        return self.scale.copy()

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score, in closed form (Gneiting and Raftery, 2007, Eq. 21)."""
        x, loc, scale = self._match(y)
        z = (x - loc) / scale
        density = np.exp(-0.5 * np.square(z) - _HALF_LOG_2PI)
        return np.asarray(scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))
