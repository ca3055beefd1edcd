"""The normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ibug._typing import Floats
from ibug.distributions._location_scale import LocationScale, center_and_spread

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class Normal(LocationScale):
    """Normal distributions.

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

    symmetric: ClassVar[bool] = True

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-0.5 * np.square(z) - _HALF_LOG_2PI)

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(ndtr(z))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        return np.asarray(ndtri(p))

    @staticmethod
    def _mean(*shape: Floats) -> float:
        return 0.0

    @staticmethod
    def _var(*shape: Floats) -> float:
        return 1.0

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return (y − μ)/σ, exact however far from the mean."""
        x, loc, scale = self._match(y)
        with np.errstate(over="ignore"):  # infinitely far, as floating point numbers tell it
            return np.asarray((x - loc) / scale)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return μ + σw."""
        score, loc, scale = self._match(w)
        return np.asarray(loc + scale * score)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        # Gneiting and Raftery, 2007, Eq. 21.
        density = np.exp(Normal._logpdf(z))
        return np.asarray(z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

    @classmethod
    def _fit_moment(cls, values: Floats, mean: Floats | None, std: Floats | None) -> tuple[Floats, Floats]:
        center, spread = center_and_spread(values)
        if mean is None:
            assert std is not None
            return center, std
        return mean, np.hypot(spread, center - mean)

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        return cls(*center_and_spread(values))
