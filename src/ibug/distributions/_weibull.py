"""The Weibull distribution, above a shift."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammainc, gammaln, log_ndtr, zeta

from ibug._typing import Floats
from ibug.distributions._normal_scores import score_of_log_tail
from ibug.distributions._shifted import Shifted, bounded_exp
from ibug.exceptions import InvalidInputError

_SMALLEST, _LARGEST = 0.02, 2e8
_FAR = 690.0  # the log density stays a finite number beyond it
_TOLERANCE = 1e-10
_SMALLEST_RATIO = 1e-250  # of a value to the largest of its row, so that ratios stay within floating point numbers
# The number of values that are fitted at a time: with what is computed from them they stay in the second-level cache.
_VALUES_AT_A_TIME = 2**14
_ROUNDS = 60  # bisection alone would need about 50; Newton's steps need fewer than ten

# log Γ(1 + 2e) − 2 log Γ(1 + e) = Σ ζ(j) (−e)^j (2^j − 2) / j for small e, where the difference itself cancels.
_SMALL = 0.05
_ORDERS = np.arange(2, 20)
_SERIES = zeta(_ORDERS) * (-1.0) ** _ORDERS * (2.0**_ORDERS - 2) / _ORDERS


class Weibull(Shifted):
    """Weibull distributions: P(Y > y) = exp(−((y − shift)/scale)^power).

    Parameters
    ----------
    shift : array-like of shape (n,) or scalar
        The lower ends of the support.
    scale : array-like of shape (n,) or scalar
        The scales, above zero; not the standard deviations.
    power : array-like of shape (n,) or scalar
        The shape parameters, from 0.02 to 2e8; ``shape`` is the shape of the batch.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.distributions import Weibull
    >>> d = Weibull.fit(np.array([[1.0, 2.0, 4.0], [3.0, 3.5, 9.0]]))
    >>> d.ppf(0.5).round(3)
    array([2.208, 4.93 ])
    >>> Weibull.fit(np.array([[1.0, 2.0, 4.0]]), loc=[3.0], scale=[0.5]).interval(0.9)[0].round(3)
    array([2.105])
    """

    parameters: ClassVar[tuple[str, ...]] = ("shift", "scale", "power")
    scale: Floats
    power: Floats

    def __init__(self, shift: ArrayLike, scale: ArrayLike, power: ArrayLike) -> None:
        super().__init__(shift=shift, scale=scale, power=power)
        if not np.all(np.isfinite(self.shift) & (self.scale > 0) & np.isfinite(self.scale)):
            raise InvalidInputError("A Weibull distribution needs a finite shift and a finite scale above zero.")
        if not np.all((self.power >= _SMALLEST) & (self.power <= _LARGEST)):
            raise InvalidInputError(f"The power of a Weibull distribution must be from {_SMALLEST} to {_LARGEST:g}.")

    @classmethod
    def _most_likely(cls, x: Floats, shift: float) -> Self:
        n_rows = max(1, _VALUES_AT_A_TIME // x.shape[1])
        blocks = range(0, max(1, len(x)), n_rows)
        return cls.concatenate([cls._most_likely_of_few(x[start : start + n_rows], shift) for start in blocks])

    @classmethod
    def _most_likely_of_few(cls, x: Floats, shift: float) -> Self:
        smallest, above = _log_ratios(x)
        spread = np.maximum(above.std(axis=1), 1 / _LARGEST)
        # In units of their spread, log values have a power of about 1, whatever the row.
        u = (above - above.mean(axis=1, keepdims=True)) / spread[:, None]
        power = np.clip(_likely_power(u) / spread, _SMALLEST, _LARGEST)
        tilt = power * spread
        largest = u.max(axis=1)
        # scale = mean(x^c)^(1/c)
        excess = np.log(np.exp(tilt[:, None] * (u - largest[:, None])).mean(axis=1)) / tilt
        return cls(shift, bounded_exp(smallest + above.mean(axis=1) + spread * (largest + excess)), power)

    @classmethod
    def _with_moments(cls, mean: Floats, variation: Floats, shift: float) -> Self:
        inverse = _inverse_power(np.log1p(np.square(variation)))
        return cls(shift, np.exp(np.log(mean) - gammaln(1 + inverse)), 1 / inverse)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, −∞ at the shift and below."""
        log_ratio, log_hazard, outside, (scale, power) = self._hazard(y)
        # With the hazard H = r^c the density is (c/scale) H/r exp(−H).
        bounded = np.minimum(log_hazard, _FAR)
        density = np.log(power) - np.log(scale) + (power - 1) * np.minimum(log_ratio, 1e290) - np.exp(bounded)
        return np.where(outside | np.isposinf(log_ratio), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        _, log_hazard, outside, _ = self._hazard(y)
        return np.where(outside, 0.0, -np.expm1(-np.exp(np.minimum(log_hazard, _FAR))))

    def ppf(self, q: ArrayLike) -> Floats:
        p, shift, scale, power = self._match_probability(q)
        with np.errstate(divide="ignore"):  # probabilities of exactly 0 and 1 have infinite logarithms
            log_hazard = np.log(-np.log1p(-p))
        return _quantile(log_hazard, shift, scale, power)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)), exact in both tails."""
        _, log_hazard, outside, _ = self._hazard(y)
        log_hazard = np.where(outside, -np.inf, log_hazard)
        hazard = np.exp(np.minimum(log_hazard, _FAR))
        # In the lower tail log F = log(1 − e^{−H}) = log H − H/2 + O(H²), also where H itself underflows.
        low = hazard < np.log(2)
        mild = np.clip(hazard, 1e-9, np.log(2))
        log_cdf = np.where(hazard < 1e-9, log_hazard - hazard / 2, np.log(-np.expm1(-mild)))
        tail = score_of_log_tail(np.where(low, log_cdf, -np.maximum(hazard, 0.5)))
        return np.asarray(np.where(low, tail, -tail), np.float64)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w, exact in both tails."""
        score, shift, scale, power = self._match(w)
        # H = −log Φ(−w); far below, log H = log Φ(w) to rounding, and stays finite where H underflows.
        far = score < -10
        log_hazard = np.where(far, log_ndtr(score), np.log(-log_ndtr(-np.where(far, -10.0, score))))
        return _quantile(log_hazard, shift, scale, power)

    def mean(self) -> Floats:
        """Return the means, shift + scale Γ(1 + 1/power)."""
        return self.shift + self._mean_above()

    def std(self) -> Floats:
        bounded = np.minimum(self._mean_above(), 1e120)  # so that the variance, too, stays a number
        return np.asarray(bounded * np.sqrt(np.expm1(_log_second_ratio(1 / self.power))))

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score, in closed form.

        With X = Y − shift, x = y − shift and the mean m of X, ``E|X − x| = x (2F(x) − 1) + m − 2 E[X; X ≤ x]`` and
        ``E|X − X'|/2 = m (1 − 2^(−1/c))``, since the smaller of X and X' is Weibull, too.
        """
        _, log_hazard, outside, (scale, power) = self._hazard(y)
        value, shift, *_ = self._match(y)
        hazard = np.where(outside, 0.0, np.exp(np.minimum(log_hazard, _FAR)))
        mean = bounded_exp(np.log(scale) + gammaln(1 + 1 / power))
        below = gammainc(1 + 1 / power, hazard)  # the share of the mean that comes from values below x
        return np.asarray((value - shift) * (-2 * np.expm1(-hazard) - 1) + mean * (np.exp2(-1 / power) - 2 * below))

    def _mean_above(self) -> Floats:
        return bounded_exp(np.log(self.scale) + gammaln(1 + 1 / self.power))

    def _hazard(self, y: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_], tuple[Floats, Floats]]:
        """Return log(x/scale), power · log(x/scale), which y are outside the support, and scale and power."""
        x, outside, (scale, power) = self._match_above(y)
        with np.errstate(over="ignore", under="ignore"):
            ratio = x / scale
        # The logarithm of the ratio is exact near 1, where a large power multiplies its error.
        safe = (ratio > 0) & (ratio < np.inf)
        log_ratio = np.where(safe, np.log(np.where(safe, ratio, 1.0)), np.log(x) - np.log(scale))
        return log_ratio, power * log_ratio, outside, (scale, power)


def _log_ratios(x: Floats) -> tuple[Floats, Floats]:
    """Return log x as its smallest value per row, shape (n,), and what is above it, shape (n, k).

    The differences are exact to rounding also where the values are far from zero compared with their spread.
    """
    x = np.maximum(x, _SMALLEST_RATIO * x.max(axis=1, keepdims=True))
    smallest = x.min(axis=1, keepdims=True)
    return np.log(smallest[:, 0]), np.log1p((x - smallest) / smallest)


def _quantile(log_hazard: Floats, shift: Floats, scale: Floats, power: Floats) -> Floats:
    with np.errstate(over="ignore"):
        above = scale * bounded_exp(log_hazard / power)
    return np.asarray(shift + np.where(log_hazard < np.inf, np.minimum(above, 1e299), above))


def _likely_power(u: Floats) -> Floats:
    """Return the most likely powers c for log values u, rows of mean zero, shape (n, k).

    They solve c A(c) = 1, with A(c) = Σ u e^{cu} / Σ e^{cu}, which increases from zero: so the solution is between c
    and 1/A(c), whatever c. Newton's steps for log c + log A(c) = 0, whose slope is at least one, never leave that
    bracket.
    """
    largest = u.max(axis=1)
    power = np.full(
        len(u), np.pi / np.sqrt(6)
    )  # that of a Weibull distribution whose logarithms have the standard deviation 1
    power[largest <= 0] = np.inf  # identical values
    rows = np.flatnonzero(largest > 0)
    centered = (u - largest[:, None])[rows]
    log_low, log_high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    for _ in range(_ROUNDS):
        if not len(rows):
            break
        c = power[rows]
        weights = np.exp(c[:, None] * centered)
        total = weights.sum(axis=1)
        weighted = weights * centered
        offset = weighted.sum(axis=1) / total
        spread = (weighted * centered).sum(axis=1) / total - np.square(offset)
        # Rounding alone can take the mean of a tiny tilt to zero or below.
        tilted = np.maximum(largest[rows] + offset, 1e-12 * largest[rows])
        gap = np.log(c) + np.log(tilted)
        log_low = np.maximum(log_low, np.minimum(np.log(c), -np.log(tilted)))
        log_high = np.minimum(log_high, np.maximum(np.log(c), -np.log(tilted)))
        proposed = np.log(c) - gap / (1 + c * np.maximum(spread, 0.0) / tilted)
        inside = (proposed > log_low) & (proposed < log_high)
        step = np.where(inside, proposed, (log_low + log_high) / 2) - np.log(c)
        power[rows] = c * np.exp(step)
        left = np.abs(step) > _TOLERANCE
        rows, centered, log_low, log_high = rows[left], centered[left], log_low[left], log_high[left]
    return power


def _log_second_ratio(inverse: Floats) -> Floats:
    """Return log E[X²] − 2 log E[X] for a Weibull distribution of power 1/inverse."""
    small = np.minimum(inverse, _SMALL)
    series = np.polynomial.polynomial.polyval(small, np.concatenate([np.zeros(2), _SERIES]))
    ratio = np.where(inverse < _SMALL, series, gammaln(1 + 2 * inverse) - 2 * gammaln(1 + inverse))
    return np.asarray(ratio, np.float64)


def _inverse_power(log_second_ratio: Floats) -> Floats:
    """Return the inverse powers whose distributions have this log E[X²] − 2 log E[X], shape (n,).

    Newton's method for the logarithms of both: there the slope goes from 2 (nearly constant values) slowly down to 1.
    """
    log_goal = np.log(log_second_ratio)
    inverse = np.sqrt(6 * log_second_ratio) / np.pi
    rows = np.arange(len(inverse))  # those that go on: each row ends by itself, whatever the others in the batch
    for _ in range(_ROUNDS):
        if not len(rows):
            break
        here = inverse[rows]
        ratio = _log_second_ratio(here)
        slope = 2 * here * (digamma(1 + 2 * here) - digamma(1 + here)) / ratio
        step = (log_goal[rows] - np.log(ratio)) / np.clip(slope, 1.0, 2.0)
        inverse[rows] = here * np.exp(step)
        rows = rows[np.abs(step) >= 1e-14]
    return np.clip(inverse, 1 / _LARGEST, 1 / _SMALLEST)
