"""Recalibrated distributions whose distribution function has jumps: integrals piece by piece between the jumps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from ibug._typing import Floats
from ibug.calibration._score_map import ScoreMap
from ibug.distributions import Distribution

_TAIL = 9.0  # how far out a standard normal value can be
# Distributions that are interpolated between points have kinks: narrow panels where the mass is keep the errors small.
_PANELS = np.concatenate([np.arange(-_TAIL, -4, 1.0), np.linspace(-4, 4, 65), np.arange(5, _TAIL + 1, 1.0)])
_NODES, _WEIGHTS = leggauss(3)  # between two jumps the distribution function is smooth and rises little
_ROWS_AT_A_TIME = 256  # about 15 MB


def stepped_crps(g: ScoreMap, distribution: Distribution, y: Floats) -> Floats:
    """Return the CRPS ∫ (F(x) − 1[x ≥ y])² dx of F = Φ(g⁻¹(Φ⁻¹(F₀))), where F₀ has jumps. Shapes: y ()."""
    return _integral(g, distribution, y, lambda x, value, below, above: np.where(x < value, below, above) ** 2)


def stepped_moment(power: int, g: ScoreMap, distribution: Distribution, middle: Floats) -> Floats:
    """Return E[(Y − middle)^power] for a power of 1 or 2, (n,): both tails, each on its side of the middle.

    Shapes: middle (n,).
    """

    def tails(x: Floats, value: Floats, below: Floats, above: Floats) -> Floats:
        if power == 1:
            return np.where(x < value, -below, above)
        return 2 * np.abs(x - value) * np.where(x < value, below, above)

    return _integral(g, distribution, middle, tails)


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
        x = (middle[:, :, None] + half[:, :, None] * _NODES).reshape(len(y), -1)
        score = g.inverse(np.reshape(distribution.normal_score(x if distribution.shape else x[0]), x.shape))
        height = integrand(x, value[:, None], np.asarray(ndtr(score)), np.asarray(ndtr(-score)))
        out[:, column] = np.sum((height.reshape(*half.shape, -1) @ _WEIGHTS) * half, axis=1)
    return out
