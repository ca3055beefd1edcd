"""Neighbours of training rows, found by models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.neighbors._source import Batch, OwnNeighbors, weights_of

_VALUES_PER_BATCH = 2**21


@dataclass(frozen=True, eq=False)
class CrossFittedSource:
    """Training rows, each predicted by a clone that was not trained on it, with that clone's neighbours.

    `batches` takes positions among these rows in place of X.

    Parameters
    ----------
    mean : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Out-of-fold predictions.
    affinities, neighbors : ndarray of shape (n_rows, k)
        Neighbours among the rows that the clone of the row's fold was trained on, as numbers of training rows, and
        their affinities as shares of that clone's trees.
    targets, residuals : ndarray of shape (n_train,), or (n_train, n_targets) of several targets
        Of all training rows.
    weights : ndarray of shape (n_train,) or None
        What they count for as neighbours; None where they count alike.
    own : tuple of OwnNeighbors
        Of several targets that have trees of their own: neighbours by these, as shares; else empty.
    """

    mean: Floats
    affinities: NDArray[np.float32]
    neighbors: NDArray[np.int32]
    targets: Floats
    residuals: Floats
    weights: Floats | None = None
    own: tuple[OwnNeighbors, ...] = ()

    @property
    def n_trees(self) -> int:
        """The affinity of twins: affinities are shares."""
        return 1

    def n_neighbors(self, quantity: str) -> int:
        """Return the number of neighbours that were found for each row."""
        return int(self.neighbors.shape[1])

    def batches(
        self,
        X: NDArray[np.intp],
        needs: Mapping[str, int],
        *,
        predict: bool = True,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> Iterator[Batch]:
        """Yield one batch of rows after another. Shapes: X (n_rows,)."""
        known = {"targets": self.targets, "residuals": self.residuals}
        k = max(needs.values())
        size = max(1, _VALUES_PER_BATCH // k)
        for start in range(0, len(X), size):
            chosen = X[start : start + size]
            rows = self.neighbors[chosen, :k]
            if self.targets.ndim > 1:
                where, near = slice(start, start + len(chosen)), self.affinities[chosen, :k]
                tables = {quantity: known[quantity] for quantity in needs}
                own = tuple(
                    OwnNeighbors(one.affinities[chosen, :k], one.rows[chosen, :k].astype(np.int64), 1)
                    for one in self.own
                )
                yield Batch(where, self.mean[chosen], near, rows.astype(np.int64), {}, 1, tables=tables, own=own)
                continue
            values = {quantity: known[quantity][rows[:, :n]] for quantity, n in needs.items()}
            weights = weights_of(self.weights, rows, needs)
            where, near = slice(start, start + len(chosen)), self.affinities[chosen, :k]
            yield Batch(where, self.mean[chosen], near, rows.astype(np.int64), values, 1, weights=weights)
