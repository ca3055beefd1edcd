"""How often values fall into the central interval of each level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._inputs import check_weights
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._pit import jump


def calibration_curve(
    y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return nominal and observed coverage of central intervals, (n_levels,) each: equal if calibrated.

    A value is inside the central interval of level p just where its probability integral transform u has
    ``|2u - 1| <= p``, which works for any distribution. Where the distribution function jumps at the value, that part
    of the jump counts for which this holds. So calibrated distributions with jumps are on the diagonal, too, though
    their intervals hold more than they promise, which `coverage` tells: the ends of an interval belong to it.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    n_levels
        Levels, evenly spaced from 0 to 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    if isinstance(n_levels, bool) or not isinstance(n_levels, (int, np.integer)) or n_levels < 2:
        raise InvalidInputError(f"n_levels must be an integer of at least 2; got {n_levels!r}.")
    before, at = jump(y, distribution)
    rises = at > before
    weights = np.ones(len(at)) if sample_weight is None else check_weights(sample_weight, len(at))
    level = np.abs(2.0 * at[~rises] - 1.0)  # that each value needs to be inside
    order = np.argsort(level)
    below = np.append(0.0, np.cumsum(weights[~rises][order]))
    expected = np.linspace(0.0, 1.0, n_levels)
    inside = below[np.searchsorted(level[order], expected, side="right")]
    inside = inside + _inside(before[rises], at[rises], weights[rises], expected)
    return expected, np.minimum(inside / weights.sum(), 1.0)


def _inside(before: Floats, at: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return how much of the jumps is inside the central interval of each level, added up, (n_levels,)."""
    low, high = (1.0 - levels) / 2, (1.0 + levels) / 2
    shares = [
        np.maximum(np.minimum(at, upper) - np.maximum(before, lower), 0.0) / (at - before)
        for lower, upper in zip(low, high, strict=True)
    ]
    return np.array([np.sum(weights * share) for share in shares])
