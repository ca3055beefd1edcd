"""The total order of neighbours, and the exact merge of partial results in that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Integers

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


def not_self(rows: Integers, first: int) -> NDArray[np.bool_]:
    """Tell which k of each row's k + 1 nearest rows are other rows, (n_rows, k + 1).

    Parameters
    ----------
    rows : ndarray of shape (n_rows, k + 1)
        The nearest rows.
    first
        The number of the first row.
    """
    self_: NDArray[np.bool_] = rows == np.arange(first, first + len(rows))[:, None]
    # With more than k twins of lower number a row is not among its own nearest: then the last one is left out.
    self_[~self_.any(axis=1), -1] = True
    return ~self_
