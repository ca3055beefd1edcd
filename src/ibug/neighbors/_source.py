"""Where neighbours come from: the contract, and what it yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats, Integers


class OwnNeighbors(NamedTuple):
    """Neighbours by the trees of one target."""

    affinities: NDArray[Any]  # (n_rows, k)
    rows: NDArray[Any]  # (n_rows, k) the training rows
    n_trees: int  # the affinity of twins

    def take(self, some: slice | NDArray[np.intp]) -> OwnNeighbors:
        """Return those of some of the rows."""
        return OwnNeighbors(self.affinities[some], self.rows[some], self.n_trees)


class Batch(NamedTuple):
    """Some rows with their predictions and their neighbours: all that a rule needs.

    Its fields are parallel arrays, nearest neighbours first. Values may have fewer columns than `rows`, one number per
    quantity, and neighbours of another index than `rows` where residuals are those of validation rows.
    """

    where: slice  # which rows these are
    mean: Floats  # (n_rows,) the model's predictions; (n_rows, n_targets) of several targets
    affinities: NDArray[Any]  # (n_rows, k) of the training rows; k = 0 where no training row was asked for
    rows: Integers  # (n_rows, k) the training rows
    values: Mapping[str, Floats]  # by quantity ("targets", "residuals"), (n_rows, k of the quantity)
    n_trees: int  # the affinity of twins
    row_context: Mapping[str, NDArray[Any]] = MappingProxyType(
        {}
    )  # what a rule needs of the rows themselves, (n_rows, …)
    weights: Mapping[str, Floats] = MappingProxyType({})  # of neighbours, shaped as values; none where all count alike
    # Of several targets: by quantity, (n_train, n_targets), the values of all training rows in place of `values`; and
    # for each target the neighbours in its own trees, where it has some.
    tables: Mapping[str, Floats] = MappingProxyType({})
    own: tuple[OwnNeighbors, ...] = ()

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.mean)

    @property
    def most_weights(self) -> Floats | None:
        """The weights of the quantity that has the most neighbours, (n_rows, k); None where all count alike."""
        return max(self.weights.values(), key=lambda each: each.shape[1], default=None)

    def of_target(self, target: int, needs: Mapping[str, int]) -> Batch:
        """Return the rows as those of one target among several, with its own neighbours."""
        near = self.own[target] if self.own else OwnNeighbors(self.affinities, self.rows, self.n_trees)
        values = {quantity: self.tables[quantity][near.rows[:, :k], target] for quantity, k in needs.items()}
        return Batch(
            self.where, self.mean[:, target], near.affinities, near.rows, values, near.n_trees, self.row_context
        )

    def take(self, some: slice | NDArray[np.intp], start: int = 0) -> Batch:
        """Return some of the rows, as those from number `start` on."""
        mean = self.mean[some]
        values, row_context, weights = (
            {name: each[some] for name, each in part.items()} for part in (self.values, self.row_context, self.weights)
        )
        return self._replace(
            where=slice(start, start + len(mean)),
            mean=mean,
            affinities=self.affinities[some],
            rows=self.rows[some],
            values=values,
            row_context=row_context,
            weights=weights,
            own=tuple(one.take(some) for one in self.own),
        )

    def divided(self, n_parts: int) -> list[Batch]:
        """Return the rows in parts of about the same size, one after the other; fewer parts where rows are few."""
        n, first = self.n_rows, self.where.start
        edges = [n * i // n_parts for i in range(n_parts + 1)]
        return [self.take(slice(*ends), first + ends[0]) for ends in pairwise(edges) if ends[1] > ends[0]]

    def shares(self, k: int) -> Floats:
        """Return the affinities of the k nearest training rows as shares of the trees, (n_rows, k)."""
        return np.asarray(self.affinities[:, :k] / float(self.n_trees))


class NeighborSource(Protocol):
    """Finds the neighbours of rows, and the values that the neighbours have."""

    @property
    def n_trees(self) -> int:
        """The number of trees that count: the affinity of a row with itself."""

    def n_neighbors(self, quantity: str) -> int:
        """Return the number of rows that can be neighbours and have the quantity."""

    def batches(
        self,
        X: Any,
        needs: Mapping[str, int],
        *,
        predict: bool = True,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> Iterator[Batch]:
        """Yield one batch of rows after another, in their order."""


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Rows that the model has not seen, with their targets: they choose and calibrate.

    Parameters
    ----------
    source
        Finds their neighbours.
    X
        The rows, in the form that the source takes.
    y : ndarray of shape (n_rows,)
        Their targets.
    n_jobs, verbose
        As in IBUGRegressor.
    weights : ndarray of shape (n_rows,) or None
        Of the rows, all above zero; None where they count alike.
    features
        The rows themselves, where X is something else; None where it is X.
    share
        The number of training rows among which neighbours are found here, over that of the model which the rule is for.
    mean : ndarray of shape (n_rows,) or (n_rows, n_targets), or None
        Their predictions, where these are known already.
    """

    source: NeighborSource
    X: Any
    y: Floats
    n_jobs: int | None = None
    verbose: bool = False
    weights: Floats | None = None
    features: Any = None
    share: float = 1.0
    mean: Floats | None = None

    def batches(self, needs: Mapping[str, int]) -> Iterator[Batch]:
        """Yield the neighbours of one batch of rows after another."""
        known = self.mean
        found = self.source.batches(self.X, needs, predict=known is None, n_jobs=self.n_jobs, verbose=self.verbose)
        return found if known is None else (batch._replace(mean=known[batch.where]) for batch in found)


def with_row_context(batches: Iterable[Batch], row_context: Mapping[str, NDArray[Any]]) -> Iterator[Batch]:
    """Yield the batches with what belongs to their rows, of arrays for all rows. Shapes: aside (n_rows, ...)."""
    for batch in batches:
        yield batch._replace(row_context={name: values[batch.where] for name, values in row_context.items()})


def weights_of(weights: Floats | None, rows: NDArray[Any], needs: Mapping[str, int]) -> Mapping[str, Floats]:
    """Return the weights of neighbours by quantity, (n_rows, k of the quantity); none where rows count alike.

    Shapes: weights (n_train,); rows (n_rows, k).
    """
    return {} if weights is None else {quantity: weights[rows[:, :n]] for quantity, n in needs.items()}
