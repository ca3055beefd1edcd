"""Mixtures: the distribution of a value from one of several distributions, drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._location_scale import Normal
from ibug.distributions._normal_scores import mean_distance, score_of_tails
from ibug.distributions._numerics import gauss_nodes, solve_increasing
from ibug.exceptions import InvalidInputError

# Normal scores of the quantiles of both distributions that divide the line for ∫(F − G)²; beyond the last nothing is
# left.
_SCORES = np.linspace(-8.0, 8.0, 33)
_RULE = leggauss(4)


class Mixture(Distribution):
    """Mixtures of m batches of distributions, row by row: F = Σ wᵢ Fᵢ.

    Parameters
    ----------
    components : sequence of Distribution
        The components, m batches of the same n rows, each of any family.
    weights : array-like of shape (m,), optional
        Their weights, above zero, for all rows; they are divided by their sum. ``None`` means equal ones.

    Examples
    --------
    >>> from ibug.distributions import Mixture, Normal
    >>> d = Mixture([Normal([0.0, 0.0], [1.0, 1.0]), Normal([0.0, 4.0], [3.0, 1.0])])
    >>> d.mean()
    array([0., 2.])
    >>> d.ppf([[0.05, 0.5, 0.95]]).round(2)
    array([[-3.85,  0.  ,  3.85],
           [-1.28,  2.  ,  5.28]])
    """

    parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(self, components: Sequence[Distribution], weights: ArrayLike | None = None) -> None:
        self.components = tuple(components)
        if not self.components or any(not isinstance(one, Distribution) for one in self.components):
            kinds = [type(one).__name__ for one in self.components]
            raise InvalidInputError(
                f"A mixture needs one batch of distributions at least, and nothing else; got {kinds}."
            )
        shapes = {one.shape for one in self.components}
        if len(shapes) > 1:
            raise InvalidInputError(
                f"The distributions of a mixture must have the same rows; got shapes {sorted(shapes)}."
            )
        self.weights = normalized_weights(weights, len(self.components))
        self._shape = self.components[0].shape

    @classmethod
    def concatenate(cls, distributions: Sequence[Self]) -> Self:
        """Join mixtures of the same families and weights to one."""
        first = distributions[0]
        if any(not np.array_equal(one.weights, first.weights) for one in distributions):
            raise InvalidInputError("Mixtures with different weights cannot be joined.")
        parts = zip(*(one.components for one in distributions), strict=True)
        return cls([type(part[0]).concatenate(part) for part in parts], first.weights)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)([one[rows] for one in self.components], self.weights)

    def __repr__(self) -> str:
        parts = [f"{weight:.3g} × {one!r}" for weight, one in zip(self.weights, self.components, strict=True)]
        return f"<Mixture: {', '.join(parts)}>"

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._log_sum(one.logpdf(y) for one in self.components)

    def cdf(self, y: ArrayLike) -> Floats:
        # Rounding of the weights must not take it above 1.
        return np.minimum(self._sum(one.cdf(y) for one in self.components), 1.0)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q, by a search between the components' quantiles."""
        (p,) = self._match_probability(q)
        return self._quantile([one.ppf(p) for one in self.components], np.asarray(ndtri(p)))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return the standard normal value of the same rank as y, as exact in the tails as the components' scores."""
        scores = [one.normal_score(y) for one in self.components]
        below, above = (self._log_sum(log_ndtr(sign * score) for score in scores) for sign in (1, -1))
        return score_of_tails(below, above)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        (score,) = self._match(w)
        return self._quantile([one.from_normal_score(score) for one in self.components], score)

    def mean(self) -> Floats:
        return self._sum(one.mean() for one in self.components)

    def var(self) -> Floats:
        """Return the variances: the mean of the variances and the variance of the means."""
        mean = self.mean()
        return self._sum(one.var() + np.square(one.mean() - mean) for one in self.components)

    def from_uniform(self, uniform: Floats) -> Floats:
        """Return one sample for each random number: its place on [0, 1) chooses a component, and the rest a sample."""
        ends = np.cumsum(self.weights)
        chosen = np.minimum(np.searchsorted(ends, uniform, side="right"), len(ends) - 1)
        rest = (uniform - (ends - self.weights)[chosen]) / self.weights[chosen]
        rest = np.clip(rest, 0.0, 1 - np.finfo(float).epsneg)
        samples = np.stack([one.from_uniform(rest) for one in self.components])
        return np.asarray(np.take_along_axis(samples, chosen[None], axis=0)[0])

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score.

        From :math:`\sum_i w_i (F_i - 1)^2 - (\sum_i w_i F_i - 1)^2 = \sum_{i<j} w_i w_j (F_i - F_j)^2` it is
        :math:`\sum_i w_i CRPS(F_i, y) - \sum_{i<j} w_i w_j \int (F_i - F_j)^2 dx`. The components' own scores are as
        exact as theirs; the integrals are in closed form between normal distributions, else numerical.
        """
        (x,) = self._match(y)
        score = self._sum(one.crps(x) for one in self.components)
        saved = np.zeros(self._shape)
        for i, j in combinations(range(len(self.components)), 2):
            saved += self.weights[i] * self.weights[j] * _square_distance(self.components[i], self.components[j])
        return np.maximum(score - self._match(x, saved)[1], 0.0)

    def _sum(self, parts: Iterator[Floats]) -> Floats:
        return np.asarray(sum(weight * part for weight, part in zip(self.weights, parts, strict=True)))

    def _log_sum(self, parts: Iterator[Floats]) -> Floats:
        logs = [np.log(weight) + part for weight, part in zip(self.weights, parts, strict=True)]
        return np.asarray(logsumexp(logs, axis=0))

    def _quantile(self, quantiles: list[Floats], score: Floats) -> Floats:
        """Return the values with the normal score; they are between the components' quantiles of that score."""
        low, high = np.min(quantiles, axis=0), np.max(quantiles, axis=0)
        # The quantile of 0 or 1 is an end of the support, and infinite where a component reaches no further.
        outer = np.where(score < 0, low, high)
        known = np.isinf(score) | ~np.isfinite(low) | ~np.isfinite(high)
        start, stop = np.where(known, 0.0, low), np.where(known, 0.0, high)
        target = np.broadcast_to(np.where(np.isinf(score), 0.0, score), low.shape)
        return np.where(known, outer, solve_increasing(self.normal_score, target, start, stop))


def normalized_weights(weights: ArrayLike | None, n: int) -> Floats:
    """Return n weights that sum to 1, equal ones for None; raise InvalidInputError unless all are above zero.

    Parameters
    ----------
    weights : array-like of shape (n,) or None
        The weights, of any sum.
    n : int
        How many there must be.
    """
    array = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    if array.shape != (n,) or not np.all((array > 0) & np.isfinite(array)):
        raise InvalidInputError(f"weights must be {n} finite numbers above zero, or None; got {weights!r}.")
    return np.asarray(array / array.sum())


def _square_distance(one: Distribution, other: Distribution) -> Floats:
    """Return ∫(F − G)² of each row, (n,)."""
    if isinstance(one, Normal) and isinstance(other, Normal):
        # E|X − Y| − E|X − X'|/2 − E|Y − Y'|/2
        within = (one.scale + other.scale) / np.sqrt(np.pi)
        scale = np.hypot(one.scale, other.scale)
        between = scale * mean_distance((one.loc - other.loc) / scale)
        return np.asarray(np.maximum(between - within, 0.0))
    return _by_panels(one, other)


def _by_panels(one: Distribution, other: Distribution) -> Floats:
    """Integrate over panels between quantiles of both, which are narrow enough for smooth distribution functions."""
    levels = [ndtr(score) for score in _SCORES]
    edges = np.sort(np.stack([each.ppf(p) for each in (one, other) for p in levels]), axis=0)
    total = np.zeros(one.shape)
    for start, stop in pairwise(edges):
        for x, weight in gauss_nodes(start, stop, _RULE):
            total += weight * np.square(one.cdf(x) - other.cdf(x))
    return total
