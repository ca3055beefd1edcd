"""What tasks have found for each partition, put together in the manner of the rows that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dask import delayed

from ibug.dask._index import SearchGraph
from ibug.dask._rows import Key, Partitions, framed, index_of


def gathered(
    graph: SearchGraph,
    keys: Sequence[Key],
    columns: Sequence[Any] | None,
    dtype: Any,
    name: str = "result",
    part: int | None = None,
) -> Any:
    """Return the partitions' arrays as one collection, or as one array for local rows."""
    rows = graph.queries
    if rows.are_frames:
        last = graph.each(name, lambda j, X, one: (_framed, one, part, X.key, columns), rows.parts, keys)
    else:
        flat = columns is None or rows.are_local
        last = graph.each(name, lambda j, one: (_part, one, part), keys, tail=() if flat else (0,))
    return rows.gather(graph.highlevel(graph.name(name)), last, columns, dtype)


def indices_of(rows: Partitions) -> list[Any] | None:
    """Return the index of each partition of frames; None for arrays."""
    return [delayed(index_of)(part) for part in rows.parts] if rows.are_frames else None


def _part(value: Any, part: int | None) -> Any:
    return value if part is None else value[part]


def _framed(value: Any, part: int | None, X: Any, columns: Any) -> Any:
    return framed(_part(value, part), X.index, columns)
