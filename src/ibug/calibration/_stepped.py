"""Recalibrated distributions whose distribution function has jumps: integrals piece by piece between the jumps."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from ibug._typing import Floats
from ibug.calibration._score_map import ScoreMap
from ibug.distributions import Distribution

_TAIL = 9.0  # how far out a standard normal value can be
_NODES, _WEIGHTS = leggauss(3)  # between two jumps the distribution function is smooth and rises little
_ROWS_AT_A_TIME = 256  # about 15 MB


def stepped_crps(g: ScoreMap, distribution: Distribution, y: Floats) -> Floats:
    """Return the CRPS ∫ (F(x) − 1[x ≥ y])² dx of F = Φ(g⁻¹(Φ⁻¹(F₀))), where F₀ has jumps.

    Parameters
    ----------
    g
        The map of the normal scores.
    distribution
        The distributions F₀ before calibration, n rows or one.
    y : ndarray of shape (), (n,), (n, m) or (1, m)
        The values.
    """
    if not distribution.shape:
        every = np.broadcast_to(np.reshape(y, (1, -1)), (1, np.size(y)))
        return _of_rows(g, distribution, every).reshape(np.shape(y))
    n = len(distribution)
    columns = np.broadcast_to(y if y.ndim == 2 else np.reshape(y, (-1, 1)), (n, y.shape[1] if y.ndim == 2 else 1))
    out = np.empty(columns.shape)
    for start in range(0, n, _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        out[rows] = _of_rows(g, distribution[rows], columns[rows])
    return out if y.ndim == 2 else out[:, 0]


def _of_rows(g: ScoreMap, distribution: Distribution, y: Floats) -> Floats:
    """Return the scores of a few rows, (n, m), for as many values each."""
    steps = np.unique(np.concatenate([np.linspace(-_TAIL, _TAIL, 19), g.v[np.abs(g.v) < _TAIL]]))
    knots = np.reshape(distribution.from_normal_score(g.forward(steps)[None, :]), (len(y), -1))
    places = np.concatenate([np.reshape(distribution.jumps(), (len(y), -1)), knots], axis=1)
    out = np.empty(y.shape)
    for column, value in enumerate(y.T):
        edges = np.sort(np.concatenate([places, value[:, None]], axis=1), axis=1)
        half, middle = np.diff(edges, axis=1) / 2, (edges[:, 1:] + edges[:, :-1]) / 2
        x = (middle[:, :, None] + half[:, :, None] * _NODES).reshape(len(y), -1)
        score = distribution.normal_score(x if distribution.shape else x[0])
        above = np.where(x < value[:, None], 0.0, 1.0)
        squares = np.square(ndtr(g.inverse(np.reshape(score, x.shape))) - above)
        out[:, column] = np.sum((squares.reshape(*half.shape, -1) @ _WEIGHTS) * half, axis=1)
    return out
