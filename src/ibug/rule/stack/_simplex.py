"""Weights that are non-negative and sum to 1: the two convex problems that find the best of them."""

from __future__ import annotations

import numpy as np

from ibug._typing import Floats
from ibug._weights import effective_rows

_MOST_STEPS = 100  # of Newton's method; about ten are usual
_PRECISE = 1e-12  # of the gain in a score
_FLAT = 1e-11  # a slope of no account, relative to the size of the problem
_RIDGE = 1e-12  # below that, so that it moves nothing by itself


def quadratic_minimum(gradient: Floats, curvature: Floats) -> Floats:
    """Return the weights w that minimise g·w + ½ wᵀHw on the simplex, by an active set.

    It starts at the first corner and each step goes downhill, so that the result is never worse than that corner.

    Shapes: gradient (J,); curvature (J, J).
    """
    n = len(gradient)
    # On the simplex a constant added to H changes nothing, and makes it positive definite where it may be; the ridge
    # does so where it is not, so that a face has one minimum. Units do not matter.
    size = float(np.abs(gradient).max() + np.abs(curvature).max()) or 1.0
    gradient, curvature = gradient / size, curvature / size + 1.0 + _RIDGE * np.eye(n)
    weights = np.eye(n)[0]
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

    It is the maximum that the EM algorithm approaches, of Σ log Σⱼ wⱼ pᵢⱼ + prior · log w₀: the prior is worth
    that many rows of which only the first expert knows. As log w₀ ≤ 0, the likelihood is never below that of the first
    expert.

    Shapes: log_density (n, J); rows (n,).
    """
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
