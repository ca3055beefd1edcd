"""Rows with targets on the cluster: how many, what their targets are like, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client, as_completed, futures_of
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug.dask._errors import in_partition
from ibug.dask._partitions import Partitions, check_columns, local_positions, stack, take, targets_of
from ibug.dask._placement import on_rows
from ibug.dask._shard import targets_in
from ibug.rule import TargetRange


@dataclass(frozen=True)
class RowsOnCluster:
    """Rows and targets in partitions, checked.

    Parameters
    ----------
    name
        What they are called in errors.
    X, y
        The partitions, delayed.
    ranges
        Number and range of each partition's targets.
    """

    name: str
    X: list[Delayed]
    y: list[Delayed]
    ranges: tuple[TargetRange, ...]

    @classmethod
    def examine(cls, client: Client, X: Partitions, y: Sequence[Delayed], name: str, verbose: bool) -> RowsOnCluster:
        """Check columns and targets, and count the rows of each partition."""
        columns = delayed(X.columns)
        tasks = on_rows(_examine, [(i, *part, columns, name) for i, part in enumerate(zip(X.parts, y, strict=True))])
        ranges = results(client, tasks, f"checking {name}", verbose)
        return cls(name, list(X.parts), list(y), tuple(ranges))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of rows of each partition."""
        return tuple(part.n for part in self.ranges)

    @property
    def starts(self) -> tuple[int, ...]:
        """The number of each partition's first row."""
        return tuple(np.cumsum([0, *self.lengths[:-1]]).tolist())

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.lengths)

    @property
    def range(self) -> TargetRange:
        """Number and range of all targets together."""
        return TargetRange.join(self.ranges)

    def sample(self, positions: NDArray[np.intp]) -> Delayed:
        """Return some rows, by their ascending numbers, as one block."""
        parts = zip(self.X, local_positions(positions, self.lengths), strict=True)
        return delayed(stack)(on_rows(take, [part for part in parts if len(part[1])]))

    def take(self, positions: NDArray[np.intp]) -> RowsOnCluster:
        """Return some rows, by their ascending numbers, in the partitions that they are in."""
        where = local_positions(positions, self.lengths)
        ranges = tuple(TargetRange(len(rows)) for rows in where)
        X, y = (on_rows(take, zip(parts, where, strict=True)) for parts in (self.X, self.y))
        return RowsOnCluster(self.name, X, y, ranges)

    def queries(self) -> Partitions:
        """Return the rows to be searched for."""
        return Partitions(None, self.X)


def _examine(number: int, X: Any, y: Any, columns: Any, name: str) -> TargetRange:
    with in_partition(number, name):
        check_columns(X, columns)
        return TargetRange.of(targets_in(X, y))


def some_of(collection: Any, fraction: float, seeds: Sequence[int], *, others: bool) -> Any:
    """Return a random part of a collection, or all other rows; the same ones of every collection."""
    if isinstance(collection, da.Array):
        columns = collection.shape[1:]
        parts = list(np.ravel(collection.rechunk({1: -1}).to_delayed() if columns else collection.to_delayed()))
    else:
        parts = targets_of(collection)
    some = [delayed(_drawn)(part, fraction, seed, others) for part, seed in zip(parts, seeds, strict=True)]
    if not isinstance(collection, da.Array):
        return dd.from_delayed(some, meta=collection._meta, verify_meta=False)
    blocks = [da.from_delayed(part, (np.nan, *columns), meta=collection._meta) for part in some]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _drawn(part: Any, fraction: float, seed: int, others: bool) -> Any:
    drawn = np.random.RandomState(seed).random_sample(_num_samples(part)) < fraction
    return take(part, np.flatnonzero(~drawn if others else drawn))


def results(client: Client, tasks: Sequence[Delayed], title: str, verbose: bool) -> list[Any]:
    """Compute on the cluster, show the progress, and return the results."""
    futures = client.compute(list(tasks))
    _follow(futures, title, verbose)
    return list(client.gather(futures))


def persisted(client: Client, tasks: Sequence[Delayed], title: str, verbose: bool) -> list[Delayed]:
    """Compute on the cluster, and leave the results there."""
    held = list(client.persist(list(tasks)))
    _follow(futures_of(held), title, verbose)
    return held


def _follow(futures: Sequence[Any], title: str, verbose: bool) -> None:
    with Progress(title, len(futures), enabled=verbose) as progress:
        for future in as_completed(futures):
            if future.status == "error":
                future.result()  # raises
            progress.advance(1)
