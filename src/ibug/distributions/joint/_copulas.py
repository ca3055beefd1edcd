"""Gaussian copulas that differ from row to row."""

from __future__ import annotations

import numpy as np

from ibug._typing import Floats
from ibug.distributions.joint._blend import N_POINTS, matrix_roots, white_points


def local_copulas(copula: Floats, residuals: Floats, pseudo_rows: float) -> Floats:
    """Return the correlations of each row's copula, (n, d, d): those of its neighbours' residuals, drawn to all rows'.

    Shapes: copula (d, d); residuals (n, k, d).
    """
    size = np.sqrt(np.square(residuals).mean(axis=1, keepdims=True))
    scaled = residuals / np.where(size > 0, size, 1.0)
    own = scaled.transpose(0, 2, 1) @ scaled
    k, d = residuals.shape[1:]
    found = (pseudo_rows * copula + own) / (pseudo_rows + k)
    found[:, np.arange(d), np.arange(d)] = 1.0
    return np.asarray(found)


def points_of_copulas(copulas: Floats) -> Floats:
    """Return points that stand for each row's copula, (n, n_points, d): in each column the same probabilities.

    Shapes: copulas (n, d, d).
    """
    points = white_points(copulas.shape[1]) @ matrix_roots(copulas).transpose(0, 2, 1)
    ranks = np.argsort(np.argsort(points, axis=1), axis=1)
    return np.asarray((ranks + 0.5) / N_POINTS)


def log_densities(copulas: Floats, scores: Floats) -> Floats:
    """Return the log densities of Gaussian copulas, (n,). Shapes: copulas (n, d, d); scores (n, d)."""
    root = np.linalg.cholesky(copulas)
    white = np.linalg.solve(root, scores[:, :, None])[:, :, 0]
    volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(0.5 * (np.square(scores) - np.square(white)).sum(axis=1) - volume)
