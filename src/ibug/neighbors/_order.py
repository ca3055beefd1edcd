"""The total order of neighbours, and the exact merge of partial results in that order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Integers

Neighbors = tuple[NDArray[np.int32], NDArray[np.int64]]


def merge_top_k(parts: Sequence[Neighbors], k: int) -> Neighbors:
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


def not_self(rows: Integers, first: int) -> NDArray[np.bool_]:
    """Tell which k of each row's k + 1 nearest rows are other rows, (n_rows, k + 1). Shapes: rows (n_rows, k + 1)."""
    self_: NDArray[np.bool_] = rows == np.arange(first, first + len(rows))[:, None]
    # With more than k twins of lower number a row is not among its own nearest: then the last one is left out.
    self_[~self_.any(axis=1), -1] = True
    return ~self_
