"""Mixtures: the law of a value from one of several laws, drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri
from sklearn.utils import check_random_state

from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._normal import Normal
from ibug.distributions._roots import solve_increasing
from ibug.distributions._tails import score_of_tails
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

# Normal scores of the quantiles of both laws that divide the line for ∫(F − G)²; beyond the last nothing is left.
_SCORES = np.linspace(-8.0, 8.0, 33)
_NODES, _WEIGHTS = leggauss(4)


class Mixture(Distribution):
    """Mixtures of m batches of laws, row by row: F = Σ wᵢ Fᵢ.

    Parameters
    ----------
    laws : sequence of Distribution
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

    def __init__(self, laws: Sequence[Distribution], weights: ArrayLike | None = None) -> None:
        self.laws = tuple(laws)
        if not self.laws or any(not isinstance(law, Distribution) for law in self.laws):
            kinds = [type(law).__name__ for law in self.laws]
            raise InvalidInputError(f"A mixture needs one batch of laws at least, and nothing else; got {kinds}.")
        shapes = {law.shape for law in self.laws}
        if len(shapes) > 1:
            raise InvalidInputError(f"The laws of a mixture must have the same rows; got shapes {sorted(shapes)}.")
        self.weights = normalized_weights(weights, len(self.laws))
        self._shape = self.laws[0].shape

    @classmethod
    def concatenate(cls, laws: Sequence[Self]) -> Self:
        """Join mixtures of the same families and weights to one."""
        first = laws[0]
        if any(not np.array_equal(law.weights, first.weights) for law in laws):
            raise InvalidInputError("Mixtures with different weights cannot be joined.")
        parts = zip(*(law.laws for law in laws), strict=True)
        return cls([type(part[0]).concatenate(part) for part in parts], first.weights)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)([law[rows] for law in self.laws], self.weights)

    def __repr__(self) -> str:
        parts = [f"{weight:.3g} × {law!r}" for weight, law in zip(self.weights, self.laws, strict=True)]
        return f"<Mixture: {', '.join(parts)}>"

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y."""
        return self._log_sum(law.logpdf(y) for law in self.laws)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        # Rounding of the weights must not take it above 1.
        return np.minimum(self._sum(law.cdf(y) for law in self.laws), 1.0)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q, by a search between the components' quantiles."""
        (p,) = self._match_probability(q)
        return self._quantile([law.ppf(p) for law in self.laws], np.asarray(ndtri(p)))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return the standard normal value of the same rank as y, as exact in the tails as the components' scores."""
        scores = [law.normal_score(y) for law in self.laws]
        below, above = (self._log_sum(log_ndtr(sign * score) for score in scores) for sign in (1, -1))
        return score_of_tails(below, above)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w."""
        (score,) = self._match(w)
        return self._quantile([law.from_normal_score(score) for law in self.laws], score)

    def mean(self) -> Floats:
        """Return the means."""
        return self._sum(law.mean() for law in self.laws)

    def var(self) -> Floats:
        """Return the variances: the mean of the variances and the variance of the means."""
        mean = self.mean()
        return self._sum(law.var() + np.square(law.mean() - mean) for law in self.laws)

    def rvs(self, size: int | None = None, random_state: Any = None) -> Floats:
        """Draw samples; see :meth:`Distribution.rvs`. Each comes from a component of its own."""
        generator = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
        shape = self._shape if size is None else (*self._shape, size)
        component = generator.choice(len(self.laws), size=shape, p=self.weights)
        samples = np.stack([law.rvs(size, generator) for law in self.laws])
        return np.asarray(np.take_along_axis(samples, component[None], axis=0)[0])

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score.

        From :math:`\sum_i w_i (F_i - 1)^2 - (\sum_i w_i F_i - 1)^2 = \sum_{i<j} w_i w_j (F_i - F_j)^2` it is
        :math:`\sum_i w_i CRPS(F_i, y) - \sum_{i<j} w_i w_j \int (F_i - F_j)^2 dx`. The components' own scores are as
        exact as theirs; the integrals are in closed form between normal laws, else numerical.
        """
        (x,) = self._match(y)
        score = self._sum(law.crps(x) for law in self.laws)
        saved = np.zeros(self._shape)
        for i, j in combinations(range(len(self.laws)), 2):
            saved += self.weights[i] * self.weights[j] * _square_distance(self.laws[i], self.laws[j])
        return np.maximum(score - (saved[:, None] if self._shape and x.ndim == 2 else saved), 0.0)

    def _sum(self, parts: Iterator[Floats]) -> Floats:
        return np.asarray(sum(weight * part for weight, part in zip(self.weights, parts, strict=True)))

    def _log_sum(self, parts: Iterator[Floats]) -> Floats:
        logs = [np.log(weight) + part for weight, part in zip(self.weights, parts, strict=True)]
        return np.asarray(logsumexp(logs, axis=0))

    def _quantile(self, quantiles: list[Floats], score: Floats) -> Floats:
        """Return the values with the normal score; they are between the components' quantiles of that score."""
        low, high = np.min(quantiles, axis=0), np.max(quantiles, axis=0)
        # Of the probabilities 0 and 1 it is an end of the support; and where a component reaches no further, infinite.
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
        between = _mean_distance(one.loc - other.loc, np.hypot(one.scale, other.scale))
        return np.asarray(np.maximum(between - within, 0.0))
    return _by_panels(lambda x: np.square(one.cdf(x) - other.cdf(x)), one, other)


def _mean_distance(mean: Floats, std: Floats) -> Floats:
    """Return E|Z| for normal Z."""
    z = mean / std
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
    return np.asarray(2 * std * density + mean * (2 * ndtr(z) - 1))


def _by_panels(function: Callable[[Floats], Floats], one: Distribution, other: Distribution) -> Floats:
    """Integrate over panels between quantiles of both laws, so narrow that both distribution functions are smooth."""
    levels = [ndtr(score) for score in _SCORES]
    edges = np.sort(np.stack([law.ppf(p) for law in (one, other) for p in levels]), axis=0)
    total = np.zeros(one.shape)
    for start, stop in pairwise(edges):
        half, center = (stop - start) / 2, (stop + start) / 2
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * half * function(center + half * node)
    return total
