"""How a query is answered: by a scan of all rows, by bounds that skip most of them, or in two stages; by threads."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug._threads import n_threads_of, run_parallel
from ibug.neighbors._builder import padded_trees
from ibug.neighbors._order import Neighbors, merge_top_k
from ibug.neighbors._tasks import Task, divide, most_tasks

# A search by bounds gives up in favour of a full scan when it seems to need another share of the tiles as large as
# this. A tile that is visited alone costs three to five times one in a scan of several queries, and about ten times one
# in a scan of many, which share bitmaps. A row alone never gives up: both read tiles from memory, and a visit ends
# where no row of the tile can be among the nearest any more, so that it is no slower even if all tiles are visited.
_MOST_VISITED, _MOST_VISITED_OF_MANY, _MOST_VISITED_ALONE = 0.2, 0.12, 1.0
# Nor is it tried for more neighbours than this share of the rows, which lie in many tiles.
_MOST_ROWS, _MOST_ROWS_OF_MANY = 1 / 8, 1 / 300
# What a search by bounds costs compared with a full scan, at least; for the number of threads.
_SPARED = 8
# Comparisons of a row alone that take as long as one of many rows: each code comes from memory.
_ALONE = 16
# Queries that share each load of a tile: what a thread should have at least, before tiles are divided.
_GROUP = 16


class Search:
    """Searches in the compiled index, which they do not change.

    Parameters
    ----------
    index
        The compiled index.
    n_rows, n_trees
        Of the index.
    tiles_shape : tuple of int
        The shape of the tiles, (n_tiles, n_padded_trees, 16).
    one_byte
        Whether leaf codes have one byte, so that many queries share bitmaps of their leaves.
    has_bounds
        Whether rows can be skipped.
    """

    def __init__(
        self,
        index: kernel.Index,
        *,
        n_rows: int,
        n_trees: int,
        tiles_shape: tuple[int, int, int],
        one_byte: bool,
        has_bounds: bool,
    ) -> None:
        self._index = index
        self._n_rows, self._n_trees, self._n_tiles = n_rows, n_trees, tiles_shape[0]
        self._n_codes = tiles_shape[0] * tiles_shape[1] * tiles_shape[2]
        self._one_byte, self._has_bounds = one_byte, has_bounds

    def __call__(
        self,
        leaves: NDArray[np.int32],
        k: int,
        *,
        candidates: int | None,
        n_jobs: int | None,
        instruction_set: str,
    ) -> Neighbors:
        """Return affinities and rows of the nearest, both (n_queries, k); see ``LeafIndex.query``."""
        n_queries = len(leaves)
        # Decided once: the tiles of a search by bounds are divided otherwise than those of a scan.
        prunes = candidates is None and self._prunes(k, self._are_many(n_queries, instruction_set))
        tasks = self._tasks(n_queries, candidates, prunes, n_jobs, instruction_set)
        if len(tasks) == 1:
            return self._run(leaves, tasks[0], k, candidates, prunes, instruction_set)
        parts = {(task.first_tile, task.last_tile): _empty(n_queries, k) for task in tasks}
        settings = k, candidates, prunes, instruction_set
        run_parallel(
            [partial(self._run, leaves, task, *settings, parts[task.first_tile, task.last_tile]) for task in tasks]
        )
        return next(iter(parts.values())) if len(parts) == 1 else merge_top_k(list(parts.values()), k)

    def visits(self, leaves: NDArray[np.int32], k: int, instruction_set: str) -> NDArray[np.int64]:
        """Return the number of tiles that each query visits when it skips what it can, (n_queries,)."""
        visits = np.empty(len(leaves), np.int64)
        self._index.count_visits(leaves, k, visits, instruction_set)
        return visits

    def _shares_bitmaps(self, n_queries: int, instruction_set: str) -> bool:
        """Whether a full scan of n_queries queries shares bitmaps of their leaves."""
        return self._one_byte and n_queries > 1 and n_queries >= kernel.least_queries(instruction_set)

    def _are_many(self, n_queries: int, instruction_set: str) -> bool:
        """Whether such a scan is so fast that bounds must spare much to be faster."""
        return self._one_byte and n_queries > 1 and n_queries >= kernel.many_queries(instruction_set)

    def _prunes(self, k: int, many: bool) -> bool:
        """Whether bounds can help: not if a large part of all rows is asked for, or by many queries a small one."""
        return self._has_bounds and k <= (_MOST_ROWS_OF_MANY if many else _MOST_ROWS) * self._n_rows

    def _tasks(
        self,
        n_queries: int,
        candidates: int | None,
        prunes: bool,
        n_jobs: int | None,
        instruction_set: str,
    ) -> list[Task]:
        comparisons = n_queries * self._n_codes * (_ALONE if n_queries == 1 else 1)
        unit, group = kernel.QUAD_TILES, _GROUP
        if prunes:
            comparisons, unit = comparisons // _SPARED, kernel.CHUNK_TILES
        elif self._shares_bitmaps(n_queries, instruction_set):
            group = kernel.least_queries(instruction_set)
        if candidates is not None:
            comparisons, unit = comparisons // 4, self._n_tiles
        return divide(n_queries, self._n_tiles, unit, n_threads_of(n_jobs, most_tasks(comparisons)), group)

    def _run(
        self,
        leaves: NDArray[np.int32],
        task: Task,
        k: int,
        candidates: int | None,
        prunes: bool,
        instruction_set: str,
        out: Neighbors | None = None,
    ) -> Neighbors:
        """Search for a range of queries in a range of tiles, and write the results into the queries' rows of `out`."""
        affinities, rows = _empty(len(leaves), k) if out is None else out
        queries = task.first_query, task.last_query
        if prunes:
            most_visits = self._most_visits(task, instruction_set)
            tiles = task.first_tile, task.last_tile
            self._index.search(leaves, *queries, *tiles, most_visits, affinities, rows, instruction_set)
        elif candidates is None:
            self._index.scan(leaves, *queries, task.first_tile, task.last_tile, affinities, rows, instruction_set)
        else:
            first_trees = padded_trees(-(-self._n_trees // 4))
            self._index.two_stage(leaves, *queries, first_trees, candidates, affinities, rows, instruction_set)
        return affinities, rows

    def _most_visits(self, task: Task, instruction_set: str) -> int:
        """Return the number of tiles that a query may visit before a full scan is likely to be faster."""
        n_queries = task.last_query - task.first_query
        many = self._are_many(n_queries, instruction_set)
        share = _MOST_VISITED_OF_MANY if many else _MOST_VISITED if n_queries > 1 else _MOST_VISITED_ALONE
        return int(share * (task.last_tile - task.first_tile))


def _empty(n_queries: int, k: int) -> Neighbors:
    return np.empty((n_queries, k), np.int32), np.empty((n_queries, k), np.int64)
