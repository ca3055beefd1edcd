"""The mean width of intervals."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_interval, as_targets, reduced


def mean_width(
    y: ArrayLike,
    distribution: Any,
    level: float = 0.9,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the width of the central intervals of a level, in the unit of y; at equal coverage, less is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values; only their number counts.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows.
    level
        The nominal coverage of the interval; not used for intervals that are given as an array.
    reduce : {"mean", None}
        The mean, or the width of each row's interval.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    lower, upper = as_interval(distribution, len(as_targets(y)), level)
    return reduced(upper - lower, reduce, sample_weight)
