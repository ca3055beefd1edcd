"""How much better than knowing only how the target is distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._crps import crps
from ibug.metrics._inputs import as_targets, reduced


def crps_skill(
    y: ArrayLike, distribution: Any, *, reference: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return 1 − CRPS / CRPS of the unconditional distribution: 1 is perfect, 0 is no better than knowing no features.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reference : array-like of shape (m,)
        Targets whose empirical distribution is the one to beat: the training targets. ``None`` takes y itself, which
        makes the reference a little too good.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    own = float(crps(values, distribution, sample_weight=sample_weight))
    guess = _empirical_crps(values, as_targets(values if reference is None else reference))
    unconditional = float(reduced(guess, "mean", sample_weight))
    if unconditional == 0:
        raise InvalidInputError("All targets are equal, so there is no skill to measure.")
    return 1.0 - own / unconditional


def _empirical_crps(y: Floats, sample: Floats) -> Floats:
    """Return the CRPS of one sample's empirical distribution at each y: mean |x − y| − ½ mean |x − x'|."""
    x = np.sort(sample)
    m = len(x)
    sums = np.concatenate([[0.0], np.cumsum(x)])
    below = np.searchsorted(x, y)
    to_sample = ((2 * below - m) * y + sums[-1] - 2 * sums[below]) / m
    within = 2.0 * np.sum((2 * np.arange(1, m + 1) - m - 1) * x) / m**2
    return np.asarray(to_sample - within / 2)
