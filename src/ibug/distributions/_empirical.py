"""The neighbours' values themselves, interpolated."""

from __future__ import annotations

from math import isqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from ibug._typing import Floats
from ibug.distributions._fitting import checked_moments
from ibug.distributions._normal_scores import score_of_log_tail, standardised
from ibug.distributions._sample import SampleDistribution, checked_sample, least_width, resolution

_LEAST_GAP = 1e-6  # of the distance between the smallest and the largest value


class Empirical(SampleDistribution):
    r"""The values themselves, with straight lines between their probabilities and exponential tails.

    The i-th smallest of k values is the quantile at i/(k + 1); in between the quantile function is linear. Below the
    smallest and above the largest value, 1/(k + 1) of the probability each decays exponentially, so that the density is
    above zero everywhere.

    Equal values would make the density infinite: neighbouring values closer than 1e-6 of the row's width are moved
    apart to this gap, evenly to both sides. If all are equal, they are spread over 1e-8 of their size. Where values
    have many ties the density is a row of spikes whose height says little; quantiles and the CRPS are sound. Without
    ties, too, a density from single gaps is rough: on average its logarithm is about 0.42 below the true one (ψ(2), the
    mean logarithm of the relative width of the gap that holds a new value). For log scores, choose a smooth
    distribution.

    Parameters
    ----------
    values : array-like of shape (n, k) or (k,)
        The values, in any order; they are kept sorted and with ties moved apart. Of shape (k,) for the distribution of
        one row.
    tails : array-like of shape (n, 2) or (2,), optional
        The mean lengths of the lower and the upper tail. By default the mean excess of the outermost √k values
        (rounded down) over the next one, which for exponential tails is the maximum likelihood estimate, and at least
        the mean gap.

    Examples
    --------
    >>> from ibug.distributions import Empirical
    >>> d = Empirical([[1.0, 2.0, 5.0], [10.0, 40.0, 20.0]])
    >>> d.ppf([[0.25, 0.5, 0.75]])
    array([[ 1.,  2.,  5.],
           [10., 20., 40.]])
    >>> d.cdf(3.5).round(3)
    array([0.625, 0.162])
    """

    parameters: ClassVar[tuple[str, ...]] = ("values", "tails")
    has_kinks: ClassVar[bool] = True
    tails: Floats

    def __init__(self, values: ArrayLike, tails: ArrayLike | None = None) -> None:
        super().__init__(values)
        ordered = np.sort(self._table, axis=1)
        ordered = _apart(ordered, ordered)
        self.values = ordered.reshape(self.values.shape)
        if tails is None:
            tails = _tails(ordered, ordered).reshape((*self._shape, 2))
        self.tails = self._parameter("tails", tails, (*self._shape, 2))

    @classmethod
    def fit(cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None) -> Self:
        """Take the values as they are; given means or deviations to keep, values and tails are moved and stretched."""
        x = checked_sample(values)
        mean, spread = checked_moments(len(x), loc, scale)
        if mean is None and spread is None:
            return cls(x)
        # Relative to the smallest value, where small differences far from zero are exact.
        ordered = np.sort(x, axis=1)
        offsets = _apart(ordered - ordered[:, :1], ordered)
        tails = _tails(offsets, ordered)
        middle = _mean(offsets, tails)
        if mean is None:
            mean = ordered[:, 0] + middle
        stretch = np.ones(len(x)) if spread is None else spread / _deviation(offsets, tails)
        offsets -= middle[:, None]
        return cls(mean[:, None] + stretch[:, None] * offsets, stretch[:, None] * tails)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, finite for every finite y."""
        x, rows, shape = self._elements(y)
        below, gap, _, beyond = self._place(x, rows)
        k = self.values.shape[-1]
        scale = np.where(below == 0, self._tails[rows, 0], np.where(below == k, self._tails[rows, 1], gap))
        out = np.asarray(-np.log(k + 1) - np.log(scale) - beyond)
        out[np.isinf(x)] = -np.inf
        return out.reshape(shape)

    def cdf(self, y: ArrayLike) -> Floats:
        x, rows, shape = self._elements(y)
        below, _, part, beyond = self._place(x, rows)
        k = self.values.shape[-1]
        tail = np.exp(-beyond)
        rank = np.where(below == 0, tail, np.where(below == k, k + 1 - tail, below + part))
        return np.asarray(rank / (k + 1)).reshape(shape)

    def ppf(self, q: ArrayLike) -> Floats:
        p, rows, shape = self._elements(self._match_probability(q)[0])
        with np.errstate(divide="ignore"):
            return self._quantile(p, np.log(p), np.log1p(-p), rows).reshape(shape)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)), finite for every finite y."""
        x, rows, shape = self._elements(y)
        below, _, part, beyond = self._place(x, rows)
        k = self.values.shape[-1]
        tail = score_of_log_tail(-beyond - np.log(k + 1))
        inner = ndtri((np.clip(below, 1, k) + np.where(below == k, 0.0, part)) / (k + 1))
        out = np.where(below == 0, tail, np.where(below == k, -tail, inner))
        return np.where(np.isinf(x), x, out).reshape(shape)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        score, rows, shape = self._elements(w)
        return self._quantile(ndtr(score), log_ndtr(score), log_ndtr(-score), rows).reshape(shape)

    def mean(self) -> Floats:
        return _mean(self._table, self._tails).reshape(self._shape)

    def std(self) -> Floats:
        return _deviation(self._table, self._tails).reshape(self._shape)

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score, in closed form.

        It is :math:`\int_{-\infty}^y F^2 + \int_y^\infty (1 - F)^2`, whole pieces summed once for each row and the
        piece that holds y added. With :math:`r = (k + 1) F`, between values
        :math:`\int r^2 = \Delta\,[(i + u)^3 - i^3]/3`; in the lower tail of length b it is :math:`b\,r^2/2`.
        """
        x, rows, shape = self._elements(y)
        k = self.values.shape[-1]
        table, tails = self._table, self._tails
        below, gap, part, beyond = self._place(x, rows)
        ranks = np.arange(1.0, k)
        pieces = np.diff(table, axis=1) * (ranks * (ranks + 1) + 1 / 3)
        left = np.cumsum(np.column_stack([tails[:, 0] / 2, pieces]), axis=1)
        pieces = np.diff(table, axis=1) * ((k - ranks) * (k + 1 - ranks) + 1 / 3)
        right = np.cumsum(np.column_stack([tails[:, 1] / 2, pieces[:, ::-1]]), axis=1)[:, ::-1]
        start, rest = np.clip(below, 1, k) - 1, 1 - part
        inner = left[rows, start] + gap * part * (below**2 + below * part + part**2 / 3)
        after = (k - below) + 0.0  # (k + 1) times the upper tail at the end of the piece
        inner += right[rows, np.minimum(start + 1, k - 1)] + gap * rest * (after**2 + after * rest + rest**2 / 3)
        # Beyond the ends the far side's integrand is (k + 1 - exp(-t))², and the near side's exp(-2t).
        lower = below == 0
        end = np.where(lower, right[rows, 0], left[rows, -1])
        far = np.square(k + 1.0) * beyond + 2 * (k + 1) * np.expm1(-beyond) - np.expm1(-2 * beyond) / 2
        outer = end + tails[rows, np.where(lower, 0, 1)] * (far + np.exp(-2 * beyond) / 2)
        out = np.asarray(np.where(lower | (below == k), outer, inner) / np.square(k + 1.0))
        out[np.isinf(x)] = np.inf
        return out.reshape(shape)

    @property
    def _tails(self) -> Floats:
        return self.tails.reshape(-1, 2)

    def _place(self, x: Floats, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats, Floats, Floats]:
        """Find each element's piece of the distribution.

        Shapes: below (n_elements,); gap (n_elements,); part (n_elements,); beyond (n_elements,).
        """
        table = self._table
        k = table.shape[1]
        below = _count_below(table, x, rows)
        inner = (below > 0) & (below < k)
        left = table[rows, np.maximum(below - 1, 0)]
        right = table[rows, np.minimum(below, k - 1)]
        gap = np.where(inner, right - left, 1.0)
        lower = below == 0
        end = np.where(lower, table[rows, 0], table[rows, -1])
        beyond = np.abs(standardised(x, end, self._tails[rows, np.where(lower, 0, 1)]))
        beyond[inner] = 0.0
        part = np.where(inner, np.minimum((np.where(inner, x, left) - left) / gap, 1.0), 0.0)
        return below, gap, part, beyond

    def _quantile(self, p: Floats, log_p: Floats, log_rest: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return the quantiles at p, for elements; the logarithms of p and 1 − p serve the tails."""
        table, tails = self._table, self._tails
        k = table.shape[1]
        rank = np.where(np.isnan(p), 0.0, p) * (k + 1)
        lower = np.floor(np.clip(rank, 1, k)).astype(np.intp)
        part = np.clip(rank - lower, 0.0, 1.0)
        left = table[rows, lower - 1]
        inner = left + part * (table[rows, np.minimum(lower, k - 1)] - left)
        whole = np.log(k + 1)
        out = np.where(rank < 1, table[rows, 0] + tails[rows, 0] * np.minimum(log_p + whole, 0.0), inner)
        out = np.where(rank > k, table[rows, -1] - tails[rows, 1] * np.minimum(log_rest + whole, 0.0), out)
        return np.where(np.isnan(p), np.nan, out)


def _count_below(table: Floats, x: Floats, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count the row's values of at most x, by bisection of all elements at once."""
    k = table.shape[1]
    flat, start = table.reshape(-1), rows * k
    count = np.zeros(len(x), np.intp)
    step = 1 << (k.bit_length() - 1)
    while step:
        further = count + step
        fits = (further <= k) & (flat[start + np.minimum(further, k) - 1] <= x)
        count = np.where(fits, further, count)
        step //= 2
    return count


def _apart(ordered: Floats, original: Floats) -> Floats:
    """Move sorted values apart, shape ``(n, k)``, to the least gap that the size of the original values allows.

    Rows whose gaps are at least half of that stay as they are, so that a distribution can be rebuilt from its own
    values.
    """
    k = ordered.shape[1]
    if k == 1:
        return ordered.copy()
    width = ordered[:, -1] - ordered[:, 0]
    gap = np.where(width > 0, _LEAST_GAP * width, least_width(original) / (k - 1))
    gap = np.maximum(gap, resolution(original))[:, None]
    near = np.flatnonzero(np.diff(ordered, axis=1).min(axis=1) < 0.5 * gap[:, 0])
    if len(near) == 0:
        return ordered.copy()
    # The smallest sequences above and below with this gap; half-way between them the moves are even.
    ramp = np.arange(k) * gap[near]
    level = ordered[near] - ordered[near, :1] - ramp
    upward = np.maximum.accumulate(level, axis=1)
    downward = np.minimum.accumulate(level[:, ::-1], axis=1)[:, ::-1]
    out = ordered.copy()
    out[near] = ordered[near, :1] + (0.5 * (upward + downward) + ramp)
    return out


def _tails(ordered: Floats, original: Floats) -> Floats:
    """Return the mean excess of the outermost √k values over the next one at either end, of shape ``(n, 2)``."""
    k = ordered.shape[1]
    if k == 1:
        return np.repeat(least_width(original)[:, None], 2, axis=1)
    outer = isqrt(k)
    lower = (ordered[:, outer, None] - ordered[:, :outer]).mean(axis=1)
    upper = (ordered[:, k - outer :] - ordered[:, k - outer - 1, None]).mean(axis=1)
    mean_gap = (ordered[:, -1:] - ordered[:, :1]) / (k - 1)
    return np.asarray(np.maximum(np.column_stack([lower, upper]), mean_gap))


def _centers(ordered: Floats, tails: Floats) -> Floats:
    """Return the means of the k + 1 pieces, relative to the smallest value, of shape ``(n, k + 1)``."""
    offsets = ordered - ordered[:, :1]
    middles = 0.5 * (offsets[:, 1:] + offsets[:, :-1])
    return np.column_stack([-tails[:, 0], middles, offsets[:, -1] + tails[:, 1]])


def _mean(ordered: Floats, tails: Floats) -> Floats:
    """Return the means, shape ``(n,)``: the pieces all have the same probability."""
    return np.asarray(ordered[:, 0] + _centers(ordered, tails).mean(axis=1))


def _deviation(ordered: Floats, tails: Floats) -> Floats:
    """Return the standard deviations, shape ``(n,)``: within the pieces and between them."""
    unit = (ordered[:, -1] - ordered[:, 0]) + tails.sum(axis=1)  # keeps the squares from overflow and underflow
    centers = _centers(ordered, tails) / unit[:, None]
    within = np.square(np.column_stack([tails, np.diff(ordered, axis=1) / np.sqrt(12)]) / unit[:, None])
    return np.asarray(unit * np.sqrt(within.mean(axis=1) + centers.var(axis=1)))
