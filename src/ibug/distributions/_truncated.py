"""Distributions inside known limits: what is outside is given to the rest, or counts as the nearest limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._normal_scores import HALF_LOG_2PI, Move, score_of_log_tail, score_of_tails, standardised
from ibug.distributions._numerics import crps_by_value, gauss_nodes, moments_by_value, panel_edges
from ibug.exceptions import InvalidInputError

_FAR = 8.2  # beyond it quantiles of distributions without exact normal scores may be infinite
_FARTHER = 12.0  # heavy tails have a share in the variance up to here
# Quantiles of distributions between points have kinks; panels that are narrow where the mass is keep their errors
# small. For the mode m of the score and such a distance e, a panel ends at ±√(m² + e²), with e^(−e²/2) of the mode's
# density.
_PANEL_ENDS = (0.0, 0.75, 1.5, 2.25, 3.0, 4.0, 5.5, 8.2, _FARTHER)
_RULE = leggauss(12)
# Beyond this score, or between scores closer to each other, a difference of log-probabilities has too few digits.
_FARTHEST_SCORE = 1e4
_CLOSEST_SCORES = 1e-9
_LEAST_LOG_MASS = -9.0  # of the mass inside, so that a difference of probabilities has 12 digits
_NARROWEST = 1e-12  # what stands for a distribution without mass inside, relative to the bound
_WIDEST = 10.0  # times what is inside the limits: the scale that this kernel may have
_BANDWIDTH = 0.25  # of the kernel that is the density of a probability at a limit, relative to the row's scale


class _Limited(Distribution):
    """Distributions of one family with the same limits; `_low` and `_high` are the normal scores of the limits."""

    parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(self, base: Distribution, lower: float, upper: float) -> None:
        lower, upper = float(lower), float(upper)
        if not lower < upper:
            raise InvalidInputError(
                f"The lower limit of the target must be below the upper one, (0, inf) say; got ({lower:g}, {upper:g})."
            )
        self.base, self.lower, self.upper, self._shape = base, lower, upper, base.shape
        self._low = base.normal_score(lower) if lower > -np.inf else np.full(base.shape, -np.inf)
        self._high = base.normal_score(upper) if upper < np.inf else np.full(base.shape, np.inf)

    @classmethod
    def concatenate(cls, distributions: Sequence[Self]) -> Self:
        """Join batches of the same family with the same limits to one."""
        inner = [one.base for one in distributions]
        return cls(type(inner[0]).concatenate(inner), distributions[0].lower, distributions[0].upper)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.base[rows], self.lower, self.upper)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to [{self.lower:g}, {self.upper:g}]: {self.base!r}>"


class Truncated(_Limited):
    """The distributions of Y given that lower ≤ Y ≤ upper; a value exactly at a limit has no probability of its own.

    With the normal score v = Φ⁻¹(F(y)), V is standard normal between the scores of the two bounds; all
    probabilities are differences of log Φ, so that bounds far out in a tail are no problem. Where a distribution has no
    mass between the bounds that floating point numbers can represent (the scores of both are infinite, beyond 1e4, or
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

    def __init__(self, base: Distribution, lower: float, upper: float) -> None:
        super().__init__(base, lower, upper)
        low, high = self._low, self._high
        apart = np.where(low < high, high, 1.0) - np.where(low < high, low, 1.0)
        self._empty = (apart < _CLOSEST_SCORES) | (low > _FARTHEST_SCORE) | (high < -_FARTHEST_SCORE)
        # Rows without mass are computed like others, with scores that do no harm, and then replaced.
        self._low, self._high = np.where(self._empty, -1.0, low), np.where(self._empty, 1.0, high)
        self._log_mass = _log_difference(self._low, self._high)
        if np.any(self._empty):
            rows = self._empty if self._shape else ...
            part = base[rows] if self._shape else base
            self._substitute = _tail(part, low[rows], high[rows], self.lower, self.upper)

    def censored(self) -> Censored:
        """Return the distributions of which what is outside counts as the nearest limit."""
        return Censored(self.base, self.lower, self.upper)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, −∞ outside the limits."""
        x, _, _, log_mass = self._match(y, self._low, self._high, self._log_mass)
        outside = (x < self.lower) | (x > self.upper)
        density = np.where(outside, -np.inf, self.base.logpdf(x) - log_mass)
        return self._replace(density, "logpdf", x)

    def cdf(self, y: ArrayLike) -> Floats:
        x, low, high, log_mass = self._match(y, self._low, self._high, self._log_mass)
        v = np.clip(self.base.normal_score(x), low, high)
        probability = np.exp(np.minimum(_log_difference(low, v) - log_mass, 0.0))
        limited = np.where(x < self.lower, 0.0, np.where(x >= self.upper, 1.0, probability))
        return self._replace(limited, "cdf", x)

    def ppf(self, q: ArrayLike) -> Floats:
        p, *_ = self._match_probability(q)
        with np.errstate(divide="ignore"):  # probabilities of exactly 0 and 1 have infinite logarithms
            quantile = self._quantile(np.log(p), np.log1p(-p))
        return self._replace(quantile, "ppf", p)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹ of the probability of a value of at most y, exact in both tails."""
        x, low, high, log_mass = self._match(y, self._low, self._high, self._log_mass)
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
        x, low, _, log_mass = self._match(y, self._low, self._high, self._log_mass)
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
        cdf, edges = self._probability(), panel_edges(self.ppf, self.lower, self.upper)
        columns = np.broadcast_to(x if x.ndim == 2 else x[..., None], (len(self), x.shape[1] if x.ndim == 2 else 1))
        scores = np.stack([crps_by_value(cdf, edges, column) for column in columns.T], axis=1)
        return scores if x.ndim == 2 else scores[:, 0]

    def _moments(self) -> tuple[Floats, Floats]:
        if self._integrates_values:
            return moments_by_value(self._probability(), panel_edges(self.ppf, self.lower, self.upper))
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
        below, low, high, log_mass = self._match(log_below, self._low, self._high, self._log_mass)
        return self._inside(_score_between(low, high, log_mass, below, log_above))

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


class Censored(_Limited):
    r"""The distributions of Y where a value outside the limits counts as the nearest limit, as in a Tobit model.

    The lower limit has the probability P(Y ≤ lower), the upper one P(Y ≥ upper); in between nothing changes. This is
    what conformal calibration makes of `Truncated` distributions: their score of a value at a limit would be infinite,
    here it is finite, and the larger the farther the limit is from what was predicted. ``cdf``, ``ppf``, ``mean`` and
    ``var`` are those of this distribution.

    It has jumps, and no density. ``pdf`` and ``logpdf`` are those of a smoothed one, as for `Stack`: the probability of
    a limit becomes a normal kernel, of which the half inside the limits counts; its standard deviation is a quarter
    of that of a normal distribution with the same quantiles at Φ(−1) and Φ(1). Hence the density integrates to 1.

    Parameters
    ----------
    base
        The distributions without limits, n rows, continuous.
    lower, upper : float
        The limits for all rows, −∞ or ∞ where there is none.

    Examples
    --------
    >>> from ibug.distributions import Censored, Normal
    >>> d = Censored(Normal([0.0, 5.0], [1.0, 1.0]), 0.0, float("inf"))
    >>> d.cdf(0.0).round(3)
    array([0.5, 0. ])
    >>> d.ppf([[0.05, 0.95]]).round(3)
    array([[0.   , 1.645],
           [3.355, 6.645]])
    """

    has_kinks: ClassVar[bool] = True

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, of the smoothed distribution; −∞ outside the limits."""
        return self._log_density(y, None)

    def moved_logpdf(self, y: ArrayLike, move: Move) -> Floats:
        return self._log_density(y, move)

    def cdf(self, y: ArrayLike) -> Floats:
        (x,) = self._match(y)
        return np.where(x < self.lower, 0.0, np.where(x >= self.upper, 1.0, self.base.cdf(x)))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the smallest value y with a probability of at least q for values up to y."""
        p, *_ = self._match_probability(q)
        return np.asarray(np.clip(self.base.ppf(p), self.lower, self.upper))

    def normal_score(self, y: ArrayLike) -> Floats:
        (x,) = self._match(y)
        score = self.base.normal_score(x)
        return np.where(x < self.lower, -np.inf, np.where(x >= self.upper, np.inf, score))

    def middle_score(self, y: ArrayLike) -> Floats:
        """Return the normal score of the middle of the jump at y, (P(Y < y) + P(Y ≤ y))/2: finite at the limits."""
        x, low, high = self._match(y, self._low, self._high)
        score = np.where(x == self.lower, score_of_log_tail(log_ndtr(low) - np.log(2)), self.normal_score(x))
        return np.where(x == self.upper, -score_of_log_tail(log_ndtr(-high) - np.log(2)), score)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w: exactly the limit where the score is that of the limit."""
        score, low, high = self._match(w, self._low, self._high)
        value = np.clip(self.base.from_normal_score(score), self.lower, self.upper)
        return np.where(score <= low, self.lower, np.where(score >= high, self.upper, value))

    def jumps(self) -> Floats:
        """Return the limits, (n, m): the values that have a probability of their own."""
        limits = [limit for limit in (self.lower, self.upper) if np.isfinite(limit)]
        return np.broadcast_to(np.array(limits, np.float64), (*self._shape, len(limits)))

    def mean(self) -> Floats:
        """Return the means, by numerical integration between the limits."""
        return self._moments()[0]

    def var(self) -> Floats:
        """Return the variances, by numerical integration between the limits."""
        return self._moments()[1]

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score.

        The distribution is a mixture of both limits and of the truncated distribution G, and
        :math:`\int (G(x) - 1[x \ge z])^2 dx` at a limit z is the score of G there.
        """
        (x,) = self._match(y)
        parts = [(mass, limit) for mass, limit in zip(self._masses(), (self.lower, self.upper), strict=True)]
        parts = [part for part in parts if np.isfinite(part[1])]
        rest = 1 - sum((mass for mass, _ in parts), np.zeros(self._shape))
        apart = sum((rest * mass * self._inside.crps(limit) for mass, limit in parts), np.zeros(self._shape))
        if len(parts) == 2:
            apart = apart + parts[0][0] * parts[1][0] * (self.upper - self.lower)
        if self._shape and x.ndim == 2:
            parts, rest, apart = [(mass[:, None], limit) for mass, limit in parts], rest[:, None], apart[:, None]
        total = rest * self._inside.crps(x) + sum(mass * np.abs(x - limit) for mass, limit in parts)
        return np.asarray(np.maximum(total - apart, 0.0))

    @read_only_property
    def _inside(self) -> Truncated:
        return Truncated(self.base, self.lower, self.upper)

    def _masses(self) -> tuple[Floats, Floats]:
        """Return the probabilities of both limits, (n,) each."""
        return np.asarray(ndtr(self._low)), np.asarray(ndtr(-self._high))

    def _moments(self) -> tuple[Floats, Floats]:
        (below, above), inner = self._masses(), self._inside.mean()
        rest = np.maximum(1 - below - above, 0.0)
        lower, upper = (limit if np.isfinite(limit) else 0.0 for limit in (self.lower, self.upper))  # mass of zero
        mean = below * lower + rest * inner + above * upper
        between = sum(
            mass * np.square(center - mean) for mass, center in ((below, lower), (rest, inner), (above, upper))
        )
        return np.asarray(mean), np.asarray(rest * self._inside.var() + between)

    def _log_density(self, y: ArrayLike, move: Move | None) -> Floats:
        """Return the log density of the smoothed distribution, whose scores may be moved."""
        x, low, high = self._match(y, self._low, self._high)
        total = np.asarray(self.base.logpdf(x) if move is None else self.base.moved_logpdf(x, move))
        ends = np.array([-1.0, 1.0]) if move is None else move.forward(np.array([-1.0, 1.0]))
        scale = (self.base.from_normal_score(ends[1]) - self.base.from_normal_score(ends[0])) / 2
        if move is not None:  # which may stretch what is outside the limits, as if values were there
            scale = np.minimum(scale, _WIDEST * self._spread_inside(move))
        scale = scale[:, None] if self._shape and x.ndim == 2 else scale
        for limit, score, sign in ((self.lower, low, 1.0), (self.upper, high, -1.0)):
            if np.isfinite(limit):
                log_mass = log_ndtr(sign * (score if move is None else move.inverse(score)))
                width = np.maximum(_BANDWIDTH * scale, max(_NARROWEST * abs(limit), 1e-150))
                z = standardised(np.broadcast_to(x, total.shape), np.asarray(limit), width)
                inside = _log_difference(np.zeros(width.shape), (self.upper - self.lower) / width)
                kernel = -0.5 * np.square(z) - HALF_LOG_2PI - np.log(width) - inside
                total = np.logaddexp(total, log_mass + kernel)
        return np.where((x < self.lower) | (x > self.upper), -np.inf, total)

    def _spread_inside(self, move: Move) -> Floats:
        """Return half the distance of the 16 % and 84 % quantiles of what is inside the limits after a move, (n,)."""
        low, high = move.inverse(self._low), move.inverse(self._high)
        log_mass = _log_difference(low, high)
        known = np.isfinite(log_mass)  # else nothing is inside, or too little
        low, high = np.where(known, low, -1.0), np.where(known, high, 1.0)
        log_mass = np.where(known, log_mass, 0.0)
        scores = (_score_between(low, high, log_mass, np.log(p), np.log1p(-p)) for p in ndtr([-1.0, 1.0]))
        lower, upper = (self.from_normal_score(move.forward(score)) for score in scores)
        return np.where(known, (upper - lower) / 2, np.inf)


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
    for v, weight in gauss_nodes(start, stop, _RULE):
        yield v, weight * np.exp(-0.5 * np.square(v) - HALF_LOG_2PI - log_mass)


def _score_between(low: Floats, high: Floats, log_mass: Floats, log_below: Any, log_above: Any) -> Floats:
    """Return the score between two others with these logarithms of the shares, of the mass between, on its sides."""
    log_cdf = np.logaddexp(log_ndtr(low), log_below + log_mass)
    log_sf = np.logaddexp(log_ndtr(-high), log_above + log_mass)
    return np.clip(score_of_tails(log_cdf, log_sf), low, high)


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


_LEAST_TILT = 1e-9  # that of a uniform distribution, to rounding


class Tilted(Distribution):
    """Distributions on [lower, upper] with densities ∝ exp(−rate · y): exponential, or uniform where the rate is zero.

    The end that the density grows to is finite; both are where the rate is zero.
    """

    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper", "rate")
    lower: Floats
    upper: Floats
    rate: Floats

    def __init__(self, lower: ArrayLike, upper: ArrayLike, rate: ArrayLike) -> None:
        super().__init__(lower=lower, upper=upper, rate=rate)

    def logpdf(self, y: ArrayLike) -> Floats:
        x, lower, upper, rate = self._match(y)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        distance = np.maximum(sign * (x - top), 0.0)
        density = np.log(decay) - decay * distance - np.log(-np.expm1(-tilt))
        return np.where((x < lower) | (x > upper), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        x, lower, upper, rate = self._match(y)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        distance = sign * (np.clip(x, lower, upper) - top)
        share = np.expm1(-decay * distance) / np.expm1(-tilt)
        return np.where(sign > 0, share, 1 - share)

    def ppf(self, q: ArrayLike) -> Floats:
        p, lower, upper, rate = self._match_probability(q)
        _, top, sign, decay, tilt = _form(lower, upper, rate)
        with np.errstate(divide="ignore"):  # an infinite end
            distance = -np.log1p(np.where(sign > 0, p, 1 - p) * np.expm1(-tilt)) / decay
        return np.asarray(np.clip(top + sign * distance, lower, upper))

    def mean(self) -> Floats:
        length, top, sign, decay, tilt = _form(self.lower, self.upper, self.rate)
        t = np.minimum(tilt, 700.0)
        small = t < 1e-4  # where 1 − t/(e^t − 1) cancels
        distance = np.where(small, np.where(small, length, 0.0) * (0.5 - t / 12), (1 - t / np.expm1(t)) / decay)
        return np.asarray(top + sign * distance)

    def var(self) -> Floats:
        length, _, _, decay, tilt = _form(self.lower, self.upper, self.rate)
        t = np.minimum(tilt, 700.0)
        small = t < 1e-2
        series = np.square(np.where(small, length, 0.0)) * (1 / 12 - np.square(t) / 240)
        return np.where(small, series, (1 - np.square(t / 2 / np.sinh(t / 2))) / np.square(decay))


def _form(lower: Floats, upper: Floats, rate: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the lengths, the end with the highest density, the way from it, the rate, and rate times length."""
    length = upper - lower
    decay: Floats = np.maximum(np.abs(rate), _LEAST_TILT / length)
    falling = rate >= 0
    return length, np.where(falling, lower, upper), np.where(falling, 1.0, -1.0), decay, decay * length
