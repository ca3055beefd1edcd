"""The check score, also called pinball loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.metrics._inputs import Reduce, as_targets, check_levels, quantile_blocks, reduced

PERCENTS = np.linspace(0.01, 0.99, 99)


def check_score(
    y: ArrayLike,
    distribution: Any,
    alpha: ArrayLike = PERCENTS,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the check score (pinball loss) of quantiles, averaged over their probabilities; lower is better.

    Over the 99 percents of the default this is the paper's check score, nearly half the CRPS.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, tuple (means, standard deviations), or array of shape (n, n_alpha)
        What ``predict_dist`` or ``predict_quantiles`` returned for the same rows.
    alpha : array-like of shape (n_alpha,)
        The probabilities of the quantiles.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    probabilities = check_levels(alpha, "alpha")
    scores = np.empty(len(values))
    for rows, quantiles in quantile_blocks(distribution, len(values), probabilities):
        excess = quantiles - values[rows, None]
        scores[rows] = np.mean(((excess >= 0) - probabilities) * excess, axis=1)
    return reduced(scores, reduce, sample_weight)
