"""How often values fall into the central interval of each level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._pit import pit


def calibration_curve(y: ArrayLike, distribution: Any, *, n_levels: int = 100) -> tuple[Floats, Floats]:
    """Return nominal and observed coverage of central intervals, (n_levels,) each: equal if calibrated.

    A value is inside the central interval of level p just where its probability integral transform u has
    ``|2u - 1| <= p``, which works for any distribution.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    n_levels
        Levels, evenly spaced from 0 to 1.
    """
    if isinstance(n_levels, bool) or not isinstance(n_levels, (int, np.integer)) or n_levels < 2:
        raise InvalidInputError(f"n_levels must be an integer of at least 2; got {n_levels!r}.")
    needed = np.sort(np.abs(2.0 * pit(y, distribution) - 1.0))  # the level that each value needs to be inside
    expected = np.linspace(0.0, 1.0, n_levels)
    return expected, np.searchsorted(needed, expected, side="right") / len(needed)
