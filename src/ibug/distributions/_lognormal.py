"""The lognormal distribution, above a shift."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from ibug._compiled import likelihood
from ibug._typing import Floats
from ibug.distributions._rows import per_row
from ibug.distributions._shifted import SMALLEST_VARIATION, Shifted, bounded_exp
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


class Lognormal(Shifted):
    """Lognormal distributions: log(Y − shift) is normal.

    Parameters
    ----------
    shift : array-like of shape (n,) or scalar
        The lower ends of the support.
    mu : array-like of shape (n,) or scalar
        The means of log(Y − shift).
    sigma : array-like of shape (n,) or scalar
        The standard deviations of log(Y − shift), above zero.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.distributions import Lognormal
    >>> d = Lognormal.fit(np.array([[1.0, 2.0, 4.0], [3.0, 3.5, 9.0]]))
    >>> d.ppf(0.5).round(3)
    array([2.   , 4.555])
    >>> Lognormal.fit(np.array([[1.0, 2.0, 4.0]]), loc=[3.0], scale=[0.5]).interval(0.9)[0].round(3)
    array([2.254])
    """

    parameters: ClassVar[tuple[str, ...]] = ("shift", "mu", "sigma")
    mu: Floats
    sigma: Floats

    def __init__(self, shift: ArrayLike, mu: ArrayLike, sigma: ArrayLike) -> None:
        super().__init__(shift=shift, mu=mu, sigma=sigma)
        if not np.all(np.isfinite(self.shift) & np.isfinite(self.mu) & (self.sigma > 0) & np.isfinite(self.sigma)):
            raise InvalidInputError(
                "A lognormal distribution needs a finite shift, a finite mu, and a finite sigma above zero."
            )

    @classmethod
    def _most_likely(cls, x: Floats, shift: float) -> Self:
        center, spread = per_row(likelihood.log_moments, x)
        return cls(shift, center, np.maximum(spread, SMALLEST_VARIATION))

    @classmethod
    def _with_moments(cls, mean: Floats, variation: Floats, shift: float) -> Self:
        variance = np.log1p(np.square(variation))
        return cls(shift, np.log(mean) - variance / 2, np.sqrt(variance))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, −∞ at the shift and below."""
        x, outside, (mu, sigma) = self._match_above(y)
        logarithm = np.log(x)
        density = -0.5 * np.square((logarithm - mu) / sigma) - np.log(sigma) - _HALF_LOG_2PI - logarithm
        return np.where(outside, -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        return np.asarray(ndtr(self.normal_score(y)))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""
        p, *_ = self._match_probability(q)
        return self.from_normal_score(ndtri(p))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return (log(y − shift) − μ)/σ, exact however far from the median."""
        x, outside, (mu, sigma) = self._match_above(y)
        return np.where(outside, -np.inf, (np.log(x) - mu) / sigma)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return shift + exp(μ + σw)."""
        score, shift, mu, sigma = self._match(w)
        return np.asarray(shift + bounded_exp(mu + sigma * score))

    def mean(self) -> Floats:
        """Return the means, shift + exp(μ + σ²/2)."""
        return np.asarray(self.shift + bounded_exp(self.mu + np.square(self.sigma) / 2))

    def var(self) -> Floats:
        """Return the variances."""
        return np.square(self.std())

    def std(self) -> Floats:
        """Return the standard deviations, exp(μ + σ²/2) √(exp(σ²) − 1)."""
        square = np.square(self.sigma)
        # √(e^s − 1) = e^{s/2} √(1 − e^{−s}), which has its large part in the exponent; half of the largest one, since
        # the variance is to stay a number, too.
        exponent = np.minimum(self.mu + square, 345.0)
        return np.asarray(np.exp(exponent) * np.sqrt(-np.expm1(-square)))

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score, in closed form (Baran and Lerch, 2015)."""
        x, outside, (mu, sigma) = self._match_above(y)
        value, shift, *_ = self._match(y)
        z = np.where(outside, -np.inf, (np.log(x) - mu) / sigma)
        log_mean = mu + np.square(sigma) / 2
        # Both parts as logarithms: the mean may be huge where the probabilities that it is multiplied by are tiny.
        below = bounded_exp(log_mean + log_ndtr(z - sigma))
        half_difference = bounded_exp(log_mean + log_ndtr(-sigma / np.sqrt(2)))
        return np.asarray((value - shift) * (2 * ndtr(z) - 1) - 2 * (below - half_difference))
