"""How a search is divided among threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

# A thread is worth starting only for a millisecond of work or more: about this many code comparisons.
COMPARISONS_PER_TASK = 2**28


class Task(NamedTuple):
    """Ranges of queries and tiles; the stops are exclusive."""

    first_query: int
    last_query: int
    first_tile: int
    last_tile: int


def most_tasks(comparisons: int) -> int:
    """Return the largest number of tasks that makes a search of this many code comparisons faster."""
    return comparisons // COMPARISONS_PER_TASK


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
