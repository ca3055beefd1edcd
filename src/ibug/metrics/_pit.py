"""The probability integral transform."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.metrics._inputs import as_distribution, as_targets


def pit(y: ArrayLike, distribution: Any) -> Floats:
    """Return F(y) of each row, (n,): uniform between 0 and 1 where distributions are calibrated.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    """
    values = as_targets(y)
    return np.asarray(as_distribution(distribution, len(values)).cdf(values))
