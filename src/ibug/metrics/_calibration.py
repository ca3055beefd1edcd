"""Calibration: how often observed values are where their distributions promise them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ibug._typing import Floats
from ibug._validation import check_weights
from ibug.exceptions import InvalidInputError
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


def calibration_curve(
    y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return nominal and observed coverage of central intervals, (n_levels,) each: equal if calibrated.

    A value is inside the central interval of level p just where its probability integral transform u has
    ``|2u - 1| <= p``, which works for any distribution. Where the distribution function jumps at the value, that part
    of the jump counts for which this holds. So calibrated distributions with jumps are on the diagonal, too, though
    their intervals hold more than they promise, as `coverage` shows: the ends of an interval belong to it.

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


def mace(y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean absolute calibration error: how far observed and nominal coverage are apart, from 0 to 0.5.

    Parameters
    ----------
    y, distribution, n_levels, sample_weight
        As in `calibration_curve`.
    """
    expected, observed = calibration_curve(y, distribution, n_levels=n_levels, sample_weight=sample_weight)
    return float(np.mean(np.abs(expected - observed)))


def rms_calibration_error(
    y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None
) -> float:
    """Return the root of the mean squared difference of observed and nominal coverage.

    Parameters
    ----------
    y, distribution, n_levels, sample_weight
        As in `calibration_curve`.
    """
    expected, observed = calibration_curve(y, distribution, n_levels=n_levels, sample_weight=sample_weight)
    return float(np.sqrt(np.mean(np.square(expected - observed))))


def miscalibration_area(
    y: ArrayLike, distribution: Any, *, n_levels: int = 100, sample_weight: ArrayLike | None = None
) -> float:
    """Return the area between the curve of observed over nominal coverage and the diagonal, from 0 to 0.5.

    The curve is piecewise linear; where a piece crosses the diagonal both triangles count.

    Parameters
    ----------
    y, distribution, n_levels, sample_weight
        As in `calibration_curve`.
    """
    expected, observed = calibration_curve(y, distribution, n_levels=n_levels, sample_weight=sample_weight)
    gap = observed - expected
    left, right = np.abs(gap[:-1]), np.abs(gap[1:])
    width = np.diff(expected)
    crosses = gap[:-1] * gap[1:] < 0
    same_side = width * (left + right) / 2
    # Two triangles over the same base, which the crossing divides in the ratio of their heights.
    with_crossing = width * (np.square(left) + np.square(right)) / (2 * np.where(crosses, left + right, 1.0))
    return float(np.sum(np.where(crosses, with_crossing, same_side)))
