"""Where neighbours come from: the contract, the batches that it yields, and what belongs to their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ibug._parallel import n_threads_of, run_parallel
from ibug._typing import Floats, Integers, LeavesOf
from ibug._validation import require


class TargetNeighbors(NamedTuple):
    """Neighbours by the trees of one target."""

    affinities: NDArray[Any]  # (n_rows, k)
    rows: NDArray[Any]  # (n_rows, k) the training rows
    n_trees: int  # the affinity of twins

    def take(self, some: slice | NDArray[np.intp]) -> TargetNeighbors:
        """Return those of some of the rows."""
        return TargetNeighbors(self.affinities[some], self.rows[some], self.n_trees)


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
    row_context: Mapping[str, NDArray[Any]] = MappingProxyType({})  # what a rule needs of the rows, (n_rows, …)
    weights: Mapping[str, Floats] = MappingProxyType(
        {}
    )  # of neighbours, shaped as values; none where all count equally
    # Of several targets: by quantity, (n_train, n_targets), the values of all training rows in place of `values`; and
    # for each target the neighbours in its own trees, where it has some.
    tables: Mapping[str, Floats] = MappingProxyType({})
    per_target: tuple[TargetNeighbors, ...] = ()

    @classmethod
    def of(
        cls,
        where: slice,
        mean: Floats,
        affinities: NDArray[Any],
        rows: Integers,
        n_trees: int,
        quantities: Mapping[str, Floats],
        needs: Mapping[str, int],
        *,
        weights: Floats | None = None,
        per_target: tuple[TargetNeighbors, ...] = (),
    ) -> Batch:
        """Return rows with the values that their neighbours have, of quantities and weights of all training rows."""
        if mean.ndim > 1:  # a rule takes from the tables what it needs
            tables = {quantity: quantities[quantity] for quantity in needs}
            return cls(where, mean, affinities, rows, {}, n_trees, tables=tables, per_target=per_target)
        values = {quantity: quantities[quantity].take(rows[:, :k]) for quantity, k in needs.items()}
        counts = {} if weights is None else {quantity: weights.take(rows[:, :k]) for quantity, k in needs.items()}
        return cls(where, mean, affinities, rows, values, n_trees, weights=counts)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.mean)

    @property
    def most_weights(self) -> Floats | None:
        """The weights of the quantity that has the most neighbours, (n_rows, k); None where all count equally."""
        return max(self.weights.values(), key=lambda each: each.shape[1], default=None)

    @property
    def n_targets(self) -> int:
        """The number of targets."""
        return 1 if self.mean.ndim == 1 else self.mean.shape[1]

    def of_target(self, target: int, needs: Mapping[str, int]) -> Batch:
        """Return the rows as those of one target, with its own neighbours and their values."""
        if self.n_targets == 1:
            return self
        near = self.per_target[target] if self.per_target else TargetNeighbors(self.affinities, self.rows, self.n_trees)
        values = {quantity: self.tables[quantity][near.rows[:, :k], target] for quantity, k in needs.items()}
        return Batch(
            self.where, self.mean[:, target], near.affinities, near.rows, values, near.n_trees, self.row_context
        )

    def vectors(self, quantity: str, k: int) -> Floats:
        """Return the k nearest neighbours' values of several targets, (n_rows, k, n_targets)."""
        return self.tables[quantity][self.rows[:, :k]]

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
            per_target=tuple(one.take(some) for one in self.per_target),
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

    @property
    def leaves_of(self) -> LeavesOf | None:
        """A function that reads the leaves of rows; None where neighbours are not those of one model."""

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
    """Rows that the model has not seen, with their targets: they choose and calibrate."""

    source: NeighborSource  # finds their neighbours
    X: Any  # the rows, in the form that the source takes
    y: Floats  # (n_rows,), or (n_rows, n_targets)
    n_jobs: int | None = None
    verbose: bool = False
    weights: Floats | None = None  # (n_rows,) all above zero; None where they count equally
    features: Any = None  # the rows themselves, where X is something else
    share: float = 1.0  # the number of training rows among which neighbours are found, over that of the final model
    mean: Floats | None = None  # of the shape of y, their predictions where these are known already

    def batches(self, needs: Mapping[str, int]) -> Iterator[Batch]:
        """Yield the neighbours of one batch of rows after another."""
        known = self.mean
        found = self.source.batches(self.X, needs, predict=known is None, n_jobs=self.n_jobs, verbose=self.verbose)
        return found if known is None else (batch._replace(mean=known[batch.where]) for batch in found)


def with_row_context(batches: Iterable[Batch], row_context: Mapping[str, NDArray[Any]]) -> Iterator[Batch]:
    """Yield the batches with what belongs to their rows, of arrays for all rows. Shapes: row_context (n_rows, …)."""
    for batch in batches:
        yield batch._replace(row_context={name: values[batch.where] for name, values in row_context.items()})


Part = TypeVar("Part")

# A thread is worth starting only for a millisecond of work: a rule takes some microseconds for a row.
_ROWS_PER_THREAD = 256


def map_batches(batches: Iterable[Batch], function: Callable[[Batch], Part], n_jobs: int | None) -> Iterator[Part]:
    """Yield what a function makes of batches, in the order of their rows; large batches are divided among threads."""
    for batch in batches:
        n_parts = n_threads_of(n_jobs, batch.n_rows // _ROWS_PER_THREAD)
        if n_parts == 1:
            yield function(batch)
        else:
            yield from run_parallel([partial(function, part) for part in batch.divided(n_parts)])


# The kinds that a model makes of its own training rows; their level is too low.
_BY_MODEL = ("leave-one-out", "out-of-bag")
_KINDS = ("none", "clones", *_BY_MODEL, "validation")


def root_mean_square(errors: Floats) -> Any:
    """Return the root mean square of errors; of several targets one for each, (n_targets,).

    Shapes: errors (n_rows,).
    """
    found = np.sqrt(np.mean(np.square(errors), axis=0))
    return float(found) if errors.ndim == 1 else found


@dataclass(frozen=True, eq=False)
class Residuals:
    """Out-of-sample residuals of rows, or the reason why there are none."""

    values: Floats | None = None  # target minus prediction, (n_rows,); (n_rows, n_targets) of several targets
    # Who has made them: clones that have not seen the row ("clones"), the model itself without the row in its leaves
    # ("leave-one-out"), those of its trees that have not seen the row ("out-of-bag"), or the model on validation rows.
    kind: str = "none"
    reason: str = ""  # why the model itself could not make them, if it was asked

    @property
    def made_by_model(self) -> bool:
        """Whether the model itself has made them: their level is too low."""
        return self.kind in _BY_MODEL

    @property
    def level(self) -> Any:
        """Their root mean square, (n_targets,) of several targets; NaN without values."""
        return np.nan if self.values is None else root_mean_square(self.values)

    def at_level(self, level: Any) -> Residuals:
        """Return them with another root mean square; as they are where there are none, or all are zero."""
        size = self.level
        if self.values is None or not np.any(size > 0):
            return self
        if self.values.ndim > 1:
            return replace(self, values=self.values * np.where(size > 0, level / np.where(size > 0, size, 1.0), 1.0))
        return replace(self, values=self.values * (level / size))

    def state(self) -> dict[str, Any]:
        """Return plain values, which `from_state` takes."""
        return {"residuals": self.values, "residual_kind": self.kind, "residual_reason": self.reason}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, of_validation: bool) -> Residuals:
        """Return the residuals that have this state."""
        values = None if state["residuals"] is None else plain_floats(state["residuals"], multioutput=True)
        usual = "none" if values is None else "validation" if of_validation else "clones"
        kind, reason = state.get("residual_kind", usual), state.get("residual_reason", "")
        known = kind in _KINDS and isinstance(reason, str)
        fits = (kind == "none") == (values is None) and (kind == "validation") == of_validation
        require(known and fits, "its kind of residuals is impossible")
        return cls(values, kind, reason)


def plain_floats(array: Any, *, multioutput: bool = False) -> Floats:
    """Return targets or residuals, (n_rows,); of several targets (n_rows, n_targets), where that may be."""
    floats = np.asarray(array)
    columns = floats.ndim == 1 or (multioutput and floats.ndim == 2 and floats.shape[1] >= 2)
    require(floats.dtype == np.float64 and columns, "its targets or residuals are no numbers")
    return floats


_VALUES_PER_BATCH = 2**21


@dataclass(frozen=True, eq=False)
class CrossFittedSource:
    """Training rows, each predicted by a clone that was not trained on it, with that clone's neighbours.

    `batches` takes positions among these rows in place of X.
    """

    mean: Floats  # (n_rows,) or (n_rows, n_targets), out-of-fold predictions
    affinities: NDArray[np.float32]  # (n_rows, k), as shares of the trees of the clone of the row's fold
    neighbors: NDArray[np.int32]  # (n_rows, k), rows that this clone was trained on, as numbers of training rows
    targets: Floats  # (n_train,), or (n_train, n_targets) of several targets
    residuals: Floats  # of the same shape
    weights: Floats | None = None  # (n_train,) of the rows as neighbours; None where they count equally
    per_target: tuple[TargetNeighbors, ...] = ()  # as shares, of several targets that have trees of their own

    leaves_of: ClassVar[None] = None  # each row has those of its own clone

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
        quantities = {"targets": self.targets, "residuals": self.residuals}
        k = max(needs.values())
        size = max(1, _VALUES_PER_BATCH // k)
        for start in range(0, len(X), size):
            chosen = X[start : start + size]
            yield Batch.of(
                slice(start, start + len(chosen)),
                self.mean[chosen],
                self.affinities[chosen, :k],
                self.neighbors[chosen, :k].astype(np.int64),
                1,
                quantities,
                needs,
                weights=self.weights,
                per_target=tuple(
                    TargetNeighbors(one.affinities[chosen, :k], one.rows[chosen, :k].astype(np.int64), 1)
                    for one in self.per_target
                ),
            )
