"""Distributions given that the value is inside known limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from ibug._typing import Floats
from ibug.distributions import _by_value as by_value
from ibug.distributions._base import Distribution
from ibug.distributions._tails import score_of_tails
from ibug.distributions._tilted import Tilted
from ibug.exceptions import InvalidInputError

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_FAR = 8.2  # beyond it quantiles of distributions without exact normal scores may be infinite
_FARTHER = 12.0  # heavy tails have a share in the variance up to here
# Quantiles of distributions between points have kinks; panels that are narrow where the mass is keep their errors
# small. For the mode m of the score and such a distance e, a panel ends at ±√(m² + e²), with e^(−e²/2) of the mode's
# density.
_PANEL_ENDS = (0.0, 0.75, 1.5, 2.25, 3.0, 4.0, 5.5, 8.2, _FARTHER)
_NODES, _WEIGHTS = leggauss(12)
# Beyond this score, or between scores closer to each other, a difference of log-probabilities has too few digits.
_FARTHEST_SCORE = 1e4
_CLOSEST_SCORES = 1e-9
_LEAST_LOG_MASS = -9.0  # of the mass inside, so that a difference of probabilities has 12 digits
_NARROWEST = 1e-12  # what stands for a distribution without mass inside, relative to the bound


class Truncated(Distribution):
    """The distributions of Y given that lower ≤ Y ≤ upper.

    With the normal score v = Φ⁻¹(F(y)), V is standard normal between the scores of the two bounds; all
    probabilities are differences of log Φ, so that bounds far out in a tail are no problem. Where a distribution has no
    mass between the bounds that floating point numbers could tell (the scores of both are infinite, beyond 1e4, or
    closer to each other than 1e-9), a simple distribution stands for it: exponential from the bound that is nearer to
    the distribution's mean, with the rate ``|bound − mean|/variance``, as for a normal distribution of which only a far
    tail is left; and where the distribution has values on both sides of the bounds, uniform between them, or tilted as
    its density is.

    Parameters
    ----------
    base
        The distributions without limits, n rows. The truncated distributions are as exact in the tails as its
        ``normal_score`` and ``from_normal_score``.
    lower, upper : float
        The limits for all rows, −∞ or ∞ where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.distributions import Normal, Truncated
    >>> d = Truncated(Normal([0.0, 5.0], [1.0, 1.0]), 0.0, np.inf)
    >>> d.ppf(0.5).round(3)
    array([0.674, 5.   ])
    >>> d.mean().round(3)
    array([0.798, 5.   ])
    """

    parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(self, base: Distribution, lower: float, upper: float) -> None:
        lower, upper = float(lower), float(upper)
        if not lower < upper:
            raise InvalidInputError(
                f"The lower limit of the target must be below the upper one, (0, inf) say; got ({lower:g}, {upper:g})."
            )
        self.base = base
        self.lower = lower
        self.upper = upper
        self._shape = base.shape
        low = base.normal_score(lower) if lower > -np.inf else np.full(base.shape, -np.inf)
        high = base.normal_score(upper) if upper < np.inf else np.full(base.shape, np.inf)
        apart = np.where(low < high, high, 1.0) - np.where(low < high, low, 1.0)
        self._empty = (apart < _CLOSEST_SCORES) | (low > _FARTHEST_SCORE) | (high < -_FARTHEST_SCORE)
        # Rows without mass are computed like others, with scores that do no harm, and then replaced.
        self._low: Floats = np.where(self._empty, -1.0, low)
        self._high: Floats = np.where(self._empty, 1.0, high)
        self._log_mass = _log_difference(self._low, self._high)
        if np.any(self._empty):
            rows = self._empty if self._shape else ...
            part = base[rows] if self._shape else base
            self._substitute = _tail(part, low[rows], high[rows], lower, upper)

    @classmethod
    def concatenate(cls, distributions: Sequence[Truncated]) -> Truncated:
        """Join batches of the same family with the same limits to one."""
        inner = [one.base for one in distributions]
        return cls(type(inner[0]).concatenate(inner), distributions[0].lower, distributions[0].upper)

    def __getitem__(self, rows: Any) -> Truncated:
        return Truncated(self.base[rows], self.lower, self.upper)

    def __repr__(self) -> str:
        return f"<Truncated to [{self.lower:g}, {self.upper:g}]: {self.base!r}>"

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, −∞ outside the limits."""
        x, _, _, log_mass = self._match_scores(y)
        outside = (x < self.lower) | (x > self.upper)
        density = np.where(outside, -np.inf, self.base.logpdf(x) - log_mass)
        return self._replace(density, "logpdf", x)

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        x, low, high, log_mass = self._match_scores(y)
        v = np.clip(self.base.normal_score(x), low, high)
        probability = np.exp(np.minimum(_log_difference(low, v) - log_mass, 0.0))
        limited = np.where(x < self.lower, 0.0, np.where(x >= self.upper, 1.0, probability))
        return self._replace(limited, "cdf", x)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""
        p, *_ = self._match_probability(q)
        with np.errstate(divide="ignore"):  # probabilities of exactly 0 and 1 have infinite logarithms
            quantile = self._quantile(np.log(p), np.log1p(-p))
        return self._replace(quantile, "ppf", p)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹ of the probability of a value of at most y, exact in both tails."""
        x, low, high, log_mass = self._match_scores(y)
        v = np.clip(self.base.normal_score(x), low, high)
        below = np.minimum(_log_difference(low, v) - log_mass, 0.0)
        above = np.minimum(_log_difference(v, high) - log_mass, 0.0)
        return self._replace(score_of_tails(below, above), "normal_score", x)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w, exact in both tails."""
        score, *_ = self._match(w)
        return self._replace(self._quantile(log_ndtr(score), log_ndtr(-score)), "from_normal_score", score)

    def mean(self) -> Floats:
        """Return the means, by numerical integration; for smooth distributions the relative error is below 1e-6."""
        return self._replace(self._moments()[0], "mean")

    def var(self) -> Floats:
        """Return the variances, by numerical integration; for smooth distributions the relative error is below 1e-6."""
        return self._replace(self._moments()[1], "var")

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score, integrated over the scores inside.

        With the truncated distribution's F at the score v of its values, it is
        :math:`2 E[(1[V > v_y] - F(V)) (Q(\Phi(V)) - y)]`. The relative error is below 1e-6 for
        smooth distributions, and about 1e-3 for those interpolated between points.
        """
        x, low, _, log_mass = self._match_scores(y)
        if self._integrates_values:
            return self._replace(self._crps_by_value(x), "crps", x)
        v_y = self.base.normal_score(x)
        easy = bool(np.all(_is_easy(self._low, self._high, self._log_mass)))
        total = np.zeros(v_y.shape)
        for begin, end in self._panels():
            if self._shape and x.ndim == 2:
                begin, end = begin[:, None], end[:, None]
            middle = np.clip(v_y, begin, end)
            for start, stop, above in ((begin, middle, 0.0), (middle, end, 1.0)):
                for v, weight in _nodes(start, stop, log_mass):
                    probability = _share(low, v, log_mass, easy)
                    total += weight * (above - probability) * (self._inside(v) - x)
        return self._replace(2 * total, "crps", x)

    @property
    def _integrates_values(self) -> bool:
        """Whether integrals are over values: differences of probabilities must have digits enough."""
        return self.base.costly_quantiles and bool(self._shape) and bool(np.all(self._log_mass > _LEAST_LOG_MASS))

    def _probability(self) -> Callable[[Floats], Floats]:
        """Return the function that takes one value per row, inside the limits, to the probability of at most that."""
        below = self.base.cdf(self.lower) if self.lower > -np.inf else np.zeros(self._shape)
        mass = np.exp(self._log_mass)
        return lambda x: np.clip((self.base.cdf(x) - below) / mass, 0.0, 1.0)

    def _crps_by_value(self, x: Floats) -> Floats:
        cdf, edges = self._probability(), by_value.edges_of(self.ppf, self.lower, self.upper)
        columns = np.broadcast_to(x if x.ndim == 2 else x[..., None], (len(self), x.shape[1] if x.ndim == 2 else 1))
        scores = np.stack([by_value.crps(cdf, edges, column) for column in columns.T], axis=1)
        return scores if x.ndim == 2 else scores[:, 0]

    def _moments(self) -> tuple[Floats, Floats]:
        if self._integrates_values:
            return by_value.moments(self._probability(), by_value.edges_of(self.ppf, self.lower, self.upper))
        center = self.from_normal_score(0.0)
        mass, first, second = (np.zeros(self._shape) for _ in range(3))
        for begin, end in self._panels():
            for v, weight in _nodes(begin, end, self._log_mass):
                distance = self._inside(v) - center
                mass += weight
                first += weight * distance
                second += weight * np.square(distance)
        mass = np.maximum(mass, np.finfo(float).tiny)
        first, second = first / mass, second / mass
        return np.asarray(center + first), np.asarray(np.maximum(second - np.square(first), 0.0))

    def _panels(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield the ends of the panels to integrate over, as scores of shape (n,); see `_PANEL_ENDS`."""
        start, stop = self._range()
        mode = np.clip(0.0, self._low, self._high)
        outwards = [np.sqrt(np.square(mode) + end**2) for end in _PANEL_ENDS]
        edges = [np.clip(edge, start, stop) for edge in [*(-edge for edge in reversed(outwards)), *outwards]]
        for begin, end in pairwise(edges):
            if not np.array_equal(begin, end):  # some are cut off in all rows
                yield begin, end

    def _range(self) -> tuple[Floats, Floats]:
        """Return the scores between which the density of V is more than its largest value times exp(−_FARTHER²/2)."""
        mode = np.clip(0.0, self._low, self._high)

        def end(sign: float, bound: Floats) -> Floats:
            nearest = np.maximum if sign < 0 else np.minimum
            far = nearest(bound, sign * np.sqrt(np.square(mode) + _FARTHER**2))
            reachable = nearest(bound, sign * np.maximum(_FAR, sign * mode))
            return np.asarray(np.where(np.isfinite(self._inside(far)), far, reachable))

        return end(-1.0, self._low), end(1.0, self._high)

    def _inside(self, v: Floats) -> Floats:
        """Return the values with the score v in the base; rounding must not take them outside the limits."""
        return np.asarray(np.clip(self.base.from_normal_score(v), self.lower, self.upper))

    def _quantile(self, log_below: Floats, log_above: Floats) -> Floats:
        """Return the value with these log-probabilities below and above it."""
        below, low, high, log_mass = self._match_scores(log_below)
        log_cdf = np.logaddexp(log_ndtr(low), below + log_mass)
        log_sf = np.logaddexp(log_ndtr(-high), log_above + log_mass)
        return self._inside(np.clip(score_of_tails(log_cdf, log_sf), low, high))

    def _match_scores(self, argument: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the argument, the scores of the limits, and the log of the mass between, ready to be broadcast."""
        (x,) = self._match(argument)
        if self._shape and x.ndim == 2:
            return x, self._low[:, None], self._high[:, None], self._log_mass[:, None]
        return x, self._low, self._high, self._log_mass

    def _replace(self, result: Floats, method: str, *argument: Floats) -> Floats:
        """Return the result where the base has mass inside, else that of the distribution which stands for it."""
        if not np.any(self._empty):
            return result
        of_substitute = getattr(self._substitute, method)
        if not self._shape:
            return np.asarray(of_substitute(*argument))
        per_row = (x[self._empty] if x.ndim and x.shape[0] == len(self) else x for x in argument)
        result[self._empty] = of_substitute(*per_row)
        return result


def _tail(distribution: Distribution, low: Floats, high: Floats, lower: float, upper: float) -> Tilted:
    """Return the distributions that stand for those without mass between the limits, whose scores are low and high."""
    mean, std = distribution.mean(), distribution.std()
    rate = np.where(low > 0, np.maximum(lower - mean, std), np.where(high < 0, -np.maximum(mean - upper, std), 0.0))
    # No steeper than floating point numbers near the bound can resolve.
    steepest = 1 / np.maximum(_NARROWEST * abs(lower if lower > -np.inf else upper), 1e-150)
    rate = np.clip(rate / std / std, -steepest, steepest)
    # Between scores that are known but very close, the value is as good as linear in the score, and the density of the
    # score v falls like exp(−v²/2).
    known = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
    close = known & (high - low < _CLOSEST_SCORES) & (np.abs(low) < _FAR)
    slope = (np.square(high) - np.square(low)) / 2 / (upper - lower)
    return Tilted(lower, upper, np.where(close, slope, rate))


def _nodes(start: Floats, stop: Floats, log_mass: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield scores from start to stop and their weights: the density of V given that it is inside, times the step."""
    half, center = (stop - start) / 2, (stop + start) / 2
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        v = center + half * node
        yield v, weight * half * np.exp(-0.5 * np.square(v) - _HALF_LOG_2PI - log_mass)


def _share(low: Floats, v: Floats, log_mass: Floats, easy: bool) -> Floats:
    """Return the probability of a score of at most v, given one above low."""
    if not easy:
        return np.exp(_log_difference(low, v) - log_mass)
    sign = np.where(low > 0, -1.0, 1.0)
    return np.asarray(sign * (ndtr(sign * v) - ndtr(sign * low)) * np.exp(-log_mass))


def _is_easy(low: Floats, high: Floats, log_mass: Floats) -> NDArray[np.bool_]:
    """Return where the difference of two probabilities, of the tail that the scores are in, has 13 digits."""
    larger = log_ndtr(np.where(low > 0, -low, high))
    return np.asarray((log_mass > -600) & (log_mass - larger > -7))


def _log_difference(low: Floats, high: Floats) -> Floats:
    """Return log(Φ(high) − Φ(low)), low ≤ high, by the tail in which both are smaller."""
    mirrored = low > -high
    larger = log_ndtr(np.where(mirrored, -low, high))
    smaller = log_ndtr(np.where(mirrored, -high, low))
    equal = smaller >= larger
    gap = np.where(equal, -1.0, np.where(equal, 0.0, smaller) - np.where(equal, 0.0, larger))
    # log(1 − e^gap), by the form that keeps the digits.
    near = gap > -np.log(2)
    log_share = np.where(near, np.log(-np.expm1(np.where(near, gap, -1.0))), np.log1p(-np.exp(gap)))
    return np.where(equal, -np.inf, larger + log_share)
