"""Distributions whose quantiles are recalibrated on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ibug._typing import Floats
from ibug.calibration._score_map import ScoreMap
from ibug.distributions import Distribution, Normal, gauss_nodes
from ibug.exceptions import InvalidInputError

_TAIL = 9.0  # how far out, beyond the last knot, a standard normal value can be
_NODES, _WEIGHTS = leggauss(12)
# Distributions that are interpolated between points have kinks: narrow panels where the mass is keep the errors small.
_PANELS = np.concatenate([np.arange(-_TAIL, -4, 1.0), np.linspace(-4, 4, 65), np.arange(5, _TAIL + 1, 1.0)])
_STEP_RULE = _STEP_NODES, _STEP_WEIGHTS = leggauss(3)  # between jumps or knots all is smooth and rises little
_ROWS_AT_A_TIME = 256  # about 15 MB
_NODES_AT_A_TIME = 16


class Recalibrated(Distribution):
    """The distributions of Y with F_c(y) = Φ(g⁻¹(Φ⁻¹(F(y)))): the distribution F, with its normal scores mapped by g.

    ``interval`` has the finite-sample guarantee of conformal prediction: its ends are scores that held-out rows had.
    The other methods belong to a distribution with a density, which goes through the same scores at fewer knots.

    Parameters
    ----------
    base
        The distributions before calibration, n rows.
    maps
        One map per group.
    groups : ndarray of int, shape (n,) or ()
        Which map counts for which row.
    own : ndarray of shape (n,) or (), or None
        The weight of each row, where held-out rows have weights; None for the largest of these.
    members : ndarray of bool, shape (n, n_maps) or (n_maps,), or None
        All maps that count for a row, where groups overlap: its interval is the widest of theirs.
    unseen : ndarray of bool or None
        Of each row, whether no held-out row had its group.
    """

    parameters: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        base: Distribution,
        maps: Sequence[ScoreMap],
        groups: NDArray[np.intp],
        own: Floats | None = None,
        members: NDArray[np.bool_] | None = None,
        unseen: NDArray[np.bool_] | None = None,
    ) -> None:
        self.base, self.maps, self._shape = base, tuple(maps), base.shape
        self.groups, self.own, self.members, self.unseen = groups, own, members, unseen

    @classmethod
    def concatenate(cls, distributions: Sequence[Recalibrated]) -> Recalibrated:
        """Join batches that the same calibrator has made to one."""
        first = distributions[0]

        def joined(name: str) -> Any:
            parts = [getattr(one, name) for one in distributions]
            return None if parts[0] is None else np.concatenate(parts)

        base = type(first.base).concatenate([one.base for one in distributions])
        return cls(base, first.maps, *map(joined, ("groups", "own", "members", "unseen")))

    @property
    def n_unseen(self) -> int:
        """The number of rows whose group no held-out row had."""
        return 0 if self.unseen is None else int(np.sum(self.unseen))

    def __getitem__(self, rows: Any) -> Recalibrated:
        parts = self.own, self.members, self.unseen
        own, members, unseen = (None if part is None else part[rows] for part in parts)
        return Recalibrated(self.base[rows], self.maps, self.groups[rows], own, members, unseen)

    def __repr__(self) -> str:
        return f"<Recalibrated {self.base!r}>"

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_group(lambda g, base, x: base.moved_logpdf(x, g), y)

    def cdf(self, y: ArrayLike) -> Floats:
        return np.asarray(ndtr(self.normal_score(y)))

    def ppf(self, q: ArrayLike) -> Floats:
        p = np.asarray(q, np.float64)
        if np.any((p < 0) | (p > 1)):
            raise InvalidInputError("A probability must be from 0 to 1.")
        return self._by_group(lambda g, base, x: base.from_normal_score(g.forward(ndtri(x))), p)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return the standard normal value of the same rank as y, exact however far away."""
        return self._by_group(_score, y)

    def middle_score(self, y: ArrayLike) -> Floats:
        """Return the normal score of the middle of the jump at y, as the map moves that of the distribution F."""
        return self._by_group(lambda g, base, x: g.inverse(base.middle_score(x)), y)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        return self._by_group(lambda g, base, x: base.from_normal_score(g.forward(x)), w)

    def _central(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of an interval that holds a new value with at least this probability, each of shape (n,)."""
        own = np.zeros(self._shape) if self.own is None else self.own  # which maps without weights do not look at

        def at(end: int) -> Callable[..., Floats]:
            def value(g: ScoreMap, base: Distribution, x: Floats) -> Floats:
                return base.from_normal_score(g.interval(confidence, None if self.own is None else x)[end] + 0.0 * x)

            return value

        lower, upper = (self._by_group(at(end), own) for end in (0, 1))
        if self.members is None:
            return lower, upper
        for number in range(len(self.maps)):
            alone = np.full(self._shape, number)
            other = Recalibrated(self.base, self.maps, alone, self.own)._central(confidence)
            rows = self.members[..., number]
            lower = np.where(rows, np.minimum(lower, other[0]), lower)
            upper = np.where(rows, np.maximum(upper, other[1]), upper)
        return lower, upper

    def mean(self) -> Floats:
        """Return the means, by numerical integration."""
        return self._moments()[0]

    def var(self) -> Floats:
        """Return the variances, by numerical integration."""
        return self._moments()[1]

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score; in closed form where the distribution is normal."""
        if isinstance(self.base, Normal):
            return self._by_group(_normal_crps, y)
        return self._by_group(_stepped_crps if self.base.has_kinks else _smooth_crps, y)

    def _moments(self) -> tuple[Floats, Floats]:
        if isinstance(self.base, Normal):  # E[μ + σg(V)] and its variance need g's moments only
            moments = np.array([_moments_of(g) for g in self.maps])[self.groups]
            first, second = moments[..., 0], moments[..., 1]
            variance = np.maximum(second - np.square(first), 0.0)
            return self.base.loc + self.base.scale * first, np.square(self.base.scale) * variance
        # Its own median: where calibration has narrowed it, the mean of before is far from all of its values.
        center = self.from_normal_score(0.0)
        both = self._by_group(_stepped_moments if self.base.has_kinks else _moments, center)
        first, second = both[..., 0], both[..., 1]
        known = np.isfinite(second)  # where a mean is not finite, a variance is not either
        variance = np.where(known, second, np.inf) - np.square(np.where(known, first, 0.0))
        return center + first, np.maximum(variance, 0.0)  # of one value, rounding may be all there is

    def _by_group(self, function: Callable[..., Floats], argument: ArrayLike) -> Floats:
        x = np.asarray(argument, np.float64)
        self._check_argument(x)
        if not self._shape:
            return function(self.maps[int(self.groups)], self.base, x)
        if len(self.maps) == 1 or len(self) == 0:
            return function(self.maps[0], self.base, x)
        per_row = x.ndim > 0 and x.shape[0] == len(self)
        groups = [(self.maps[group], self.groups == group) for group in np.unique(self.groups)]
        found = [function(g, self.base[rows], x[rows] if per_row else x) for g, rows in groups]
        out = np.empty((len(self), *found[0].shape[1:]))
        for (_, rows), part in zip(groups, found, strict=True):
            out[rows] = part
        return out


def _score(g: ScoreMap, base: Distribution, x: Floats) -> Floats:
    """Return the normal score after calibration, infinite for infinite x: very heavy tails have a finite one before."""
    return g.inverse(np.where(np.isinf(x), x, base.normal_score(x)))


def _moments(g: ScoreMap, distribution: Distribution, middle: Floats) -> Floats:
    """Return E[Y − middle] and E[(Y − middle)²], (n, 2); infinite where the terms still grow where they ought to end.

    A map that stretches the scores makes heavy tails heavier: a t distribution with ν degrees of freedom and a slope of
    s has a mean only if ν > s², and a variance only if ν > 2s². An odd power whose tails grow at the same rate is not a
    number. A lognormal distribution whose variance comes from beyond nine standard scores counts as one without.
    """
    total, last, before = np.zeros((3, *distribution.shape, 2))
    nodes, weights = _quadrature(g)
    calls = (nodes[start : start + _NODES_AT_A_TIME] for start in range(0, len(nodes), _NODES_AT_A_TIME))
    scores = (g.forward(v)[None, :] if distribution.shape else g.forward(v) for v in calls)
    values = (value for w in scores for value in np.moveaxis(distribution.from_normal_score(w), -1, 0))
    for v, weight, value in zip(nodes, weights, values, strict=True):
        away = value - middle
        with np.errstate(over="ignore", invalid="ignore"):  # infinite; on both sides: no number
            term = weight * np.stack([away, np.square(away)], axis=-1)
            total += term
        if abs(v) > _TAIL - 1:
            last += np.abs(term)
        elif abs(v) > _TAIL - 2:
            before += np.abs(term)
    one_sided = np.where(np.abs(total) > 0.01 * last, np.copysign(np.inf, total), np.nan)
    return np.where(last > before, one_sided, total)


def _stepped_moments(g: ScoreMap, distribution: Distribution, middle: Floats) -> Floats:
    """Return the same of distributions whose probabilities jump: from both tails, each on its side of the middle."""

    def first(x: Floats, value: Floats, below: Floats, above: Floats) -> Floats:
        return np.where(x < value, -below, above)

    def second(x: Floats, value: Floats, below: Floats, above: Floats) -> Floats:
        return 2 * np.abs(x - value) * np.where(x < value, below, above)

    with np.errstate(over="ignore", invalid="ignore"):  # infinite; on both sides: no number
        return np.stack([_integral(g, distribution, middle, tails) for tails in (first, second)], axis=-1)


def _moments_of(g: ScoreMap) -> tuple[float, float]:
    """Return E[g(V)] and E[g(V)²] for a standard normal V."""
    v, weights = _quadrature(g)
    w = g.forward(v)
    return float(np.sum(weights * w)), float(np.sum(weights * np.square(w)))


def _smooth_crps(g: ScoreMap, distribution: Distribution, y: Floats) -> Floats:
    """Return 2 E[(1[V > v] − Φ(V)) (Q(V) − y)], v the calibrated score of y, piece by piece of g, where Q is smooth."""
    score = np.clip(g.inverse(distribution.normal_score(y)), -_TAIL, _TAIL)
    edges = _edges(g)
    piece = np.clip(np.searchsorted(edges, score, side="right"), 1, len(edges) - 1)  # by its upper end
    columns = bool(distribution.shape) and np.ndim(y) == 2

    def away(v: Any) -> Floats:
        value = distribution.from_normal_score(g.forward(np.asarray(v)))
        return np.asarray((value[:, None] if columns and np.ndim(value) == 1 else value) - y)

    total = np.zeros(score.shape)
    for number, ends in enumerate(pairwise(edges), start=1):
        above = np.where(piece < number, 1.0, 0.0)
        for v, weight in gauss_nodes(*ends, _STEP_RULE):
            total += weight * np.exp(-0.5 * v * v) * (above - ndtr(v)) * away(v)
    for v, weight in gauss_nodes(score, edges[piece], _STEP_RULE):  # the rest of the piece that y is in
        total += weight * np.exp(-0.5 * np.square(v)) * away(v)
    return np.asarray(total * np.sqrt(2 / np.pi))


def _edges(g: ScoreMap) -> Floats:
    """Return the ends of pieces between which g is a line, none of them wide."""
    inner = g.v[(g.v > -_TAIL) & (g.v < _TAIL)]
    return np.unique(np.concatenate([np.linspace(-_TAIL, _TAIL, 19), inner]))


def _quadrature(g: ScoreMap) -> tuple[Floats, Floats]:
    """Return nodes and weights for E[f(g(V))], V standard normal: Gauss–Legendre between knots, where g is smooth."""
    edges = _edges(g)
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    v = middle + half * _NODES
    weights = half * _WEIGHTS * np.exp(-0.5 * np.square(v)) / np.sqrt(2 * np.pi)
    return v.ravel(), weights.ravel()


def _normal_crps(g: ScoreMap, distribution: Normal, y: Floats) -> Floats:
    """Return σ (∫_{-∞}^{v} Φ² g' + ∫_{v}^{∞} (1 − Φ)² g'), v the calibrated score of y, piece by piece of g."""
    v = g.inverse(distribution.normal_score(y))
    piece = np.searchsorted(g.v, v)
    slopes, knots = g.slopes, g.v
    below_at_knots = slopes[0] * _square_integral(knots[0]) + np.append(
        0.0, np.cumsum(slopes[1:-1] * np.diff(_square_integral(knots)))
    )
    above_at_knots = slopes[-1] * _square_integral(-knots[-1]) + np.append(
        np.cumsum((slopes[1:-1] * -np.diff(_square_integral(-knots)))[::-1])[::-1], 0.0
    )
    at = np.minimum(piece, len(knots) - 1)  # the knot after v, or the last one
    slope = slopes[piece]
    below = below_at_knots[at] + slope * (_square_integral(v) - _square_integral(knots[at]))
    above = above_at_knots[at] + slope * (_square_integral(-v) - _square_integral(-knots[at]))
    scale = distribution.scale[:, None] if distribution.shape and np.ndim(y) == 2 else distribution.scale
    return np.asarray(scale * (below + above))


def _square_integral(v: Floats) -> Floats:
    """Return ∫_{-∞}^{v} Φ(t)² dt; by symmetry the integral of (1 − Φ)² above v is that at −v."""
    cdf = ndtr(v)
    density = np.exp(-0.5 * np.square(np.clip(v, -40.0, 40.0))) / np.sqrt(2 * np.pi)  # zero beyond
    return np.asarray(v * np.square(cdf) + 2 * cdf * density - ndtr(np.sqrt(2) * v) / np.sqrt(np.pi))


def _stepped_crps(g: ScoreMap, distribution: Distribution, y: Floats) -> Floats:
    """Return the CRPS ∫ (F(x) − 1[x ≥ y])² dx of F = Φ(g⁻¹(Φ⁻¹(F₀))), where F₀ has jumps. Shapes: y ()."""
    return _integral(g, distribution, y, lambda x, value, below, above: np.where(x < value, below, above) ** 2)


# Of x, the value, F(x) and 1 − F(x), which all can be broadcast to the shape of x.
Integrand = Callable[[Floats, Floats, Floats, Floats], Floats]


def _integral(g: ScoreMap, distribution: Distribution, y: Floats, integrand: Integrand) -> Floats:
    """Return the integral over all x for each value y."""
    if not distribution.shape:
        return _of_rows(g, distribution, np.reshape(y, (1, -1)), integrand).reshape(np.shape(y))
    n, flat = len(distribution), y.ndim < 2
    columns = np.broadcast_to(np.reshape(y, (-1, 1)) if flat else y, (n, 1 if flat else y.shape[1]))
    out = np.empty(columns.shape)
    for start in range(0, n, _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        out[rows] = _of_rows(g, distribution[rows], columns[rows], integrand)
    return out[:, 0] if flat else out


def _of_rows(g: ScoreMap, distribution: Distribution, y: Floats, integrand: Integrand) -> Floats:
    """Return the integrals of a few rows, (n, m), for m values each."""
    steps = np.unique(np.concatenate([_PANELS, g.v[np.abs(g.v) < _TAIL]]))
    knots = np.reshape(distribution.from_normal_score(g.forward(steps)[None, :]), (len(y), -1))
    places = np.concatenate([np.reshape(distribution.jumps(), (len(y), -1)), knots], axis=1)
    out = np.empty(y.shape)
    for column, value in enumerate(y.T):
        edges = np.sort(np.concatenate([places, value[:, None]], axis=1), axis=1)
        half, middle = np.diff(edges, axis=1) / 2, (edges[:, 1:] + edges[:, :-1]) / 2
        x = (middle[:, :, None] + half[:, :, None] * _STEP_NODES).reshape(len(y), -1)
        score = g.inverse(np.reshape(distribution.normal_score(x if distribution.shape else x[0]), x.shape))
        height = integrand(x, value[:, None], np.asarray(ndtr(score)), np.asarray(ndtr(-score)))
        out[:, column] = np.sum((height.reshape(*half.shape, -1) @ _STEP_WEIGHTS) * half, axis=1)
    return out
