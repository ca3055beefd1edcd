"""Scores of intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug._validation import check_probabilities
from ibug.metrics._inputs import Reduce, as_interval, as_targets, quantile_blocks, reduced
from ibug.metrics._scores import PERCENTS


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


def interval_score(
    y: ArrayLike,
    distribution: Any,
    level: ArrayLike = PERCENTS,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    r"""Return the interval score, averaged over the levels; lower is better.

    Of the central interval [l, u] of level p it is :math:`u - l + \frac{2}{1 - p} \max(l - y, y - u, 0)`: its width,
    plus a penalty for a value outside (Gneiting and Raftery, 2007, Eq. 43). Over the 99 percents of the default it is
    the paper's interval score.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows; an array needs its single `level`.
    level : float or array-like
        The nominal coverage of the interval, or several.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    levels = np.atleast_1d(check_probabilities(level, "level"))
    scores = np.zeros(len(values))
    for rows, lower, upper in _ends(distribution, len(values), levels):
        within = values[rows]
        for j, p in enumerate(levels):
            outside = np.maximum(np.maximum(lower[:, j] - within, within - upper[:, j]), 0.0)
            scores[rows] += upper[:, j] - lower[:, j] + 2.0 / (1.0 - p) * outside
    return reduced(scores / len(levels), reduce, sample_weight)


def _ends(distribution: Any, n: int, levels: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield blocks of rows, and the lower and the upper ends of their intervals, (n_block, n_levels) each."""
    if not hasattr(distribution, "cdf"):
        lower, upper = as_interval(distribution, n, float(levels[0]))
        shape = n, len(levels)
        yield slice(0, n), np.broadcast_to(lower[:, None], shape), np.broadcast_to(upper[:, None], shape)
        return
    # By quantiles: the guaranteed intervals of conformal calibration are infinite where held-out rows were few.
    alpha = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
    for rows, quantiles in quantile_blocks(distribution, n, alpha):
        yield rows, quantiles[:, : len(levels)], quantiles[:, len(levels) :]
