"""What the weights of experts are found from: their distances to targets and to each other, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibug._grid import DiscreteSupport
from ibug._typing import Floats
from ibug._weights import effective_rows, mean
from ibug.exceptions import InvalidInputError
from ibug.rule.stack._load import kernel
from ibug.rule.stack._pooled import Pooled
from ibug.rule.stack._views import Experts

#: The widths of the kernels on atoms that are tried, relative to the scale of a row.
BANDWIDTHS = np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 1.0])


@dataclass(frozen=True)
class Evidence:
    """What experts look at: the model's view of rows, and the neighbours', nearest first.

    Parameters
    ----------
    mean, scale : ndarray of shape (n,)
        Predictions, and the standard deviations of the normal expert.
    targets : ndarray of shape (n, k)
        The neighbours' targets.
    shares : ndarray of shape (n, k)
        Their affinities, as shares of the trees.
    residuals : ndarray of shape (n, k) or None
        Their honest residuals; None where there are none.
    weights : ndarray of shape (n, k) or None
        What each of them counts for, above zero; None where they count alike.
    """

    mean: Floats
    scale: Floats
    targets: Floats
    shares: Floats
    residuals: Floats | None = None
    weights: Floats | None = None

    def arrays(self, experts: Experts, grid: DiscreteSupport) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return what the compiled functions take, no wider than needed.

        These are predictions, neighbours' targets, predictions plus neighbours' residuals, shares and weights.
        """
        needs, n = experts.needs, len(self.mean)
        residuals = self.residuals
        if residuals is None:
            if experts.residuals:
                raise InvalidInputError("Experts on residuals need the neighbours' residuals.")
            residuals = np.empty((n, 0))
        targets, residuals = self.targets[:, : needs["targets"]], residuals[:, : needs["residuals"]]
        k = max(targets.shape[1], residuals.shape[1])
        weights = np.empty((n, 0)) if self.weights is None else self.weights[:, :k]
        moved = grid.nearest(self.mean[:, None] + residuals) if residuals.size else residuals
        given = self.mean, targets, moved, self.shares[:, :k], weights
        parts = tuple(np.ascontiguousarray(part, np.float64) for part in given)
        if not kernel.all_finite(parts[0], *parts[1:]):
            raise InvalidInputError("A stack needs finite predictions, targets, residuals, affinities and weights.")
        return parts[0], parts[1], parts[2], parts[3], parts[4]


@dataclass(frozen=True)
class ExpertStatistics:
    """The statistics of validation rows, which are joined in the order of the rows.

    Parameters
    ----------
    to_target : ndarray of shape (n, J)
        E|Xⱼ − y| of each expert.
    to_each_other : ndarray of shape (n, J(J + 1)/2)
        E|Xⱼ − Xₖ| for k ≤ j, row after row of the lower triangle.
    log_density : ndarray of shape (n, n_bandwidths, J)
        The log densities of the smoothed experts at y.
    weights : ndarray of shape (n,) or None
        Of the rows; None where they count alike.
    """

    to_target: Floats
    to_each_other: Floats
    log_density: Floats
    weights: Floats | None = None

    @property
    def n_rows(self) -> float:
        """The number of rows, as far as they count."""
        return effective_rows(self.weights, len(self))

    def __len__(self) -> int:
        return len(self.to_target)

    @classmethod
    def of(cls, experts: Experts, pooled: Pooled, evidence: Evidence, y: Floats) -> ExpertStatistics:
        """Compute the statistics of rows. Shapes: y (n,)."""
        n, j = len(evidence.mean), len(experts)
        y, scale = (np.ascontiguousarray(part, np.float64) for part in (y, evidence.scale))
        if not (np.isfinite(y).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InvalidInputError("A stack needs finite targets and finite scales above zero.")
        errors = pooled.errors if experts.errors else np.empty(0)
        if experts.errors and len(errors) == 0:
            raise InvalidInputError("An expert on errors needs pooled errors.")
        out = np.empty((n, j)), np.empty((n, j * (j + 1) // 2)), np.empty((n, len(BANDWIDTHS), j))
        kernel.compare(
            *evidence.arrays(experts, pooled.grid),
            *experts.on_targets,
            *experts.on_residuals,
            scale,
            y,
            errors,
            BANDWIDTHS,
            pooled.error_bandwidth,
            pooled.least_bandwidth,
            np.array(pooled.support),
            0,
            n,
            *out,
        )
        return cls(*out)

    @classmethod
    def concatenate(cls, parts: Sequence[ExpertStatistics]) -> ExpertStatistics:
        """Join the statistics of partitions, in the order of their rows."""
        names = ("to_target", "to_each_other", "log_density")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def means(self) -> tuple[Floats, Floats]:
        """Return the mean distances to targets, (J,), and to each other, (J, J)."""
        j = self.to_target.shape[1]
        pairs = np.zeros((j, j))
        rows, columns = np.tril_indices(j)
        pairs[rows, columns] = pairs[columns, rows] = self._mean(self.to_each_other)
        return self._mean(self.to_target), pairs

    def _mean(self, values: Floats) -> Floats:
        if self.weights is None:
            return np.asarray(values.sum(axis=0) / len(self))
        return np.asarray(mean(values, self.weights))
