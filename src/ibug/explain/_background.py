"""The rows that a row is compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._inputs import as_rows, check_at_least_one
from ibug._typing import Integers
from ibug.exceptions import InvalidInputError

# With fewer rows of its own, X says little of what is usual.
_LEAST_OWN_ROWS = 20


class Background(NamedTuple):
    """Rows to compare with, and which of them each row is compared with."""

    rows: Any  # in the form of X
    chosen: Integers  # (n_rows, n_background)


def background_of(
    estimator: Any, X: Any, background: Any, choose: str, n_background: int, random_state: int
) -> Background:
    """Choose the rows that each row of X is compared with."""
    if choose not in ("random", "nearest"):
        raise InvalidInputError(f'choose must be "random" or "nearest"; got {choose!r}.')
    check_at_least_one(n_background, "n_background")
    if background is None:
        if choose == "nearest":
            raise InvalidInputError('choose="nearest" compares with training rows: pass background=X_train.')
        if _num_samples(X) < _LEAST_OWN_ROWS:
            raise InvalidInputError(
                f"A width is compared with that of other rows, and {_num_samples(X)} rows are too few: pass "
                f"background=X_train. The estimator does not keep the training rows. From {_LEAST_OWN_ROWS} rows on X "
                "can be its own background."
            )
        background = X
    rows = as_rows(background)
    if rows.shape[1] != X.shape[1]:
        raise InvalidInputError(f"background must have the {X.shape[1]} columns of X; it has {rows.shape[1]}.")
    picked = _nearest if choose == "nearest" else _at_random
    return picked(estimator, X, rows, n_background, random_state)


def _at_random(estimator: Any, X: Any, rows: Any, n_background: int, random_state: int) -> Background:
    n = _num_samples(rows)
    chosen = np.sort(np.random.default_rng(random_state).choice(n, min(n_background, n), replace=False))
    every = np.broadcast_to(np.arange(len(chosen)), (_num_samples(X), len(chosen)))
    return Background(_safe_indexing(rows, chosen), every)


def _nearest(estimator: Any, X: Any, rows: Any, n_background: int, random_state: int) -> Background:
    if not hasattr(estimator, "kneighbors"):
        raise InvalidInputError(f'choose="nearest" is for neighbours, and {type(estimator).__name__} has none.')
    n_train = len(estimator.training_targets_)
    if _num_samples(rows) != n_train:
        raise InvalidInputError(
            f'With choose="nearest" the background must be the {n_train} training rows, in the order of fit; it has '
            f"{_num_samples(rows)}."
        )
    found = estimator.kneighbors(X, min(n_background, estimator.index_.n_rows))[1]
    occurring, places = np.unique(found, return_inverse=True)
    return Background(_safe_indexing(rows, occurring), places.reshape(found.shape))
