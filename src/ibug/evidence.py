"""What is known of each row's neighbours: their targets and residuals, in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibug.affinity import AffinitySearch
from ibug.neighbors import LeafIndex

Floats = NDArray[np.float64]
Found = tuple[NDArray[np.int32], NDArray[np.int64]]  # affinities and row numbers, (n_rows, k) each

_VALUES_PER_BATCH = 2**21


class Batch(NamedTuple):
    """The neighbours of some rows."""

    where: slice  # which rows these are
    affinities: NDArray[Any]  # (n_rows, k) of the training rows; k = 0 where none was asked for
    neighbors: dict[str, Floats]  # by quantity, nearest first, (n_rows, k)


@dataclass(frozen=True)
class Evidence:
    """The rows that can be neighbours, and what is known of them.

    Parameters
    ----------
    search
        Finds training rows.
    targets : ndarray of shape (n_train,)
        Their targets.
    residuals : ndarray of shape (n_train,) or (n_residual_rows,), or None
        Honest residuals: of the training rows, or of the rows of `residual_index`.
    residual_index
        Other rows, which the model was not trained on, if it is these that have residuals.
    """

    search: AffinitySearch
    targets: Floats
    residuals: Floats | None = None
    residual_index: LeafIndex | None = None

    def n_rows(self, quantity: str) -> int:
        """Return how many rows can be neighbours of which the quantity is known."""
        if quantity == "residuals" and self.residual_index is not None:
            return self.residual_index.n_rows
        return self.search.index.n_rows

    def batches(
        self,
        X: Any,
        needs: Mapping[str, int],
        *,
        n_jobs: int | None,
        verbose: bool = False,
        leave_out_self: bool = False,
        predictions: Floats | None = None,
        found: Found | None = None,
    ) -> Iterator[Batch]:
        """Yield one batch of rows after another.

        Parameters
        ----------
        X
            The rows to predict.
        needs
            How many neighbours, by quantity.
        n_jobs, verbose
            As in IBUGRegressor.
        leave_out_self
            The rows X are those of `residual_index`: none shall be its own neighbour there.
        predictions : ndarray of shape (n_rows,), optional
            Filled with the model's predictions meanwhile, those of a batch before it is yielded.
        found : pair of ndarray of shape (n_rows, k), optional
            Filled likewise with affinities and row numbers of the k nearest training rows.
        """
        own = {name: k for name, k in needs.items() if name != "residuals" or self.residual_index is None}
        others = {name: k for name, k in needs.items() if name not in own}
        k_found = 0 if found is None else found[0].shape[1]
        k_own, k_others = max(k_found, *own.values()) if own else k_found, max(others.values(), default=0)
        chunks = self.search.leaf_chunks(
            X,
            k_own + k_others,
            n_jobs=n_jobs,
            predictions=predictions,
            title="finding neighbours",
            verbose=verbose,
        )
        for where, leaves in chunks:
            neighbors: dict[str, Floats] = {}
            affinities = np.empty((len(leaves), 0), np.int32)
            if k_own:
                affinities, rows = self.search.query(leaves, k_own, n_jobs=n_jobs)
                if found is not None:
                    found[0][where], found[1][where] = affinities[:, :k_found], rows[:, :k_found]
                neighbors |= {name: self._values(name)[rows[:, :k]] for name, k in own.items()}
            if others and self.residual_index is not None:
                rows = _query_others(self.residual_index, leaves, k_others, where, leave_out_self, n_jobs)
                neighbors |= {name: self._values(name)[rows[:, :k]] for name, k in others.items()}
            yield Batch(where, affinities, neighbors)

    def _values(self, quantity: str) -> Floats:
        values = self.targets if quantity == "targets" else self.residuals
        assert values is not None, "what is asked for is known"
        return values


def _query_others(
    index: LeafIndex,
    leaves: NDArray[np.int32],
    k: int,
    where: slice,
    leave_out_self: bool,
    n_jobs: int | None,
) -> NDArray[np.int64]:
    """Return the k nearest rows of the index, (n_rows, k); without the row itself if asked for."""
    if not leave_out_self:
        return index.query(leaves, k, n_jobs=n_jobs)[1]
    _, rows = index.query(leaves, k + 1, n_jobs=n_jobs)
    others: NDArray[np.int64] = rows[not_self(rows, where.start)].reshape(len(rows), k)
    return others


def not_self(rows: NDArray[np.int64], first: int) -> NDArray[np.bool_]:
    """Return which k of each row's k + 1 nearest, (n_rows, k + 1), are others; the rows are numbered from `first`."""
    self_: NDArray[np.bool_] = rows == np.arange(first, first + len(rows))[:, None]
    # With more than k twins of lower number a row is not among its own nearest: then the last one is left out.
    self_[~self_.any(axis=1), -1] = True
    return ~self_


@dataclass(frozen=True)
class HeldOutRows:
    """Rows to tune on that the model was not trained on."""

    evidence: Evidence
    X: Any
    y: Floats
    n_jobs: int | None = None
    verbose: bool = False
    leave_out_self: bool = False

    @property
    def mean(self) -> Floats:
        """The model's predictions, (n_rows,)."""
        return np.asarray(self.evidence.search.reader.predict(self.X), np.float64)

    @property
    def n_trees(self) -> int:
        """The affinity of twins."""
        return self.evidence.search.index.n_trees

    def n_rows(self, quantity: str) -> int:
        """Return how many rows can be neighbours."""
        return self.evidence.n_rows(quantity) - (self.leave_out_self and quantity == "residuals")

    def batches(self, needs: Mapping[str, int]) -> Iterator[Batch]:
        """Yield the neighbours of one batch of rows after another."""
        return self.evidence.batches(
            self.X, needs, n_jobs=self.n_jobs, verbose=self.verbose, leave_out_self=self.leave_out_self
        )


@dataclass(frozen=True)
class CrossFittedRows:
    """Training rows to tune on: each is predicted by a model that was not trained on it, with that model's neighbours.

    Parameters
    ----------
    mean, y : ndarray of shape (n_rows,)
        Out-of-fold predictions and targets.
    affinities, neighbors : ndarray of shape (n_rows, k)
        Neighbours among the rows that the model of the row's fold was trained on, as numbers of training rows, and
        their affinities as shares of that model's trees.
    targets, residuals : ndarray of shape (n_train,)
        Of all training rows.
    """

    mean: Floats
    y: Floats
    affinities: NDArray[np.float32]
    neighbors: NDArray[np.int32]
    targets: Floats
    residuals: Floats

    @property
    def n_trees(self) -> int:
        """The affinity of twins."""
        return 1

    def n_rows(self, quantity: str) -> int:
        """Return how many rows can be neighbours."""
        return int(self.neighbors.shape[1])

    def batches(self, needs: Mapping[str, int]) -> Iterator[Batch]:
        """Yield the neighbours of one batch of rows after another."""
        known = {"targets": self.targets, "residuals": self.residuals}
        size = max(1, _VALUES_PER_BATCH // max(needs.values()))
        for start in range(0, len(self.y), size):
            where = slice(start, min(start + size, len(self.y)))
            neighbors = {name: known[name][self.neighbors[where, :k]] for name, k in needs.items()}
            yield Batch(where, self.affinities[where, : max(needs.values())], neighbors)

    def take(self, rows: NDArray[np.intp]) -> CrossFittedRows:
        """Return some of the rows."""
        return CrossFittedRows(
            self.mean[rows], self.y[rows], self.affinities[rows], self.neighbors[rows], self.targets, self.residuals
        )


ValidationRows = HeldOutRows | CrossFittedRows
