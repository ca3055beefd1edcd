"""A monotone map of normal scores that makes distributions fit held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_quantile
from ibug.exceptions import InvalidInputError

_MOST_KNOTS = 40
#: A distribution can call a value impossible: its score is infinite, and only the interval says so.
LARGEST_KNOT = 1e12
_LEAST_SLOPE = 1e-12  # of a map whose scores are all zero, or nearly so
_IMPOSSIBLE = 1e150  # stands for an infinite score
_LARGEST_SHARE = 1e100  # of the weight of a new row, relative to the largest of the held-out rows
_LEAST_STEP = 1e-9  # of the largest score: knots closer together are one


@dataclass(frozen=True)
class ScoreMap:
    """A piecewise linear, increasing map g: a standard normal v becomes the score w = g(v) that held-out rows had.

    A *score* of y under a distribution F is Φ⁻¹(F(y)); for a normal one it is (y − μ)/σ. If distributions are right,
    scores are standard normal and g is the identity. Beyond the outermost knots g goes on with one slope, so that tails
    keep their shape. Scores that are infinite, or beyond 1e12, are no knots: they would stretch everything between
    them and the next one. They keep their ranks, so that an interval that has to hold them is as wide as it can be.
    """

    v: Floats  # (n_knots,), increasing
    w: Floats  # (n_knots,), increasing
    slope: float  # beyond the outermost knots
    scores: Floats  # (n,), the held-out scores in ascending order; of their absolute values if symmetric
    symmetric: bool
    weights: Floats | None = None  # (n,), of the held-out scores, in their order; None where all count the same

    @classmethod
    def of_absolute_scores(cls, scores: Floats, weights: Floats | None = None) -> ScoreMap:
        """Match the absolute scores: intervals stay symmetric around the median."""
        if weights is not None:
            return cls._weighted(np.abs(scores), weights, True)
        ordered = np.sort(np.abs(scores))
        n = len(ordered)
        grid = np.linspace(0.0, ndtri(0.5 + 0.5 * n / (n + 1)), _n_knots(n) + 1)[1:]
        ranks = _ranks(2 * ndtr(grid) - 1, n)
        ranks = ranks[ordered[ranks - 1] < LARGEST_KNOT]
        v = ndtri(0.5 + 0.5 * ranks / (n + 1))
        w = np.maximum(ordered[ranks - 1], _LEAST_SLOPE * v)
        v, w = _increasing(np.append(0.0, v), np.append(0.0, w))
        slope = float(w[-1] / v[-1]) if len(ranks) else 1.0
        return cls(np.append(-v[:0:-1], v), np.append(-w[:0:-1], w), slope, ordered, True)

    @classmethod
    def of_scores(cls, scores: Floats, weights: Floats | None = None) -> ScoreMap:
        """Match the scores themselves, so that quantiles of every level are right, each side by itself."""
        if weights is not None:
            return cls._weighted(scores, weights, False)
        ordered = np.sort(scores)
        n = len(ordered)
        end = ndtri(n / (n + 1))
        ranks = _ranks(ndtr(np.linspace(-end, end, _n_knots(n))), n)
        ranks = ranks[np.abs(ordered[ranks - 1]) < LARGEST_KNOT]
        if not len(ranks):
            return cls(np.zeros(1), np.zeros(1), 1.0, ordered, False)
        v, w = _increasing(ndtri(ranks / (n + 1)), ordered[ranks - 1])
        slope = float((w[-1] - w[0]) / (v[-1] - v[0])) if len(v) > 1 else 1.0
        return cls(v, w, slope, ordered, False)

    @classmethod
    def _weighted(cls, scores: Floats, weights: Floats, symmetric: bool) -> ScoreMap:
        """Match scores that have weights: the map of as many scores as they are worth, at their weighted quantiles."""
        order = np.argsort(scores, kind="stable")
        n = max(1, round(effective_rows(weights, len(scores))))
        finite = np.clip(scores, -_IMPOSSIBLE, _IMPOSSIBLE)  # between which quantiles can be interpolated
        some = np.asarray(weighted_quantile(finite, np.arange(1, n + 1) / (n + 1), weights))
        plain = cls.of_absolute_scores(some) if symmetric else cls.of_scores(some)
        return replace(plain, scores=scores[order], weights=weights[order])

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ScoreMap:
        """Return the map that has this state."""
        v, w, scores = (np.asarray(state[name], np.float64) for name in ("v", "w", "scores"))
        if v.ndim != 1 or v.shape != w.shape or not v.size or scores.ndim != 1 or not scores.size:
            raise InvalidInputError("A map of a calibrator has as many values as knots, one at least.")
        weights = state["weights"]
        if weights is not None:
            weights = np.asarray(weights, np.float64)
            if weights.shape != scores.shape or not np.all(np.isfinite(weights) & (weights > 0)):
                raise InvalidInputError("A map of a calibrator has as many weights as scores, all above zero.")
        return cls(v, w, float(state["slope"]), scores, bool(state["symmetric"]), weights)

    def forward(self, v: Floats) -> Floats:
        """Return w = g(v)."""
        inside = np.interp(v, self.v, self.w)
        beyond = np.minimum(v - self.v[0], 0.0) + np.maximum(v - self.v[-1], 0.0)
        return np.asarray(inside + self.slope * beyond)

    def inverse(self, w: Floats) -> Floats:
        """Return v with g(v) = w."""
        inside = np.interp(w, self.w, self.v)
        beyond = np.minimum(w - self.w[0], 0.0) + np.maximum(w - self.w[-1], 0.0)
        return np.asarray(inside + beyond / self.slope)

    @property
    def slopes(self) -> Floats:
        """The slopes before, between and after the knots, (n_knots + 1,)."""
        return np.concatenate([[self.slope], np.diff(self.w) / np.diff(self.v), [self.slope]])

    def slope_at(self, v: Floats) -> Floats:
        """Return g'(v)."""
        return np.asarray(self.slopes[np.searchsorted(self.v, v)])

    def has_rows_for(self, confidence: float) -> bool:
        """Whether there are held-out rows enough for finite ends; they are infinite also where scores are."""
        possible = replace(self, scores=np.zeros(len(self.scores)))
        return bool(np.all(np.isfinite(possible.interval(confidence))))

    def interval(self, confidence: float, own: Any = None) -> tuple[Any, Any]:
        """Return the scores between which a new row's score is with at least this probability; infinite if n is small.

        By exchangeability a new score is at most the r-th smallest of n held-out ones with probability r/(n + 1) at
        least, and below the l-th smallest with l/(n + 1) at most, whatever its distribution. With weights, ranks are
        sums of weights, and the new row has one as well, which counts on the unfavourable side.

        Shapes: own (n_new,).
        """
        if self.weights is not None:
            return self._weighted_interval(confidence, self.weights, self.weights.max() if own is None else own)
        n = len(self.scores)
        # Rounding in (n + 1) · level must not ask for one rank more than is needed.
        if self.symmetric:
            rank = int(np.ceil((n + 1) * confidence - 1e-9))
            end = float(self.scores[rank - 1]) if rank <= n else np.inf
            return -end, end
        low = int(np.floor((n + 1) * (1 - confidence) / 2 + 1e-9))
        high = int(np.ceil((n + 1) * (1 + confidence) / 2 - 1e-9))
        lower = float(self.scores[low - 1]) if low >= 1 else -np.inf
        return lower, float(self.scores[high - 1]) if high <= n else np.inf

    def _weighted_interval(self, confidence: float, weights: Floats, own: Any) -> tuple[Any, Any]:
        unit = weights.max()  # weights are known up to a factor
        with np.errstate(over="ignore"):
            own = np.minimum(np.asarray(own, np.float64) / unit, _LARGEST_SHARE)
        below = np.append(0.0, np.cumsum(weights / unit))  # the weight of the scores before each one, and of all
        total = below[-1] + own
        ends = np.append(self.scores, np.inf)
        small = 1e-12 * total
        if self.symmetric:
            end = ends[np.searchsorted(below[1:], confidence * total - small)]
            return -end, end
        upper = ends[np.searchsorted(below[1:], (1 + confidence) / 2 * total - small)]
        # The last score that, with the weight of the new row, has no more than its share below it.
        place = np.searchsorted(below[:-1], (1 - confidence) / 2 * total - own + small, side="right")
        return np.append(-np.inf, self.scores)[place], upper


def _n_knots(n: int) -> int:
    """Return how many knots n scores allow: one at each would follow their noise."""
    return min(n, _MOST_KNOTS, max(2, round(float(np.sqrt(n)))))


def _ranks(probabilities: Floats, n: int) -> NDArray[np.intp]:
    """Return the ranks, 1 to n, of probabilities, which are evenly spaced as normal values: dense in the tails."""
    return np.unique(np.clip(np.round((n + 1) * probabilities), 1, n).astype(np.intp))


def _increasing(v: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Drop knots that do not rise: of equal scores the last one stays."""
    step = _LEAST_STEP * np.max(np.abs(w))
    keep = np.append(np.diff(w) > step, True)
    if keep.sum() == 1 and len(v) > 1 and w[-1] > w[0]:
        keep[0] = True
    return v[keep], w[keep]
