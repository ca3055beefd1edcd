"""Families above a shift: where the support begins, which moments can be kept; and the lognormal distribution."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from ibug._compiled import likelihood
from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._fitting import checked_moments, most_likely_number, most_likely_spread, per_row, rows_of_values
from ibug.distributions._normal_scores import HALF_LOG_2PI
from ibug.exceptions import InvalidInputError

#: The mean stays at least this many standard deviations above the shift.
SMALLEST_MEAN = 1e-3
#: The spread relative to the mean; below it the floating point numbers near the mean have no room for quantiles.
SMALLEST_VARIATION = 1e-8

_LARGEST_EXPONENT = 690.0  # exp of it is 1e299
_MARGIN = 0.05


class Shifted(Distribution):
    """Distributions on (shift, ∞), by their parameters above the shift."""

    shift: Floats

    @classmethod
    def prepare(cls, targets: Floats) -> dict[str, Any]:
        """Return the ``shift`` at which the support begins: 0 if all targets are above it, else below the smallest."""
        y = np.asarray(targets, np.float64)
        if y.size == 0 or not np.all(np.isfinite(y)):
            raise InvalidInputError(
                f"{cls.__name__} needs finite training targets: remove the rows whose target is missing or infinite."
            )
        smallest = float(y.min())
        if smallest == y.max():
            raise InvalidInputError(
                f"{cls.__name__} cannot be fitted to training targets that are all {smallest:g}: check the targets, "
                'or choose distribution="normal".'
            )
        if smallest > 0:
            return {"shift": 0.0}
        # The likelihood has no maximum here: it grows without bound as the shift nears the smallest target. So the
        # margin is as wide as the lower tail, by its 5 % quantile: where targets thin out gradually, a new one may well
        # be below the smallest, and where they pile up at an end (zeros of a count), the end is near. The share of the
        # standard deviation keeps the logarithms of those at the end moderate.
        margin = max(float(np.quantile(y, 0.05)) - smallest, _MARGIN * float(y.std()))
        return {"shift": smallest - margin}

    @classmethod
    def fit(cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None, shift: float = 0.0) -> Self:
        """Fit one distribution per row: by maximum likelihood, or from the moments that are to be kept.

        Parameters
        ----------
        values : ndarray of shape (n, k)
            The neighbours' targets, above the shift.
        loc, scale : ndarray of shape (n,), optional
            Means and standard deviations to keep. With both, the distribution has no parameter left to fit; with one of
            them, the other one is the most likely. A model may predict a mean below the support: one below ``shift +
            scale / 1000`` is put there. A standard deviation below 1e-8 of the mean's distance to the shift is raised
            to it.
        shift
            Where the support begins, from `prepare`.
        """
        x = rows_of_values(values)
        if shift:
            x = x - shift
        if x.size and not (x.min() > 0 and x.max() < np.inf):  # false for NaN, too
            raise InvalidInputError(
                f"{cls.__name__} with shift {shift:g} needs finite values above it; the smallest given is "
                f"{x.min(initial=np.inf) + shift:g}. Learn the shift with {cls.__name__}.prepare on all training "
                "targets, or choose a distribution without a lower end."
            )
        mean, std = checked_moments(len(x), loc, scale)
        if mean is None:
            return cls._most_likely(x, shift) if std is None else cls._with_std(x, std, shift)
        mean = mean - shift
        return cls._with_mean(x, mean, shift) if std is None else cls._near_moments(x, mean, std, shift)

    @classmethod
    def _near_moments(cls, x: Floats, mean: Floats, std: Floats, shift: float) -> Self:
        """Return the distributions whose means above the shift and standard deviations are nearest to these."""
        # The last floor is for a mean at the shift without any spread, which leaves no scale but that of the values.
        mean = np.maximum(np.maximum(mean, SMALLEST_MEAN * std), SMALLEST_VARIATION * x.max(axis=1))
        return cls._with_moments(mean, np.maximum(std / mean, SMALLEST_VARIATION), shift)

    @classmethod
    def _with_mean(cls, x: Floats, mean: Floats, shift: float) -> Self:
        """Return the most likely distributions with these means above the shift."""
        center = x.mean(axis=1)
        unit = np.maximum(np.hypot(x.std(axis=1), center - mean), SMALLEST_VARIATION * center)
        std = most_likely_spread(lambda s: cls._near_moments(x, mean, s, shift), x + shift, unit)
        return cls._near_moments(x, mean, std, shift)

    @classmethod
    def _with_std(cls, x: Floats, std: Floats, shift: float) -> Self:
        """Return the most likely distributions with these standard deviations."""
        least = np.maximum(x.min(axis=1), SMALLEST_MEAN * std)
        low, high = np.log(least) - 1, np.log(np.maximum(x.max(axis=1), std)) + 1
        start = np.log(np.maximum(x.mean(axis=1), least))
        log_mean = most_likely_number(
            lambda t: cls._near_moments(x, np.exp(t), std, shift), x + shift, low, high, start
        )
        return cls._near_moments(x, np.exp(log_mean), std, shift)

    def var(self) -> Floats:
        return np.square(self.std())

    @classmethod
    @abstractmethod
    def _most_likely(cls, x: Floats, shift: float) -> Self:
        """Return the distributions of highest likelihood; x are values above the shift, shape (n, k)."""

    @classmethod
    @abstractmethod
    def _with_moments(cls, mean: Floats, variation: Floats, shift: float) -> Self:
        """Return the distributions with these means above the shift and these coefficients of variation, both (n,)."""

    def _match_above(self, y: ArrayLike) -> tuple[Floats, NDArray[np.bool_], tuple[Floats, ...]]:
        """Return y − shift where y is in the support and 1 elsewhere, which y are outside, and the other parameters."""
        value, shift, *others = self._match(y)
        x: Floats = np.asarray(value - shift)
        outside: NDArray[np.bool_] = np.asarray(x <= 0)
        return np.where(outside, 1.0, x), outside, tuple(others)


def bounded_exp(exponent: Floats) -> Floats:
    """Return exp, at most 1e299 where the exponent is finite: such quantiles and moments stay numbers."""
    return np.exp(np.where(exponent < np.inf, np.minimum(exponent, _LARGEST_EXPONENT), exponent))


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
        density = -0.5 * np.square((logarithm - mu) / sigma) - np.log(sigma) - HALF_LOG_2PI - logarithm
        return np.where(outside, -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        return np.asarray(ndtr(self.normal_score(y)))

    def ppf(self, q: ArrayLike) -> Floats:
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
