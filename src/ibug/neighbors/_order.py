"""The total order of neighbours, and the exact merge of partial results in that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Neighbors = tuple[NDArray[np.int32], NDArray[np.int64]]


def merge_top_k(parts: Sequence[Neighbors], k: int) -> Neighbors:
    """Merge the top-k lists of disjoint sets of training rows into one.

    Parameters
    ----------
    parts
        For each set of rows the pair ``(affinities, rows)``, both of shape ``(n_queries, k_part)``, with ``-1`` where a
        set had fewer than ``k_part`` rows. Row numbers must be unique over all parts.
    k
        How many to keep.

    Returns
    -------
    affinities, rows
        Both ``(n_queries, k)``: affinity descending, then row ascending. Because this order is total, the result does
        not depend on how the rows were divided.
    """
    affinities, rows = merge_columns(parts, k)
    return affinities, rows


def merge_columns(parts: Sequence[Sequence[NDArray[Any]]], k: int) -> tuple[NDArray[Any], ...]:
    """Do what `merge_top_k` does with lists that have more columns: the neighbours' targets, say, go along with them.

    Parameters
    ----------
    parts
        For each set of rows affinities, rows, and any number of further arrays, all of shape ``(n_queries, k_part)``.
    k
        How many to keep.
    """
    columns = [np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)]
    affinities, rows = columns[:2]
    # -1 marks an empty place and is below every affinity, so that empty places come last.
    best = np.lexsort((rows, -affinities), axis=1)[:, :k]
    return tuple(np.take_along_axis(column, best, axis=1) for column in columns)
