"""Rows to hold out: for validation, and for conformal calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from ibug._inputs import check_fraction
from ibug._options import Options
from ibug._typing import Rows
from ibug.exceptions import InvalidInputError

# From twice this number of rows on, they are divided between tuning and conformal calibration; below, a guarantee would
# say little.
_LEAST_CONFORMAL_ROWS = 100


def split(n_rows: int, fraction: Any, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide row numbers into those to train on and those to hold out, each ascending."""
    check_fraction(fraction)
    if n_rows < 3:
        raise InvalidInputError(
            f"Got n_samples={n_rows}: at least 3 rows are needed to train on some and to hold out others."
        )
    train, held_out = train_test_split(np.arange(n_rows), test_size=fraction, random_state=rng)
    return np.sort(train), np.sort(held_out)


def divide_rows(
    n_rows: int, options: Options, rng: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return the validation rows to tune on and those for conformal calibration; None where all rows serve both."""
    if options.conformal is None:
        return None
    tuned_on, held_out = halves(n_rows, rng)
    return (tuned_on, held_out) if len(tuned_on) < n_rows else None


def rows_for_conformal(n_rows: int) -> int:
    """Return the number of validation rows that conformal calibration gets: half of them from 200 on, else all."""
    return n_rows if n_rows < 2 * _LEAST_CONFORMAL_ROWS else n_rows - n_rows // 2


def halves(n_rows: int, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to tune on and those for conformal calibration; from 200 rows on, no row is in both."""
    if rows_for_conformal(n_rows) == n_rows:
        return np.arange(n_rows), np.arange(n_rows)
    half = rng.permutation(n_rows) < n_rows // 2
    return np.flatnonzero(half), np.flatnonzero(~half)


def divide(validation: Rows, rng: np.random.RandomState) -> tuple[Rows, Rows]:
    """Return the rows themselves of both `halves`."""
    X, y = validation
    first, second = halves(len(y), rng)
    return (_safe_indexing(X, first), y[first]), (_safe_indexing(X, second), y[second])
