"""The total order of neighbours, and the exact merge of partial results in that order."""

from __future__ import annotations

from collections.abc import Sequence

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
    affinities = np.concatenate([part[0] for part in parts], axis=1)
    rows = np.concatenate([part[1] for part in parts], axis=1)
    # -1 marks an empty place and is below every affinity, so that empty places come last.
    best = np.lexsort((rows, -affinities), axis=1)[:, :k]
    return np.take_along_axis(affinities, best, axis=1), np.take_along_axis(rows, best, axis=1)
