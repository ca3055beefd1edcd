"""Numbers that are moved to values that occur."""

from __future__ import annotations

import numpy as np

from ibug._typing import Floats


def nearest_of(values: Floats, places: Floats) -> Floats:
    """Return the nearest value for each place; the lower one of two that are as near.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        The values, ascending; with none of them, places stay where they are.
    places : ndarray
        Any numbers.
    """
    if len(values) == 0:
        return places
    between = values[:-1] / 2 + values[1:] / 2
    return np.asarray(values[np.searchsorted(between, places)])
