"""What is made of batches, by threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from ibug._threads import n_threads_of, run_parallel
from ibug.neighbors._source import Batch

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
