"""Sharpness: how narrow the distributions are, whatever happens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_distribution, as_targets, reduced


def sharpness(
    y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None
) -> Any:
    """Return the root of the mean predicted variance, in the unit of y; among calibrated distributions less is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values; only their number counts.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reduce : {"mean", None}
        The root of the mean, or the variance of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    mean = reduced(as_distribution(distribution, len(as_targets(y))).var(), reduce, sample_weight)
    return mean if reduce is None else float(np.sqrt(mean))
