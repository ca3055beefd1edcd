"""The probability integral transform."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ibug._typing import Floats
from ibug.metrics._inputs import as_distribution, as_targets

_LEAST_JUMP = 1e-8  # less is what a continuous function rises from one number to the next


def pit(y: ArrayLike, distribution: Any, *, random_state: Any = 0) -> Floats:
    """Return F(y) of each row, (n,): uniform between 0 and 1 where distributions are calibrated.

    Where F jumps at y, as a stack does at the targets of neighbours, the result is drawn evenly from the jump, between
    P(Y < y) and P(Y ≤ y). So it is uniform for calibrated distributions with jumps, too (the *randomised* transform).

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    random_state : int, RandomState or None
        Draws from the jumps: with a number the same each time.
    """
    before, at = jump(y, distribution)
    rises = at > before
    if rises.any():
        share = check_random_state(random_state).random_sample(len(at))
        return np.where(rises, before + share * (at - before), at)
    return at


def jump(y: ArrayLike, distribution: Any) -> tuple[Floats, Floats]:
    """Return P(Y < y) and P(Y ≤ y), (n,) each: the same number where the distribution function has no jump.

    Shapes: y (n,).
    """
    values = as_targets(y)
    batch = as_distribution(distribution, len(values))
    at = np.asarray(batch.cdf(values))
    before = np.asarray(batch.cdf(np.nextafter(values, -np.inf)))
    return np.where(at - before > _LEAST_JUMP, before, at), at
