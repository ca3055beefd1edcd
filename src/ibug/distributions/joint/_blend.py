"""What all rows of a joint stack have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtri

from ibug._typing import Floats
from ibug.distributions._blend import Blend
from ibug.exceptions import InvalidInputError

#: The number of points that stand for a normal distribution where distances to it are averaged.
N_POINTS = 128


@dataclass(frozen=True, eq=False)
class JointBlend:
    """What all rows of a joint stack have in common.

    Parameters
    ----------
    marginals : tuple of Blend
        For each of d targets what its own stack has in common: the same three weights everywhere, and the column of its
        standardised errors, ascending.
    errors : ndarray of shape (n_errors, d)
        Standardised error vectors of validation rows; each column has the errors of the target's blend.
    correlation : ndarray of shape (d, d)
        The correlations of the normal part.
    unit : ndarray of shape (d,)
        What distances are measured in: the standard deviations of the training targets.
    """

    marginals: tuple[Blend, ...]
    errors: Floats
    correlation: Floats
    unit: Floats

    def __post_init__(self) -> None:
        d = len(self.marginals)
        fits = self.errors.ndim == 2 and self.errors.shape[1] == d and self.correlation.shape == (d, d)
        if d < 2 or not fits or self.unit.shape != (d,):
            raise InvalidInputError(
                f"A joint stack of {d} targets needs at least two, error vectors of shape (n, {d}), correlations of "
                f"shape ({d}, {d}) and {d} units; got {self.errors.shape}, {self.correlation.shape} and "
                f"{self.unit.shape}."
            )
        if not (np.isfinite(self.unit).all() and (self.unit > 0).all()):
            raise InvalidInputError("The units of a joint stack must be finite and above zero.")
        symmetric = np.allclose(self.correlation, self.correlation.T) and np.allclose(np.diag(self.correlation), 1)
        if not symmetric or np.linalg.eigvalsh(self.correlation)[0] < -1e-8:
            raise InvalidInputError("The correlations of a joint stack are no correlation matrix.")
        if any(not np.array_equal(one.weights, self.weights) for one in self.marginals):
            raise InvalidInputError("All targets of a joint stack have the same weights.")
        columns = np.sort(self.errors, axis=0).T
        if any(not np.array_equal(one.errors, column) for one, column in zip(self.marginals, columns, strict=True)):
            raise InvalidInputError("The error vectors of a joint stack and the errors of its targets do not agree.")

    @property
    def weights(self) -> Floats:
        """The shares of the normal part, the error vectors and the neighbours, (3,)."""
        return self.marginals[0].weights

    @cached_property
    def root(self) -> Floats:
        """A matrix A with AAᵀ = correlation, also where targets depend on each other exactly, (d, d)."""
        values, vectors = np.linalg.eigh(self.correlation)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def normal_points(self) -> Floats:
        """Points that stand for the normal part with mean 0 and standard deviations 1, (n_points, d)."""
        return normal_points(self.correlation)

    def equals(self, other: JointBlend) -> bool:
        """Tell whether both say the same."""
        names = ("errors", "correlation", "unit")
        return len(self.marginals) == len(other.marginals) and (
            all(one.equals(same) for one, same in zip(self.marginals, other.marginals, strict=True))
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)
        )


def normal_points(correlation: Floats) -> Floats:
    """Return points with mean 0 and exactly these correlations, spread like a normal distribution, (n_points, d).

    They are 64 points of a low-discrepancy sequence (multiples of powers of the generalised golden ratio) and their
    reflections, so that all odd moments are right as well.

    Parameters
    ----------
    correlation : ndarray of shape (d, d)
        The correlations.
    """
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(_white_points(len(correlation)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)


@lru_cache(maxsize=32)
def _white_points(d: int) -> Floats:
    ratio = 2.0
    for _ in range(64):  # the root of xᵈ⁺¹ = x + 1
        ratio = (1 + ratio) ** (1 / (d + 1))
    steps = ratio ** -np.arange(1.0, d + 1)
    half = ndtri((0.5 + np.outer(np.arange(1, N_POINTS // 2 + 1), steps)) % 1)
    z = np.concatenate([half, -half])
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    return np.asarray(z @ (vectors / np.sqrt(values)) @ vectors.T)
