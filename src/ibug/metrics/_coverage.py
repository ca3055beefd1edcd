"""The share of observed values inside their interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_interval, as_targets, reduced


def coverage(
    y: ArrayLike,
    distribution: Any,
    level: float = 0.9,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the share of values inside the central interval of the given level; it should be the level.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows.
    level
        The nominal coverage of the interval; not used for intervals that are given as an array.
    reduce : {"mean", None}
        The share, or for each row 1.0 inside and 0.0 outside.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    lower, upper = as_interval(distribution, len(values), level)
    return reduced(((lower <= values) & (values <= upper)).astype(np.float64), reduce, sample_weight)
