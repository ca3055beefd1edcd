"""Rows in partitions: what users hand in, what is checked of it, and what they get back in the same partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.delayed import Delayed
from distributed import Client
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats
from ibug._validation import as_rows, check_targets
from ibug.dask._cluster import ROWS, results, tasks_of
from ibug.exceptions import InvalidInputError
from ibug.rule import TargetRange


@contextmanager
def in_partition(number: int, name: str) -> Iterator[None]:
    """Name the partition in whatever the rows of it make ibug or the model's library complain of."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"Partition {number} of {name}: {error}") from error


Key = tuple[Any, ...]


@dataclass(frozen=True)
class Partitions:
    """The rows of a Dask data frame or array, or of a local one in blocks."""

    collection: Any  # what the user has given
    parts: list[Delayed]  # one block of rows per partition

    @classmethod
    def of(cls, X: Any, block: int) -> Partitions:
        """Take rows apart; local ones into blocks of `block` rows."""
        if is_dask(X):
            return cls(X, parts_of(X))
        blocks = [slice(start, start + block) for start in range(0, _num_samples(X), block)]
        return cls(X, [delayed(_safe_indexing(X, where), pure=False, traverse=False) for where in blocks])

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def columns(self) -> list[Any] | int | None:
        """The names of the columns that each partition must have, in this order; of arrays their number."""
        if isinstance(self.collection, dd.DataFrame):
            return list(self.collection.columns)
        return int(self.collection.shape[1]) if isinstance(self.collection, da.Array) else None

    @property
    def are_frames(self) -> bool:
        """Whether results are to be data frames and series."""
        return isinstance(self.collection, dd.DataFrame)

    @property
    def are_local(self) -> bool:
        """Whether results are to be NumPy arrays, at once."""
        return not is_dask(self.collection)

    def keys(self, name: str, columns: Sequence[Any] | None) -> list[Key]:
        """Return the keys of results that `gather` takes: the blocks of an array are also numbered across."""
        across = (0,) if columns is not None and isinstance(self.collection, da.Array) else ()
        return [(name, j, *across) for j in range(len(self))]

    def gather(self, graph: Any, keys: Sequence[Key], columns: Sequence[Any] | None, dtype: Any) -> Any:
        """Put the results of all partitions together, lazily unless the rows are local."""
        if isinstance(self.collection, da.Array):
            chunks = (self.collection.chunks[0], *(() if columns is None else ((len(columns),),)))
            return da.Array(graph, keys[0][0], chunks, dtype=dtype, meta=np.empty((0,) * len(chunks), dtype))
        parts = [Delayed(key, graph, layer=key[0]) for key in keys]
        if self.are_local:
            return np.concatenate(dask_compute(parts))
        meta = framed(no_answers(columns).astype(dtype), self.collection._meta.index, columns)
        divisions = tuple(self.collection.divisions) if self.collection.known_divisions else None
        return dd.from_delayed(parts, meta=meta, divisions=divisions, verify_meta=False)


def no_answers(columns: Sequence[Any] | None) -> Floats:
    """Return the answer for no rows, one number or several columns each."""
    return np.empty(0 if columns is None else (0, len(columns)))


def is_dask(X: Any) -> bool:
    """Return whether this is a Dask collection, not local data."""
    return isinstance(X, (dd.DataFrame, dd.Series, da.Array))


def dask_compute(parts: Sequence[Delayed]) -> list[Any]:
    """Compute on the cluster, and wait."""
    import dask

    return list(dask.compute(*parts))


def check_kind(X: Any, name: str) -> Any:
    """Return rows that can be taken apart."""
    if isinstance(X, (dd.DataFrame, da.Array)):
        if X.ndim != 2:
            raise InvalidInputError(f"{name} must have rows and columns; got {X.ndim} dimension(s).")
        return X
    X = as_rows(X)
    if not isinstance(X, (np.ndarray, pd.DataFrame)):
        raise InvalidInputError(
            f"{name} must be a Dask DataFrame or Array, a pandas DataFrame or a NumPy array; got {type(X).__name__}."
        )
    return X


def meta_of(X: Any) -> Any:
    """Return no rows of the same columns, for checks of their names and number."""
    if isinstance(X, dd.DataFrame):
        return X._meta
    return np.empty((0, X.shape[1]), X.dtype) if isinstance(X, da.Array) else X


def as_collections(X: Any, y: Any, client: Client, name: str) -> tuple[Any, Any]:
    """Return rows and targets as Dask collections of the same partitions; local ones are cut, one part per worker."""
    X = check_kind(X, name)
    if y is None:
        raise InvalidInputError(f"The targets that belong to {name} are missing.")
    if is_dask(X) != is_dask(y):
        raise InvalidInputError(
            f"{name} and its targets must be both Dask collections, with the same partitions, or both local; got "
            f"{type(X).__name__} and {type(y).__name__}. dask.dataframe.from_pandas(..., sort=False) and "
            "dask.array.from_array make collections of local data."
        )
    if not is_dask(X):
        return _distributed(X, y, max(1, len(client.scheduler_info(n_workers=-1)["workers"])))
    n_parts = X.npartitions if isinstance(X, dd.DataFrame) else len(X.chunks[0])
    if n_parts != y.npartitions:
        raise InvalidInputError(
            f"{name} has {n_parts} partitions and its targets have {y.npartitions}: take both from the same "
            "collection, or repartition both in the same way."
        )
    return X, y


def _distributed(X: Any, y: Any, n_parts: int) -> tuple[Any, Any]:
    n_rows = _num_samples(X)
    targets = np.asarray(y)
    if len(targets) != n_rows:
        raise InvalidInputError(f"There are {n_rows} rows and {len(targets)} targets.")
    if isinstance(X, pd.DataFrame):
        frame = dd.from_pandas(X, npartitions=n_parts, sort=False)
        return frame, dd.from_pandas(pd.Series(targets.ravel(), index=X.index), npartitions=n_parts, sort=False)
    rows = max(1, -(-n_rows // n_parts))
    return da.from_array(X, chunks=(rows, -1)), da.from_array(targets.ravel(), chunks=rows)


def parts_of(collection: Any) -> list[Delayed]:
    """Return the partitions of a collection, delayed."""
    if isinstance(collection, da.Array) and collection.ndim > 1:
        collection = collection.rechunk({1: -1})  # all columns in one
    parts = collection.to_delayed()
    return list(parts.ravel() if isinstance(collection, da.Array) else parts)


def check_columns(part: Any, columns: list[Any] | int | None) -> None:
    """Raise InvalidInputError unless a partition has the columns that its collection promises, in their order.

    Dask itself compares neither names nor order, and models read columns by their places.
    """
    if columns is None or isinstance(columns, int):
        if columns is not None and (np.ndim(part) != 2 or part.shape[1] != columns):
            raise InvalidInputError(f"It has the shape {np.shape(part)}, and its collection has {columns} columns.")
        return
    found = list(part.columns)
    if found == columns:
        return
    missing = [name for name in columns if name not in found]
    extra = [name for name in found if name not in columns]
    if missing or extra:
        raise InvalidInputError(
            f"Its columns are not those of its collection: missing {missing[:10]}, unexpected {extra[:10]}. "
            "Give all partitions the same columns."
        )
    raise InvalidInputError(
        f"Its columns are in another order than those of its collection: {found[:10]} instead of {columns[:10]}. "
        "X.map_partitions(lambda part: part[list(X.columns)]) puts them in order."
    )


def local_positions(positions: NDArray[np.intp], lengths: Sequence[int]) -> list[NDArray[np.intp]]:
    """Divide ascending numbers of rows among partitions: for each the positions in it."""
    ends = np.cumsum(lengths)
    cuts = np.searchsorted(positions, ends)
    return [
        positions[first:last] - (end - length)
        for first, last, end, length in zip([0, *cuts[:-1]], cuts, ends, lengths, strict=True)
    ]


def take(part: Any, positions: NDArray[np.intp]) -> Any:
    """Return some rows of a block."""
    return _safe_indexing(part, positions)


def stack(blocks: Sequence[Any]) -> Any:
    """Put blocks of rows together."""
    return pd.concat(blocks) if isinstance(blocks[0], (pd.DataFrame, pd.Series)) else np.concatenate(blocks)


@dataclass(frozen=True)
class RowsOnCluster:
    """Rows and targets in partitions, checked."""

    name: str  # what they are called in errors
    X: list[Delayed]
    y: list[Delayed]
    ranges: tuple[TargetRange, ...]  # of each partition's targets

    @classmethod
    def examine(cls, client: Client, X: Partitions, y: Sequence[Delayed], name: str, verbose: bool) -> RowsOnCluster:
        """Check columns and targets, and count the rows of each partition."""
        columns = delayed(X.columns)
        tasks = tasks_of(
            ROWS, _examine, [(i, *part, columns, name) for i, part in enumerate(zip(X.parts, y, strict=True))]
        )
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

    def sample(self, positions: NDArray[np.intp], *, targets: bool = False) -> Delayed:
        """Return some rows, or their targets, by their ascending numbers, as one block."""
        pairs = zip(self.y if targets else self.X, local_positions(positions, self.lengths), strict=True)
        return delayed(stack)(tasks_of(ROWS, take, [pair for pair in pairs if len(pair[1])]))

    def take(self, positions: NDArray[np.intp]) -> RowsOnCluster:
        """Return some rows, by their ascending numbers, in the partitions that they are in."""
        where = local_positions(positions, self.lengths)
        ranges = tuple(TargetRange(len(rows)) for rows in where)
        X, y = (tasks_of(ROWS, take, zip(parts, where, strict=True)) for parts in (self.X, self.y))
        return RowsOnCluster(self.name, X, y, ranges)


def _examine(number: int, X: Any, y: Any, columns: Any, name: str) -> TargetRange:
    with in_partition(number, name):
        check_columns(X, columns)
        return TargetRange.of(targets_in(X, y))


def some_of(collection: Any, fraction: float, seeds: Sequence[int], *, others: bool) -> Any:
    """Return a random part of a collection, or all other rows; the same ones of every collection."""
    seeded = zip(parts_of(collection), seeds, strict=True)
    some = [delayed(_drawn)(part, fraction, seed, others) for part, seed in seeded]
    if not isinstance(collection, da.Array):
        return dd.from_delayed(some, meta=collection._meta, verify_meta=False)
    blocks = [da.from_delayed(part, (np.nan, *collection.shape[1:]), meta=collection._meta) for part in some]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _drawn(part: Any, fraction: float, seed: int, others: bool) -> Any:
    drawn = np.random.RandomState(seed).random_sample(_num_samples(part)) < fraction
    return take(part, np.flatnonzero(~drawn if others else drawn))


def targets_in(X: Any, y: Any) -> Floats:
    """Return the targets of a partition, (n_rows,), checked; a partition may be empty."""
    if _num_samples(X) == 0 and len(y) == 0:
        return np.empty(0)
    return check_targets(X, y, "y")


def framed(values: Any, index: Any, columns: Sequence[Any] | None) -> Any:
    """Return an array as a series, or as a frame with columns, with the index of the rows."""
    return pd.Series(values, index=index) if columns is None else pd.DataFrame(values, index=index, columns=columns)


def index_of(part: Any) -> Any:
    """Return the index of a frame."""
    return part.index
