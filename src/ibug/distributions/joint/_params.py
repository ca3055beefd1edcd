"""What all rows of a joint stack have in common, and Gaussian copulas that differ from row to row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug.distributions._stack import MixtureParams
from ibug.exceptions import InvalidInputError

#: The number of points that stand for a normal distribution where distances to it are averaged.
N_POINTS = 128


@dataclass(frozen=True, eq=False)
class JointMixtureParams:
    """What all rows of a joint stack have in common.

    Parameters
    ----------
    weights : ndarray of shape (4,)
        The shares of the targets' own distributions, coupled by a copula, of the normal part, the error vectors and the
        neighbours' vectors; they sum to 1.
    own : tuple of MixtureParams
        For each of d targets what the rows of its own distribution have in common.
    errors : ndarray of shape (n_errors, d)
        Standardised error vectors of validation rows; each column has the errors of the target's own mixture.
    correlation, copula : ndarray of shape (d, d)
        The correlations of the normal part, and of the normal scores of the targets' own distributions.
    unit : ndarray of shape (d,)
        What distances are measured in: the standard deviations of the training targets.
    """

    weights: Floats
    own: tuple[MixtureParams, ...]
    errors: Floats
    correlation: Floats
    copula: Floats
    unit: Floats

    def __post_init__(self) -> None:
        d = len(self.own)
        shapes = self.errors.shape[1:], self.correlation.shape, self.copula.shape, self.unit.shape
        if d < 2 or shapes != ((d,), (d, d), (d, d), (d,)):
            raise InvalidInputError(
                f"A joint stack of {d} targets needs at least two, error vectors of shape (n, {d}), correlations of "
                f"shape ({d}, {d}) and {d} units; got {', '.join(map(str, shapes))}."
            )
        weights = np.array(self.weights, np.float64)
        if weights.shape != (4,) or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
            raise InvalidInputError(f"A joint stack needs four weights of at least zero; got {self.weights!r}.")
        object.__setattr__(self, "weights", weights / weights.sum())
        if not (np.isfinite(self.unit).all() and (self.unit > 0).all()):
            raise InvalidInputError("The units of a joint stack must be finite and above zero.")
        for matrix in (self.correlation, self.copula):
            symmetric = np.allclose(matrix, matrix.T) and np.allclose(np.diag(matrix), 1)
            if not symmetric or np.linalg.eigvalsh(matrix)[0] < -1e-8:
                raise InvalidInputError("The correlations of a joint stack are no correlation matrix.")
        columns = np.sort(self.errors, axis=0).T
        if any(not np.array_equal(one.errors, column) for one, column in zip(self.own, columns, strict=True)):
            raise InvalidInputError("The error vectors of a joint stack and the errors of its targets do not agree.")

    @read_only_property
    def kernel_factors(self) -> dict[tuple[int, tuple[int, ...]], float]:
        """What `kernel_factor` has found, by the wanted target and the given ones."""
        return {}

    @read_only_property
    def marginals(self) -> tuple[MixtureParams, ...]:
        """What the rows of each target have in common, all parts together."""
        apart, together = self.weights[0], self.weights[1:]
        return tuple(replace(one, weights=together + apart * one.weights) for one in self.own)

    @read_only_property
    def bounds(self) -> tuple[Floats, Floats] | None:
        """The lower and the upper bounds of the targets, (d,) each; None where there is none."""
        lower, upper = np.array([one.support for one in self.own]).T
        return (lower, upper) if np.isfinite([lower, upper]).any() else None

    def inside(self, points: Floats) -> Floats:
        """Return points of the targets, (…, d), of which what is outside a bound is moved to it."""
        return points if self.bounds is None else np.clip(points, *self.bounds)

    @read_only_property
    def roots(self) -> tuple[Floats, Floats]:
        """Matrices A with AAᵀ = correlation and copula, also where targets depend on each other exactly, (d, d)."""
        return matrix_roots(self.correlation), matrix_roots(self.copula)

    @read_only_property
    def normal_points(self) -> Floats:
        """Points that stand for the normal part with mean 0 and standard deviations 1, (n_points, d)."""
        return normal_points(self.correlation)

    @read_only_property
    def copula_points(self) -> Floats:
        """Points that stand for the copula, (n_points, d): in each column the probabilities (i + ½)/n_points."""
        return copula_points(self.copula)

    def equals(self, other: JointMixtureParams) -> bool:
        """Return whether both have the same values."""
        names = ("weights", "errors", "correlation", "copula", "unit")
        return len(self.own) == len(other.own) and (
            all(one.equals(same) for one, same in zip(self.own, other.own, strict=True))
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
        )


def copula_points(correlation: Floats) -> Floats:
    """Return points of Gaussian copulas, (…, n_points, d), whose columns have the probabilities (i + ½)/n_points.

    Shapes: correlation (…, d, d).
    """
    ranks = np.argsort(np.argsort(normal_points(correlation), axis=-2), axis=-2)
    return np.asarray((ranks + 0.5) / N_POINTS)


def normal_points(correlation: Floats) -> Floats:
    """Return points with mean 0 and exactly these correlations, spread like a normal distribution, (…, n_points, d).

    They are 64 points of a low-discrepancy sequence (multiples of powers of the generalised golden ratio) and their
    reflections, so that all odd moments are right as well.

    Shapes: correlation (…, d, d).
    """
    return np.asarray(white_points(correlation.shape[-1]) @ np.swapaxes(matrix_roots(correlation), -1, -2))


def matrix_roots(correlation: Floats) -> Floats:
    """Return A with AAᵀ = correlation, (…, d, d), also where targets depend on each other exactly."""
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


@lru_cache(maxsize=32)
def white_points(d: int) -> Floats:
    """Return points of mean 0, deviations 1 and no correlation, spread like a normal distribution, (n_points, d)."""
    ratio = 2.0
    for _ in range(64):  # the root of xᵈ⁺¹ = x + 1
        ratio = (1 + ratio) ** (1 / (d + 1))
    steps = ratio ** -np.arange(1.0, d + 1)
    half = ndtri((0.5 + np.outer(np.arange(1, N_POINTS // 2 + 1), steps)) % 1)
    z = np.concatenate([half, -half])
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    return np.asarray(z @ (vectors / np.sqrt(values)) @ vectors.T)


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


def log_densities(copulas: Floats, scores: Floats) -> Floats:
    """Return the log densities of Gaussian copulas, (n,). Shapes: copulas (n, d, d); scores (n, d)."""
    root = np.linalg.cholesky(copulas)
    white = np.linalg.solve(root, scores[:, :, None])[:, :, 0]
    volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(0.5 * (np.square(scores) - np.square(white)).sum(axis=1) - volume)
