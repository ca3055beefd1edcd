"""Kernel density estimates, and rules for their bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from ibug._typing import Floats
from ibug.distributions._fitting import checked_moments
from ibug.distributions._normal_scores import HALF_LOG_2PI, mean_distance, score_of_log_tail, standardised
from ibug.distributions._sample import SampleDistribution, blocks, checked_sample, deviation, least_width, resolution
from ibug.exceptions import InvalidInputError

_LARGEST, _HALVINGS = 4.0, 10  # the bandwidths tried: 4, 4/√2, 2, … 1/8 of Silverman's


def _unbiased_deviation(values: Floats) -> Floats:
    k = values.shape[1]
    return np.asarray(deviation(values) * np.sqrt(k / max(k - 1, 1)))


def _scott(values: Floats) -> Floats:
    return np.asarray(_unbiased_deviation(values) * values.shape[1] ** -0.2)


def _silverman(values: Floats) -> Floats:
    return np.asarray(_unbiased_deviation(values) * (0.75 * values.shape[1]) ** -0.2)


def _likelihood(values: Floats) -> Floats:
    """Return the bandwidths of the highest leave-one-out likelihood, for values of shape ``(n, k)`` about 1 wide."""
    k = values.shape[1]
    largest = _LARGEST * _silverman(values)
    if k == 1:
        return largest
    best = np.zeros(len(values), np.intp)
    own = np.arange(k)
    for block in blocks(len(values), k * k):
        x = values[block]
        h = np.where(largest[block] > 0, largest[block], 1.0)
        squares = np.square((x[:, :, None] - x[:, None, :]) / h[:, None, None])
        squares[:, own, own] = np.inf  # a value does not count for itself
        nearest = squares.min(axis=2)
        squares -= nearest[:, :, None]
        squares *= -0.5
        # Relative to the nearest value, so that the sum cannot underflow, however far away an outlier lies.
        kernels, nearest_total = np.exp(squares, out=squares), nearest.sum(axis=1)
        scores = np.empty((_HALVINGS + 1, len(x)))
        for i in range(_HALVINGS + 1):
            scores[i] = np.log(kernels.sum(axis=2)).sum(axis=1) - 0.5 * 2**i * nearest_total + 0.5 * k * i * np.log(2)
            if i % 2 == 0:
                np.maximum(kernels, 1e-60, out=kernels)  # next to sums above 1 this is nothing; subnormals are slow
            np.square(kernels, out=kernels)  # half the squared bandwidth
        best[block] = scores.argmax(axis=0)
    return np.asarray(largest * 2 ** (-0.5 * best))


#: Each takes values of shape ``(n, k)`` and returns bandwidths of shape ``(n,)``, 0 where all values are the same.
BANDWIDTHS = {"silverman": _silverman, "scott": _scott, "likelihood": _likelihood}


_SQRT_2PI = np.sqrt(2 * np.pi)
_LEAST_UNIFORM = 2.0**-53  # a random number of 0 would be an infinite deviate
_STEPS = 200  # of Newton's method or bisection; a dozen is usual


class KDE(SampleDistribution):
    """Gaussian kernel density estimates: mixtures of k normal distributions of equal weight and width.

    Parameters
    ----------
    values : array-like of shape (n, k) or (k,)
        The centres of the kernels; of shape (k,) for the distribution of one row.
    bandwidth : array-like of shape (n,) or scalar
        The standard deviations of the kernels, above zero.

    Examples
    --------
    >>> from ibug.distributions import KDE
    >>> d = KDE(values=[[0.0, 0.0, 1.0], [10.0, 20.0, 30.0]], bandwidth=[0.1, 5.0])
    >>> d.cdf(0.5).round(3)
    array([0.667, 0.01 ])
    >>> d.mean().round(3)
    array([ 0.333, 20.   ])
    """

    parameters: ClassVar[tuple[str, ...]] = ("values", "bandwidth")
    costly_quantiles: ClassVar[bool] = True
    has_kinks: ClassVar[bool] = True
    bandwidth: Floats

    def __init__(self, values: ArrayLike, bandwidth: ArrayLike) -> None:
        super().__init__(values)
        self.bandwidth = self._parameter("bandwidth", bandwidth, self._shape)

    @classmethod
    def fit(
        cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None, bandwidth: str = "silverman"
    ) -> Self:
        """Place a kernel at each of a row's values.

        Values that are all the same get a bandwidth of 1e-8 of their size.

        Parameters
        ----------
        values : ndarray of shape (n, k)
            The neighbours' targets.
        loc, scale : ndarray of shape (n,), optional
            Means and standard deviations to keep. Kernels are moved and stretched, their widths included, so that the
            mixture has exactly these: its variance is that of the values plus the squared bandwidth.
        bandwidth : {"silverman", "scott", "likelihood"}, default="silverman"
            The rules of Silverman and Scott as in ``scipy.stats.gaussian_kde``, or for each row the bandwidth of the
            highest leave-one-out likelihood among eleven from four times Silverman's down to an eighth, in steps of √2.
            On targets with many ties the likelihood chooses the smallest.
        """
        x = checked_sample(values)
        mean, spread = checked_moments(len(x), loc, scale)
        if bandwidth not in BANDWIDTHS:
            raise InvalidInputError(f"The bandwidth must be one of {', '.join(BANDWIDTHS)}; got {bandwidth!r}.")
        # From the first value on: far from zero the differences are exact, and the mean of the values is not.
        offsets = x - x[:, :1]
        middle = offsets.mean(axis=1)
        offsets -= middle[:, None]
        width = np.ptp(x, axis=1)
        safe = np.where(width > 0, width, 1.0)
        rule = safe * BANDWIDTHS[bandwidth](offsets / safe[:, None])
        h = np.where(width > 0, np.maximum(rule, resolution(x)), least_width(x))
        if mean is None and spread is None:
            return cls(x, h)
        if mean is None:
            mean = x[:, 0] + middle
        stretch = np.ones(len(x)) if spread is None else spread / np.hypot(deviation(offsets), h)
        return cls(mean[:, None] + stretch[:, None] * offsets, stretch * h)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, finite for every finite y."""
        x, rows, shape = self._elements(y)
        out = self._per_element(lambda z: _log_mean_exp(_log_kernel(z)), x, rows)
        out -= np.log(np.reshape(self.bandwidth, -1))[rows] + HALF_LOG_2PI
        out[np.isinf(x)] = -np.inf
        return out.reshape(shape)

    def cdf(self, y: ArrayLike) -> Floats:
        x, rows, shape = self._elements(y)
        return self._per_element(lambda z: ndtr(z).mean(axis=1), x, rows).reshape(shape)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q, by Newton's method, to about 1e-12 of the bandwidth."""
        return self.from_normal_score(ndtri(self._match_probability(q)[0]))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)), finite for every finite y."""
        x, rows, shape = self._elements(y)
        below, _ = self._log_tail(x, rows, np.ones(len(x)))
        sign = np.where(below > -np.log(2), -1.0, 1.0)
        upper = np.flatnonzero(sign < 0)
        below[upper] = self._log_tail(x[upper], rows[upper], sign[upper])[0]
        return np.where(np.isinf(x), x, sign * score_of_log_tail(below)).reshape(shape)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w, to about 1e-12 of the bandwidth."""
        score, rows, shape = self._elements(w)
        out = score.copy()  # where it is infinite, so is the quantile
        finite = np.flatnonzero(np.isfinite(score))
        out[finite] = self._solve(score[finite], rows[finite])
        return out.reshape(shape)

    def mean(self) -> Floats:
        first = self.values[..., 0]
        return np.asarray(first + (self.values - first[..., None]).mean(axis=-1))

    def std(self) -> Floats:
        """Return the standard deviations, √(variance of the values + bandwidth²)."""
        return np.hypot(deviation(self._table).reshape(self._shape), self.bandwidth)

    def from_uniform(self, uniform: Floats) -> Floats:
        """Return one of the values for each random number, plus a normal deviate times the bandwidth.

        The number's place among k equal parts of [0, 1) chooses the value, its place in this part the deviate.
        """
        k = self.values.shape[-1]
        places, rows, shape = self._elements(uniform * k)
        chosen = np.minimum(places.astype(np.intp), k - 1)
        deviates = ndtri(np.clip(places - chosen, _LEAST_UNIFORM, 1 - _LEAST_UNIFORM))
        return np.asarray(self._table[rows, chosen] + self._widths[rows] * deviates).reshape(shape)

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score, in closed form.

        With :math:`A(m, s) = E|N(m, s^2)|` it is the mean of :math:`A(y - x_i, h)` less half the mean of
        :math:`A(x_i - x_j, \sqrt 2 h)` (Grimit et al., 2006, Eq. 5).
        """
        x, rows, shape = self._elements(y)
        out = self._per_element(lambda z: mean_distance(z).mean(axis=1), x, rows)
        out *= self._widths[rows]
        out -= 0.5 * _mean_difference(self._table, self._widths)[rows]
        out[np.isinf(x)] = np.inf
        return out.reshape(shape)

    @property
    def _widths(self) -> Floats:
        return self.bandwidth.reshape(-1)

    def _distances(self, x: Floats, rows: NDArray[np.intp], sign: Floats | float = 1.0) -> Floats:
        """Return the distances from x to the row's kernels in bandwidths, of shape ``(n_elements, k)``."""
        return standardised(x[:, None], self._table[rows], (sign * self._widths[rows])[:, None])

    def _per_element(self, function: Callable[[Floats], Floats], x: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return a function of the distances to the kernels, (n_elements, k) → (n_elements,), block after block."""
        out = np.empty(len(x))
        for block in blocks(len(x), self.values.shape[-1]):
            out[block] = function(self._distances(x[block], rows[block]))
        return out

    def _log_tail(self, x: Floats, rows: NDArray[np.intp], sign: Floats) -> tuple[Floats, Floats]:
        """Return log F(x) where the sign is 1 and log(1 − F(x)) where it is −1, and the size of their slope times h."""
        value, slope = np.empty(len(x)), np.empty(len(x))
        for block in blocks(len(x), self.values.shape[-1]):
            z = self._distances(x[block], rows[block], sign[block])
            tail = ndtr(z).mean(axis=1)
            density = np.exp(_log_kernel(z)).mean(axis=1) / _SQRT_2PI
            deep = np.flatnonzero(tail < 1e-290)
            tail[deep] = 1.0
            value[block], slope[block] = np.log(tail), density / tail
            if len(deep):  # probabilities that underflow: the same in logarithms, which is slower
                value[block.start + deep], slope[block.start + deep] = _deep_tail(z[deep])
        return value, slope

    def _solve(self, score: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return the quantiles at finite normal scores: Newton on the logarithm of the smaller tail, kept in brackets.

        The quantile lies between those of the first and of the last kernel.
        """
        ordered, h = np.sort(self._table, axis=1), self._widths[rows]
        low, high = ordered[rows, 0] + h * score, ordered[rows, -1] + h * score
        sign = np.where(score > 0, -1.0, 1.0)
        target = log_ndtr(-np.abs(score))
        y = np.clip(_first_guess(ordered, rows, h, score), low, high)
        out, active, last = y.copy(), np.arange(len(score)), np.full(len(score), np.inf)
        for _ in range(_STEPS):
            value, slope = self._log_tail(y, rows, sign)
            residual = sign * (value - target)
            low, high = np.where(residual < 0, y, low), np.where(residual < 0, high, y)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = -residual / slope * h
            exact = np.abs(residual) <= 1e-15
            step[exact] = 0.0
            # Newton squares the error, in bandwidths, so that this step is the last one needed.
            rounding = 4 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
            done = (np.abs(step) <= np.maximum(1e-7 * h, rounding)) | (high - low <= rounding)
            out[active] = np.where(done, np.clip(y + step, low, high), y)
            going = ~done
            if not going.any():
                break
            # Between distant kernels the slope vanishes: bisect where a step leaves the bracket or does not shrink.
            slow = ~((y + step > low) & (y + step < high) & (np.abs(step) < 0.5 * last))
            following = np.where(slow, low + 0.5 * (high - low), y + step)
            last, y = np.abs(following - y)[going], following[going]
            active, rows, h, sign, target = active[going], rows[going], h[going], sign[going], target[going]
            low, high = low[going], high[going]
        return out


def _first_guess(ordered: Floats, rows: NDArray[np.intp], h: Floats, score: Floats) -> Floats:
    """Return the sample's quantiles, and beyond its ends those of the outermost kernel."""
    k = ordered.shape[1]
    rank = k * ndtr(-np.abs(score))
    inner = np.minimum(rank.astype(np.intp), k - 1)
    guess = ordered[rows, np.where(score > 0, k - 1 - inner, inner)]
    outside = guess - np.sign(score) * h * ndtri(np.minimum(rank, 1 - 1e-9))
    return np.asarray(np.where(rank < 1, outside, guess))


def _log_kernel(z: Floats) -> Floats:
    """Return log φ(z), up to its constant."""
    out = np.square(z)
    out *= -0.5
    return out


def _log_mean_exp(logs: Floats) -> Floats:
    """Return the logarithms of the rows' means, from logarithms; these become the terms relative to the greatest."""
    top = logs.max(axis=1)
    logs -= top[:, None]
    return np.asarray(np.log(np.exp(logs, out=logs).mean(axis=1)) + top)


def _deep_tail(z: Floats) -> tuple[Floats, Floats]:
    """Return the logarithm of the rows' mean Φ(z), and its slope: the kernels' φ/Φ, weighted by their Φ."""
    logs = log_ndtr(z)
    value = _log_mean_exp(logs)  # leaves the weights in place of the logarithms
    hazard = 2 / _SQRT_2PI / erfcx(z / -np.sqrt(2))
    return value, (logs * hazard).sum(axis=1) / logs.sum(axis=1)


def _mean_difference(values: Floats, h: Floats) -> Floats:
    """Return the mean distance of two independent draws, of shape ``(n,)``, by whichever way is less work."""
    width = np.ptp(values, axis=1)
    with np.errstate(over="ignore"):
        half_period = width / h + 12  # in bandwidths
    # exp(-(jπ/P)²) is below the precision from j = 1.96 P on, and only odd j count.
    terms = 0.98 * half_period
    cheap = terms <= 2 * values.shape[1]
    out = np.empty(len(values))
    order = np.flatnonzero(cheap)[np.argsort(terms[cheap])]  # rows in a block need about as many terms
    for block in blocks(len(order), 4 * values.shape[1]):
        rows = order[block]
        out[rows] = h[rows] * _difference_by_series(values[rows] / h[rows, None], half_period[rows])
    order = np.flatnonzero(~cheap)
    for block in blocks(len(order), values.shape[1]):
        rows = order[block]
        out[rows] = _difference_by_pairs(values[rows], h[rows])
    return out


def _difference_by_series(centers: Floats, half_period: Floats) -> Floats:
    r"""Return the mean distance of two draws, for kernels of width 1, from the characteristic function.

    On :math:`|m| \le P` the distance is a Fourier series,
    :math:`|m| = P/2 - (4P/\pi^2) \sum_{j\,\mathrm{odd}} \cos(j\pi m/P)/j^2`, whose mean over two draws has the terms
    :math:`|\varphi(j\pi/P)|^2 / j^2`, where :math:`\varphi` is the mixture's characteristic function. P exceeds the
    greatest distance of two kernels by 12, so that farther draws are rarer than the precision; the kernels' own
    factor, :math:`\exp(-(j\pi/P)^2)`, ends the series.
    """
    frequency = np.pi / half_period
    turn = np.exp(1j * frequency[:, None] * (centers - centers[:, :1]))
    power, square, total = turn, np.square(turn), np.zeros(len(centers))
    for j in range(1, 2 + int(1.96 * half_period.max()), 2):
        mean = power.mean(axis=1)
        total += np.exp(-np.square(j * frequency)) / j**2 * (np.square(mean.real) + np.square(mean.imag))
        power = power * square
    return half_period / 2 - 4 * half_period / np.pi**2 * total


def _difference_by_pairs(values: Floats, h: Floats) -> Floats:
    """Return the mean distance of two draws, pair by pair of kernels."""
    k = values.shape[1]
    scale = np.sqrt(2) * h[:, None]
    total = np.full(len(values), k / _SQRT_2PI)  # each kernel with itself, at half a pair
    for lag in range(1, k):
        total += mean_distance(standardised(values[:, lag:], values[:, :-lag], scale)).sum(axis=1)
    return np.asarray(total * scale[:, 0] * 2 / k**2)
