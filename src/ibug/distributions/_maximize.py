"""Maximum likelihood for many rows at once: Levenberg–Marquardt steps on all rows that have not converged yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: (rows, theta) -> log likelihood (m,), gradient (m, p) and Hessian (m, p, p), for the m rows whose numbers are given.
Objective = Callable[[NDArray[np.intp], Floats], tuple[Floats, Floats, Floats]]

_MOST_STEPS = 100
_TOLERANCE = 1e-10  # of the mean log likelihood per value
_MOST_DAMPING = 1e10
_LONGEST_STEP = 2.0  # in units of the values' own spread, in logarithms, and in shapes
_GOLDEN = (np.sqrt(5) - 1) / 2


def maximize(objective: Objective, start: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the parameters of highest likelihood for each row.

    Parameters
    ----------
    objective
        The mean log likelihood of a row's values, with its first and second derivatives.
    start : ndarray of shape (n, p)
        Where to begin.
    lower, upper : ndarray of shape (p,)
        Bounds of the parameters.

    Returns
    -------
    ndarray of shape (n, p)
        Never less likely than `start`.
    """
    theta = np.clip(start, lower, upper)
    rows = np.arange(len(theta))
    damping = np.full(len(theta), 1e-3)
    value, gradient, hessian = objective(rows, theta)
    for _ in range(_MOST_STEPS):
        if not rows.size:
            break
        # Where the Hessian is not negative definite, damping by its own diagonal turns the step towards the gradient.
        curvature = np.abs(np.einsum("nii->ni", hessian)) + 1e-12
        matrix = -hessian + (damping[:, None] * curvature)[:, :, None] * np.eye(theta.shape[1])
        step = np.clip(np.linalg.solve(matrix, gradient[:, :, None])[:, :, 0], -_LONGEST_STEP, _LONGEST_STEP)
        proposed = np.clip(theta[rows] + step, lower, upper)
        new_value, new_gradient, new_hessian = objective(rows, proposed)
        better = new_value > value
        gain = np.where(better, new_value - value, 0.0)
        theta[rows[better]] = proposed[better]
        damping = np.where(better, damping / 10, damping * 10)
        value = np.where(better, new_value, value)
        gradient = np.where(better[:, None], new_gradient, gradient)
        hessian = np.where(better[:, None, None], new_hessian, hessian)
        going = np.where(better, gain > _TOLERANCE, damping < _MOST_DAMPING)
        rows, damping, value = rows[going], damping[going], value[going]
        gradient, hessian = gradient[going], hessian[going]
    return theta


def maximize_scalar(function: Callable[[Floats], Floats], grid: Floats, steps: int = 40) -> Floats:
    """Return for each row the argument of the highest function value: the best of a grid, refined by golden sections.

    Parameters
    ----------
    function
        Takes one argument per row, (n,), and returns (n,).
    grid : ndarray of shape (m,)
        Ascending; the search stays within it.
    """
    values = np.stack([function(np.asarray(point)) for point in grid])
    best = np.argmax(values, axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    for _ in range(steps):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        to_left = function(left) > function(right)
        low, high = np.where(to_left, low, left), np.where(to_left, right, high)
    refined = (low + high) / 2
    return np.asarray(np.where(function(refined) >= np.max(values, axis=0), refined, grid[best]))
