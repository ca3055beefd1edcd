"""The negative log likelihood."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_distribution, as_targets, reduced


def nll(y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    """Return the negative log likelihood; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    return reduced(-as_distribution(distribution, len(values)).logpdf(values), reduce, sample_weight)
