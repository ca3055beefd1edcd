"""A linear model of log σ, fitted to a score of the normal distribution with a penalty on all but the intercept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr

from ibug._typing import Floats
from ibug._weights import effective_rows, mean, quantile

#: What the penalty is worth, in validation rows: PENALTY/n · Σ bⱼ², in units of the score.
PENALTY = 20.0

# Where all errors are zero no scale is small enough; the search ends so far from their usual size, or the spread's.
_LARGEST_LOG = 30.0


def fit_log_scale(
    start: Floats, features: Floats, error: Floats, loss: str, weights: Floats | None = None
) -> tuple[float, Floats]:
    """Return the intercept and the coefficients of log σ = start + intercept + features · coefficients.

    Shapes: start (n_rows,); features (n_rows, n_features); error (n_rows,); weights (n_rows,).
    """
    rows = _LOSSES[loss]
    # In the unit of the errors themselves, so that the result does not depend on the target's unit.
    unit = float(np.sqrt(mean(np.square(error), weights))) or float(np.exp(np.median(start)))
    shift = float(quantile(np.log(unit) - start, 0.5, weights))
    base, z = start + shift - np.log(unit), error / unit
    design = np.column_stack([np.ones(len(z)), features])
    scale, n = 1.0, effective_rows(weights, len(error))
    share = 1 / len(error) if weights is None else weights / weights.sum()

    def penalised(b: Floats, columns: Floats) -> tuple[float, Floats]:
        value, slope = rows(z, base + columns @ b)
        penalty = PENALTY / n * b * (np.arange(len(b)) > 0)
        gradient = columns.T @ (slope * share) / scale + 2 * penalty
        return float(mean(value, weights) / scale + np.sum(penalty * b)), gradient

    alone = _descend(lambda b: penalised(b, design[:, :1]), np.zeros(1))
    if loss == "crps":  # the penalty is in units of the score that the start alone has
        scale = float(mean(rows(z, base + alone[0])[0], weights)) or 1.0
    b = _descend(lambda b: penalised(b, design), np.append(alone, np.zeros(features.shape[1])))
    return float(b[0] + shift), b[1:]


def _descend(function: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    bounds = [(-_LARGEST_LOG, _LARGEST_LOG)] * len(start)
    options = {"maxiter": 500}
    return np.asarray(minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


def _nll(error: Floats, log_scale: Floats) -> tuple[Floats, Floats]:
    """Return the negative log likelihood of each row but for a constant, and its slope in log σ."""
    square = np.square(error * np.exp(-log_scale))
    return log_scale + 0.5 * square, 1 - square


def _crps(error: Floats, log_scale: Floats) -> tuple[Floats, Floats]:
    """Return the CRPS of each row, and its slope in log σ."""
    scale = np.exp(log_scale)
    z = error / scale
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
    slope = scale * (2 * density - 1 / np.sqrt(np.pi))
    return error * (2 * ndtr(z) - 1) + slope, slope


_LOSSES = {"crps": _crps, "nll": _nll}
