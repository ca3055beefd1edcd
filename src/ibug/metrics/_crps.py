"""The continuous ranked probability score."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_distribution, as_targets, reduced


def crps(y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    r"""Return the continuous ranked probability score :math:`\int (F(x) - 1[x \ge y])^2 dx`; lower is better.

    It is in the unit of y, and for a distribution without spread it is the absolute error (paper, section B).

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

    Examples
    --------
    >>> from ibug.metrics import crps
    >>> round(crps([1.0, 2.0], ([1.0, 1.5], [0.5, 0.5])), 4)
    0.209
    """
    values = as_targets(y)
    return reduced(as_distribution(distribution, len(values)).crps(values), reduce, sample_weight)
