"""The neighbours of the rows of a joint stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats, Integers
from ibug.distributions._discrete import DiscreteSupport


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """The neighbours of rows by their numbers, and what all training rows had: targets and residuals, never copied.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        The training rows, nearest first.
    masses : ndarray of float32, shape (n, k_targets + k_residuals)
        Probabilities of the first k_targets neighbours' targets, then of the first k_residuals neighbours' residuals
        around the prediction; those of a row sum to 1.
    targets : ndarray of shape (n_train, d)
        The targets of all training rows.
    residuals : ndarray of shape (n_train, d) or None
        Their out-of-sample residuals; None where no mass is on them.
    n_targets : int
        The number of neighbours whose targets count, k_targets.
    grids : tuple of DiscreteSupport
        For each target the values that it takes; or an empty tuple. Predictions plus residuals are moved to the
        nearest.
    """

    rows: Integers
    masses: NDArray[np.float32]
    targets: Floats
    residuals: Floats | None
    n_targets: int
    grids: tuple[DiscreteSupport, ...] = ()

    def __getitem__(self, rows: Any) -> Neighborhood:
        return replace(self, rows=self.rows[rows], masses=self.masses[rows])

    def atoms(self, loc: Floats, column: Any = slice(None)) -> Floats:
        """Return the neighbours' vectors, (n, k_targets + k_residuals, d); or one column of them.

        Parameters
        ----------
        loc : ndarray of shape (n, d)
            The predictions, around which residuals are.
        column : int or slice
            The targets that are wanted, all by default.
        """
        if not isinstance(column, slice):
            return self.atoms(loc, slice(column, column + 1))[..., 0]
        found = self.targets[self.rows[:, : self.n_targets], column]
        n_residuals = self.masses.shape[1] - self.n_targets
        if not n_residuals:
            return np.asarray(found)
        assert self.residuals is not None, "masses on residuals come with residuals"
        near = self.residuals[self.rows[:, :n_residuals], column]
        return np.concatenate([found, predicted_plus(loc[:, column], near, self.grids[column])], axis=1)

    def own(self) -> Neighborhood:
        """Return the same without the training rows that are no row's neighbours."""
        used, places = np.unique(self.rows, return_inverse=True)
        residuals = None if self.residuals is None else self.residuals[used]
        numbers = places.reshape(self.rows.shape)
        return replace(self, rows=numbers, targets=self.targets[used], residuals=residuals)


def predicted_plus(loc: Floats, residuals: Floats, grids: tuple[DiscreteSupport, ...]) -> Floats:
    """Return predictions plus neighbours' residuals, (n, k, d), moved to values that occur where a target takes few.

    Shapes: loc (n, d); residuals (n, k, d).
    """
    around = loc[:, None] + residuals
    for j, grid in enumerate(grids):
        around[..., j] = grid.nearest(around[..., j])
    return np.asarray(around)
