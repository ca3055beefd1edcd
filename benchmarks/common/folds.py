"""The folds of a dataset: the same for every benchmark and environment, so that results pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

Rows = NDArray[np.intp]

SEED = 1


def fold_of(n_rows: int, number: int, n_folds: int) -> tuple[Rows, Rows]:
    """Return the training rows and the test rows of one of `n_folds` folds."""
    return list(KFold(n_folds, shuffle=True, random_state=SEED).split(np.empty(n_rows)))[number]
