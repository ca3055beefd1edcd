"""How a query is answered: by a scan of all rows, or of those in the nearest cells; the order of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug._parallel import n_threads_of, run_parallel
from ibug._typing import Integers
from ibug._validation import require
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ibug.neighbors._index import LeafIndex

#: Affinities and rows of the nearest, both (n_queries, k), in descending order of affinity, then of ascending row.
TopK = tuple[NDArray[np.int32], NDArray[np.int64]]


def merge_top_k(parts: Sequence[TopK], k: int) -> TopK:
    """Merge the top-k lists of disjoint sets of training rows into one."""
    affinities, rows = merge_columns(parts, k)
    return affinities, rows


def merge_columns(parts: Sequence[Sequence[NDArray[Any]]], k: int) -> tuple[NDArray[Any], ...]:
    """Do what `merge_top_k` does with lists of more columns: the neighbours' targets, say, go along."""
    columns = [np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)]
    affinities, rows = columns[:2]
    # -1 marks an empty place and is below every affinity, so that empty places come last.
    best = np.lexsort((rows, -affinities), axis=1)[:, :k]
    return tuple(np.take_along_axis(column, best, axis=1) for column in columns)


def not_self(rows: Integers, numbers: Integers) -> NDArray[np.bool_]:
    """Return which k of each row's k + 1 nearest rows are other rows, (n_rows, k + 1).

    Shapes: rows (n_rows, k + 1); numbers (n_rows,), those of the rows themselves.
    """
    self_: NDArray[np.bool_] = rows == numbers[:, None]
    # With more than k twins of lower number a row is not among its own nearest: then the last one is left out.
    self_[~self_.any(axis=1), -1] = True
    return ~self_


# A thread is worth starting only for a millisecond of work or more: about this many code comparisons.
COMPARISONS_PER_TASK = 2**28


class Task(NamedTuple):
    """Ranges of queries and tiles; the stops are exclusive."""

    first_query: int
    last_query: int
    first_tile: int
    last_tile: int


def divide(n_queries: int, n_tiles: int, unit: int, n_tasks: int, group: int) -> list[Task]:
    """Divide the queries among tasks, and where they are too few, the rows of the index too.

    Tiles are divided at multiples of `unit`. Queries of a task share work, so each should have a `group` of them before
    tiles are divided.
    """
    if n_tasks == 1:
        return [Task(0, n_queries, 0, n_tiles)]
    by_query = min(n_tasks, max(1, n_queries // group))
    n_units = -(-n_tiles // unit)
    tile_ranges = [(a * unit, min(b * unit, n_tiles)) for a, b in _ranges(n_units, min(n_tasks // by_query, n_units))]
    return [Task(*q, *t) for q in _ranges(n_queries, by_query) for t in tile_ranges]


def _ranges(n: int, parts: int) -> Iterator[tuple[int, int]]:
    edges = [n * i // parts for i in range(parts + 1)]
    return pairwise(edges)


@dataclass(frozen=True)
class SearchPlan:
    """How the neighbours of a row are searched: among all training rows, or in the cells nearest to the row.

    Parameters
    ----------
    n_cells : int or None, default=None
        The number of cells that a row visits; None: it is compared with all training rows.
    all_cells : int, default=0
        The number of cells that there are; 0 where there are none.
    visited : float, default=1.0
        The share of the training rows that a row is compared with, prototypes of cells included.
    k : int, default=0
        The number of neighbours whose recall was measured.
    recall, least_recall : float, default=1.0
        The share of the k nearest training rows that is found: the mean, and the 1st percentile over rows.
    loss : float, default=0.0
        The share by which the mean CRPS is higher than that of a search among all rows.
    n_measured : int, default=0
        The number of rows that these were measured on; 0: nothing was measured.
    reason : str, default=""
        Why rows are compared with all training rows.
    """

    n_cells: int | None = None
    all_cells: int = 0
    visited: float = 1.0
    k: int = 0
    recall: float = 1.0
    least_recall: float = 1.0
    loss: float = 0.0
    n_measured: int = 0
    reason: str = ""

    @classmethod
    def from_state(cls, state: Any) -> SearchPlan:
        """Return the plan of which these are the fields."""
        usual = asdict(cls())
        right = isinstance(state, Mapping) and state.keys() <= usual.keys()
        right = right and all(
            isinstance(value, str) if name == "reason" else isinstance(value, (int, float)) or value is usual[name]
            for name, value in state.items()
        )
        require(right and (state.get("n_cells") is None or state["n_cells"] >= 1), "its search is impossible")
        return cls(**state)

    def __str__(self) -> str:
        if self.n_cells is None:
            return "exact: each row is compared with all training rows" + (f" ({self.reason})" if self.reason else "")
        words = (
            f"cells: each row is compared with {self.visited:.2g} of the training rows, "
            f"those in the {self.n_cells} nearest of {self.all_cells} cells"
        )
        if not self.n_measured:
            return words
        return (
            f"{words}; on {self.n_measured} rows this finds {self.recall:.1%} of the {self.k} nearest (at least "
            f"{self.least_recall:.0%} for 99 of 100 rows), and changes the CRPS by {self.loss:+.2%}"
        )


# Comparisons of a row alone that take as long as one of many rows: each code comes from memory.
_ALONE = 16
# Queries that share each load of a tile: what a thread should have at least, before tiles are divided.
_GROUP = 16
# What a visit of cells costs compared with a full scan, at least; for the number of threads.
_SPARED = 8


class Search:
    """Searches in the compiled index, which they do not change."""

    def __init__(self, index: kernel.Index, tiles: NDArray[Any], n_rows: int) -> None:
        self._index, self._n_rows, self._n_tiles, self._n_codes = index, n_rows, len(tiles), tiles.size
        self._one_byte = tiles.dtype == np.uint8  # then many queries share bitmaps of their leaves

    def __call__(
        self, leaves: NDArray[np.int32], k: int, n_cells: int | None, n_jobs: int | None, instruction_set: str
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Return affinities and rows of the nearest, (n_queries, k), and the number of rows looked at, (n_queries,)."""
        n_queries = len(leaves)
        visited = np.full(n_queries, self._n_rows)
        if n_cells is not None:
            n_tasks = n_threads_of(n_jobs, n_queries * self._n_codes // _SPARED // COMPARISONS_PER_TASK)
            out = _empty(n_queries, k)
            ranges = _ranges(n_queries, max(1, min(n_tasks, n_queries // _GROUP)))
            run_parallel(
                [partial(self._index.search, leaves, *some, n_cells, *out, visited, instruction_set) for some in ranges]
            )
            return *out, visited
        tasks = self._tasks(n_queries, n_jobs, instruction_set)
        parts = {(task.first_tile, task.last_tile): _empty(n_queries, k) for task in tasks}
        run_parallel(
            [
                partial(self._index.scan, leaves, *task, *parts[task.first_tile, task.last_tile], instruction_set)
                for task in tasks
            ]
        )
        found = next(iter(parts.values())) if len(parts) == 1 else merge_top_k(list(parts.values()), k)
        return *found, visited

    def _tasks(self, n_queries: int, n_jobs: int | None, instruction_set: str) -> list[Task]:
        comparisons = n_queries * self._n_codes * (_ALONE if n_queries == 1 else 1)
        group = _GROUP
        if self._one_byte and n_queries > 1 and n_queries >= (least := kernel.least_queries(instruction_set)):
            group = least  # a scan that shares bitmaps
        n_tasks = n_threads_of(n_jobs, comparisons // COMPARISONS_PER_TASK)
        return divide(n_queries, self._n_tiles, kernel.QUAD_TILES, n_tasks, group)


def _empty(n_queries: int, k: int) -> TopK:
    return np.empty((n_queries, k), np.int32), np.empty((n_queries, k), np.int64)


def instruction_sets() -> list[str]:
    """Return the instruction sets that the kernel can use on this machine, best last."""
    return kernel.instruction_sets()


def least_queries(instruction_set: str | None = None) -> int:
    """Return the number of queries from which on a full scan of one-byte codes shares bitmaps of their leaves."""
    return kernel.least_queries(instruction_set or "")


class CountingLoop:
    """The innermost loop of a full scan on codes that fit the first-level cache: the peak of comparing code by code.

    Calling it compares the first 64 rows of the index with `n_queries` of its rows in the first `n_trees` trees (252 at
    most: more do not fit the cache), `passes` times: these are `comparisons` of leaf codes.
    """

    def __init__(
        self,
        index: LeafIndex,
        *,
        passes: int,
        n_queries: int = 8,
        n_trees: int = 252,
        instruction_set: str | None = None,
    ) -> None:
        if not 1 <= n_queries <= index.n_rows or passes < 1 or n_trees < 1:
            raise InvalidInputError(
                f"A counting loop needs passes and trees, and from 1 to {index.n_rows} queries; "
                f"got passes={passes}, n_trees={n_trees}, n_queries={n_queries}."
            )
        tiles = index.arrays()["tiles"]
        width = min(-(-n_trees // kernel.TREE_STEP) * kernel.TREE_STEP, tiles.shape[1], kernel.TREE_BLOCK)
        places = np.arange(n_queries)
        self._tiles = np.ascontiguousarray(tiles[: kernel.QUAD_TILES, :width])
        self._codes = np.ascontiguousarray(tiles[places // kernel.TILE_ROWS, :width, places % kernel.TILE_ROWS])
        self._passes, self._instruction_set = passes, instruction_set or ""
        self.comparisons = passes * self._tiles.size * n_queries

    def __call__(self) -> int:
        """Run the loop; return a checksum of the counts."""
        return kernel.count_repeatedly(self._tiles, self._codes, self._passes, self._instruction_set)
