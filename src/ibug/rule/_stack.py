"""Stacks: experts with the weights that have the best score on validation rows, by two convex programmes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import stack as kernel
from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_mean
from ibug.distributions import MixtureParams, Stack
from ibug.exceptions import InvalidInputError
from ibug.rule._experts import BANDWIDTHS, Evidence, Experts, ExpertStatistics, Pooled, checked_weights

#: The pull towards the normal expert: λ/n · |w − w_normal|², in units of its score.
SHRINKAGE = 2.0
_ROWS_PER_PULL = 2.0  # what the same λ is worth for the log score, in rows
#: The least number of validation rows that weights are found from.
FEWEST_ROWS = 10
#: The width of kernels on atoms where no rows show a better one.
USUAL_BANDWIDTH = 0.25

_MOST_STEPS = 100  # of Newton's method; about ten are usual
_PRECISE = 1e-12  # of the gain in a score
_FLAT = 1e-11  # a slope of no account, relative to the size of the problem
_RIDGE = 1e-12  # below that, so that it moves nothing by itself


@dataclass(frozen=True)
class StackRule:
    """J experts with the weights that `fit` found on validation rows, the normal one first."""

    experts: Experts
    weights: Floats  # (J,), which sum to 1
    scores: Floats  # (J,) of each expert alone on the validation rows, NaN where there were none
    score: float  # of the stack on the validation rows
    scoring: str  # which score it is, "crps" or "nll"
    pooled: Pooled
    bandwidth: float  # of the kernels that make a density of atoms, relative to the scale of the row
    reason: str = ""  # why the stack is the normal expert alone; empty where it is not
    # What distances from the prediction are multiplied by, of values below it and above it: those of pooled errors and
    # of neighbours. The scale of the normal expert, which has both sides, is multiplied by the geometric mean.
    sides: tuple[float, float] = (1.0, 1.0)
    # Whether neighbours' values have sides, too; not where they are values that the target often takes.
    moves_neighbors: bool = True

    @property
    def needs(self) -> Mapping[str, int]:
        """The number of neighbours whose targets and residuals make the distributions."""
        return self._active[0].needs

    def table(self) -> dict[str, NDArray[Any]]:
        """Return each expert with its weight and its own score as columns, ready for a DataFrame."""
        return {
            "expert": np.array(self.experts.names),
            "k": np.array(self.experts.k),
            "weight": self.weights,
            "score": self.scores,
        }

    def bounded(self, support: tuple[float, float]) -> StackRule:
        """Return the same stack with other bounds of the target."""
        return replace(self, pooled=replace(self.pooled, support=support))

    def with_more_neighbors(self, factor: float, most: int) -> StackRule:
        """Return the same stack of experts that ask this many times as many neighbours, `most` at most."""
        return replace(self, experts=self.experts.scaled(factor, most))

    def distribution(self, evidence: Evidence) -> Stack:
        """Return the distributions of rows."""
        experts, *weights = self._active
        near, (on_targets, on_residuals) = evidence.arrays(experts, self.pooled.grid), experts.arrays
        loc, n, k = near[0], len(near[0]), near[1].shape[1] + near[2].shape[1]
        atoms, masses = np.empty((n, k)), np.empty((n, k), np.float32)
        kernel.combine(*near, *on_targets, weights[0], *on_residuals, weights[1], 0, n, atoms, masses)
        scale = np.ascontiguousarray(evidence.scale, np.float64)
        if self.sides != (1.0, 1.0):
            scale = scale * self._middle
            if self.moves_neighbors:
                atoms = loc[:, None] + _stretched(atoms - loc[:, None], self.sides)
        return Stack.of_sorted(loc, scale, atoms, masses, self._mixture_params)

    @property
    def _middle(self) -> float:
        """The factor of the scale: the geometric mean of both sides."""
        return float(np.sqrt(self.sides[0] * self.sides[1]))

    @read_only_property
    def _active(self) -> tuple[Experts, Floats, Floats]:
        return self.experts.active(self.weights)

    @read_only_property
    def _mixture_params(self) -> MixtureParams:
        pooled, on_errors = self.pooled, self.weights[1] if self.experts.errors else 0.0
        weights = np.array([self.weights[0], on_errors, self.weights[self.experts.n_general :].sum()])
        errors = _stretched(pooled.errors, self.sides) / self._middle  # which the scale has, too
        shared = pooled.error_bandwidth, pooled.resolution, pooled.support
        return MixtureParams(weights, errors, self.bandwidth, *shared)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays that `from_state` takes."""
        names = ("weights", "scores", "score", "scoring", "bandwidth", "reason", "moves_neighbors")
        return {
            "experts": self.experts.state(),
            "pooled": self.pooled.state(),
            **{name: getattr(self, name) for name in names},
            "sides": list(self.sides),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> StackRule:
        """Return the stack that has this state; impossible values are refused."""
        experts = Experts.from_state(state["experts"])
        weights, scores = checked_weights(state, len(experts))
        below, above = (float(factor) for factor in state["sides"])
        if not (0 < below < np.inf and 0 < above < np.inf):
            raise InvalidInputError("Both sides of a stack are multiplied by finite factors above zero.")
        found = weights, scores, float(state["score"]), str(state["scoring"])
        shared = Pooled.from_state(state["pooled"]), float(state["bandwidth"]), str(state["reason"])
        stacked = cls(experts, *found, *shared, (below, above), bool(state["moves_neighbors"]))
        stacked._mixture_params  # noqa: B018 - impossible values are refused now, not when a row is predicted
        return stacked


def normal_stack(loc: Floats, scale: Floats, pooled: Pooled) -> Stack:
    """Return normal distributions in the form of a stack. Shapes: loc, scale (n,)."""
    weights, nothing = np.array([1.0, 0.0, 0.0]), np.empty((len(loc), 0))
    shared = pooled.errors, USUAL_BANDWIDTH, pooled.error_bandwidth, pooled.resolution, pooled.support
    return Stack.of_sorted(loc, scale, nothing, nothing.astype(np.float32), MixtureParams(weights, *shared))


def _stretched(distances: Floats, sides: tuple[float, float]) -> Floats:
    """Return distances from the prediction, times one factor below it and another above it."""
    return np.asarray(distances * np.where(distances < 0, *sides))


def fit(
    experts: Experts,
    pooled: Pooled,
    statistics: ExpertStatistics | None,
    scoring: str = "crps",
    shrinkage: float = SHRINKAGE,
) -> StackRule:
    r"""Find the weights of experts that have the best score on validation rows.

    For the CRPS, with a and B the mean distances of the experts to the targets and to each other, they minimise
    :math:`w \cdot a - \frac12 w^T B w + \frac{\lambda}{n} |w - w_0|^2`, a convex quadratic programme. For the log
    score they have the highest likelihood, with a prior worth 2λ rows for the normal expert, and the bandwidth is the
    best of eight. On the validation rows the stack is never worse than the normal expert alone. That one and the pooled
    errors keep a weight of 1/(n + 1) at least, so that every value has a density that is not absurdly small.
    """
    if scoring not in _FITS:
        raise InvalidInputError(f"A stack is fitted for one of the scores {tuple(_FITS)}; got {scoring!r}.")
    n = 0 if statistics is None else len(statistics)
    if statistics is None or n < FEWEST_ROWS:
        return normal_stack_rule(experts, pooled, scoring, too_few(n))
    weights, bandwidth, score, scores = _FITS[scoring](statistics, 1 + experts.errors, shrinkage)
    if not score <= scores[0]:
        normal = normal_stack_rule(experts, pooled, scoring, "No mixture scored better on the validation rows.")
        return replace(normal, scores=scores, score=float(scores[0]), bandwidth=bandwidth)
    return StackRule(experts, weights, scores, float(score), scoring, pooled, bandwidth)


def too_few(n: int) -> str:
    """Say that n validation rows are not enough."""
    rows = {0: "no validation rows", 1: "1 validation row"}.get(n, f"{n} validation rows")
    return f"With {rows}, weights of experts cannot be found: at least {FEWEST_ROWS} are needed."


def normal_stack_rule(experts: Experts, pooled: Pooled, scoring: str, reason: str) -> StackRule:
    """Return the stack in which the normal expert has all the weight, for a reason."""
    weights = np.eye(len(experts))[0]
    unknown = np.full(len(experts), np.nan)
    return StackRule(experts, weights, unknown, np.nan, scoring, pooled, USUAL_BANDWIDTH, reason)


Found = tuple[Floats, float, float, Floats]  # weights, bandwidth, score of the stack, score of each expert


def _for_crps(statistics: ExpertStatistics, kept: int, shrinkage: float) -> Found:
    weights, score, scores = from_distances(*statistics.means(), statistics.n_rows, kept, shrinkage)
    tried = [_log_score(density, weights, statistics.weights) for density in statistics.by_bandwidth]
    return weights, float(BANDWIDTHS[int(np.argmin(tried))]), score, scores


def from_distances(
    to_target: Floats, to_each_other: Floats, n: float, kept: int = 1, shrinkage: float = SHRINKAGE
) -> tuple[Floats, float, Floats]:
    """Return the weights of experts from their mean distances, the score of their mixture, and that of each expert.

    Shapes: to_target (J,); to_each_other (J, J).
    """
    scores = to_target - 0.5 * np.diag(to_each_other)
    unit = max(float(scores[0]), float(np.finfo(float).tiny))
    pull = 2 * shrinkage / n
    gradient = to_target / unit
    gradient[0] -= pull
    best = quadratic_minimum(gradient, pull * np.eye(len(scores)) - to_each_other / unit)
    weights = _with_least(best, n, kept)
    return weights, float(weights @ to_target - 0.5 * weights @ to_each_other @ weights), scores


def _for_nll(statistics: ExpertStatistics, kept: int, shrinkage: float) -> Found:
    densities, rows, prior = statistics.by_bandwidth, statistics.weights, max(_ROWS_PER_PULL * shrinkage, 1e-9)
    weights = [_with_least(likeliest(density, prior, rows), statistics.n_rows, kept) for density in densities]
    scores = [_log_score(density, own, rows) for density, own in zip(densities, weights, strict=True)]
    best = min(range(len(scores)), key=scores.__getitem__)
    return weights[best], float(BANDWIDTHS[best]), scores[best], np.asarray(-weighted_mean(densities[best], rows))


def _with_least(weights: Floats, n: float, kept: int) -> Floats:
    """Return the weights with at least 1/(n + 1) for the first `kept` experts; the others share the rest as before."""
    least = least_weight(n)
    raised = np.zeros(len(weights), np.bool_)
    for _ in range(kept):  # what is raised takes from the others, which may then be below the least
        raised[:kept] |= weights[:kept] < least
        rest = weights[~raised].sum()
        weights = np.where(raised, least, weights * (1 - least * raised.sum()) / max(rest, np.finfo(float).tiny))
    return np.asarray(weights / weights.sum())


def least_weight(n: float) -> float:
    """Return the weight that the first experts keep, with n rows as far as they count."""
    return 1 / (n + 1)


def _log_score(log_density: Floats, weights: Floats, rows: Floats | None) -> float:
    """Return the mean negative log density of the mixture."""
    top = log_density.max(axis=1)
    return float(-weighted_mean(np.log(np.exp(log_density - top[:, None]) @ weights) + top, rows))


_FITS = {"crps": _for_crps, "nll": _for_nll}


def quadratic_minimum(gradient: Floats, curvature: Floats) -> Floats:
    """Return the weights w that minimise g·w + ½ wᵀHw on the simplex, by an active set.

    Shapes: gradient (J,); curvature (J, J).
    """
    n = len(gradient)
    # On the simplex a constant added to H changes nothing, and makes it positive definite where it may be; the ridge
    # does so where it is not, so that a face has one minimum. Units do not matter.
    size = float(np.abs(gradient).max() + np.abs(curvature).max()) or 1.0
    gradient, curvature = gradient / size, curvature / size + 1.0 + _RIDGE * np.eye(n)
    weights = np.eye(n)[0]  # the first corner, from which each step goes downhill
    free = [0]
    for _ in range(20 * n + 20):
        best = _on_face(gradient, curvature, free)
        blocked = best < 0
        if blocked.any():  # go as far as the first weight that becomes zero, and hold that one there
            current = weights[free]
            steps = np.where(blocked, current / np.where(blocked, current - best, 1.0), np.inf)
            first = int(np.argmin(steps))
            weights[free] = np.maximum(current + steps[first] * (best - current), 0.0)
            weights[free[first]] = 0.0
            weights /= weights.sum()
            del free[first]
            continue
        weights = np.zeros(n)
        weights[free] = best
        slope = gradient + curvature @ weights
        slope = slope - slope @ weights
        slope[free] = 0.0
        steepest = int(np.argmin(slope))
        if slope[steepest] >= -_FLAT:
            break
        free.append(steepest)
    return np.asarray(weights / weights.sum())


def _on_face(gradient: Floats, curvature: Floats, free: list[int]) -> Floats:
    """Return the weights of sum 1 that minimise the quadratic function where all others are zero."""
    ones, own = np.ones(len(free)), curvature[np.ix_(free, free)]
    level, slope = np.linalg.solve(own, np.column_stack([ones, -gradient[free]])).T
    # The minimum without the condition, moved along H⁻¹1 until the sum is 1.
    return np.asarray(slope + level * (1 - slope.sum()) / level.sum())


def likeliest(log_density: Floats, prior: float = 1.0, rows: Floats | None = None) -> Floats:
    """Return the weights with the highest log likelihood of their mixture, by Newton's method on the simplex.

    Shapes: log_density (n, J); rows (n,).
    """
    # The maximum, which the EM algorithm approaches, of Σ log Σⱼ wⱼ pᵢⱼ + prior · log w₀: the prior is worth that many
    # rows of which only the first expert knows. As log w₀ ≤ 0, the likelihood is never below that of the first expert.
    n, j = effective_rows(rows, len(log_density)), log_density.shape[1]
    share = np.ones(len(log_density)) if rows is None else rows * (n / rows.sum())
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))

    def loss(w: Floats) -> float:  # per row
        with np.errstate(divide="ignore"):
            return -float((share * np.log(density @ w)).sum() + prior * np.log(w[0])) / n

    weights = np.full(j, 0.5 / j)
    weights[0] += 0.5
    value = loss(weights)
    for _ in range(_MOST_STEPS):
        ratio = density / (density @ weights)[:, None]
        weighted = share[:, None] * ratio
        gradient, curvature = -weighted.sum(axis=0) / n, weighted.T @ ratio / n
        gradient[0] -= prior / n / weights[0]
        curvature[0, 0] += prior / n / weights[0] ** 2
        step = quadratic_minimum(gradient - curvature @ weights, curvature) - weights
        gain = -float(gradient @ step)
        if gain <= _PRECISE:
            break
        length = 1.0
        while length > 1e-10 and not (after := loss(weights + length * step)) <= value - 0.1 * length * gain:
            length /= 2
        if length <= 1e-10:
            break
        weights, value = weights + length * step, after
    return np.asarray(np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum())
