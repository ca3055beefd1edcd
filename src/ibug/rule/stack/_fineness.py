"""How fine the target is: the distance of its values, and the values themselves where there are few."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats

#: Targets that take more values than this count as continuous.
MOST_VALUES = 4096


def resolution(targets: ArrayLike) -> float:
    """Return the median distance from a row's target to the nearest different one; 0 if all are the same.

    For whole numbers it is 1 even if a few are far apart; for a continuous target it is about as small as the distances
    of neighbouring values, too small to matter.

    Shapes: targets (n,).
    """
    values, counts = np.unique(np.asarray(targets, np.float64), return_counts=True)
    if len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    nearest = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    order = np.argsort(nearest)
    middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)
    return float(nearest[order][middle])


def values_taken(y: Floats, others: Floats) -> Floats:
    """Return the values of a target that takes few, ascending: grades, counts, readings of a scale. None otherwise.

    A target takes few values if at least half of the rows share theirs with another row. Rows with the most frequent
    value are left out of this: amounts of which many are zero are continuous all the same.

    Shapes: y (n,).
    """
    counts = np.sort(np.unique(y, return_counts=True)[1])[:-1]
    if len(counts) == 0 or 2 * counts[counts > 1].sum() < counts.sum():
        return np.empty(0)
    values = np.unique(np.append(y, others))
    return values if len(values) <= MOST_VALUES else np.empty(0)
