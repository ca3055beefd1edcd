"""The root mean squared error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_points, as_targets, reduced


def rmse(y: ArrayLike, prediction: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    """Return the root mean squared error of the point prediction; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    prediction : array-like of shape (n,), batched distribution, or tuple (means, standard deviations)
        What ``predict`` or ``predict_dist`` returned for the same rows; the mean of a distribution counts.
    reduce : {"mean", None}
        The root of the mean, or the squared error of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    mean = reduced(np.square(as_points(prediction, len(values)) - values), reduce, sample_weight)
    return mean if reduce is None else float(np.sqrt(mean))
