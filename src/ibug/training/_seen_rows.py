"""Whether rows that should be new are training rows: found by a hash of each row and its target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Rows
from ibug.leaves import is_pandas

Hashes = NDArray[np.uint64]

# This many new rows are looked up: enough to tell a tenth of them from chance.
_LOOKED_UP = 1000
# Training rows are hashed in chunks of about this many numbers: 32 MB.
_NUMBERS_PER_CHUNK = 2**22
# The share of equal rows that is suspicious, beyond that of training rows which have a twin among themselves.
SUSPICIOUS_SHARE = 0.1


def seen_share(train: Rows, new: Rows) -> float:
    """Return the share of the new rows that are training rows, target and all; 0 where chance may explain it.

    Data may well have equal rows. So the share counts only if it exceeds that of training rows which have a twin among
    the training rows by 10 percentage points, and by three standard errors. Of many new rows a thousand are looked up.
    Rows of a kind that cannot be compared count as new.

    Parameters
    ----------
    train, new : tuple of X and y
        The training rows, and the rows that should be new.
    """
    (X, y), (X_new, y_new) = train, new
    if y.ndim > 1:  # the first of several targets tells as much
        y, y_new = y[:, 0], y_new[:, 0]
    chosen = np.unique(np.linspace(0, len(y_new) - 1, _LOOKED_UP).astype(np.intp))
    targets = y_new[chosen]
    if X_new is X and np.array_equal(y, y_new):
        return 1.0
    known = np.isin(targets, y)  # most new targets are others, and rows need not be hashed
    if known.mean() <= SUSPICIOUS_SHARE:
        return 0.0
    wanted = row_hashes(_safe_indexing(X_new, chosen), targets)
    candidates = np.flatnonzero(np.isin(y, targets[known]))
    hashes = _in_chunks(X, y, candidates)
    if wanted is None or hashes is None:
        return 0.0
    share = float(np.isin(wanted, hashes).mean())
    if share <= SUSPICIOUS_SHARE:
        return 0.0
    usual = _share_of_twins(X, y)
    noise = 3 * np.sqrt(usual * (1 - usual) / len(chosen))
    return share if share > usual + SUSPICIOUS_SHARE + noise else 0.0


def _share_of_twins(X: Any, y: Floats) -> float:
    """Return the share of the rows that are equal to another one."""
    hashes = _in_chunks(X, y, np.arange(len(y)))
    assert hashes is not None, "some of these rows were hashed before"
    _, times = np.unique(hashes, return_counts=True)
    return float(times[times > 1].sum() / len(hashes))


def _in_chunks(X: Any, y: Floats, rows: NDArray[np.intp]) -> Hashes | None:
    """Return the hashes of some rows, (n_rows,); None for rows of a kind that cannot be hashed."""
    parts: list[Hashes] = []
    size = max(1, _NUMBERS_PER_CHUNK // max(1, X.shape[1]))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        hashes = row_hashes(_safe_indexing(X, some), y[some])
        if hashes is None:
            return None
        parts.append(hashes)
    return np.concatenate(parts)


def row_hashes(X: Any, y: Floats) -> Hashes | None:
    """Return one number per row, the same for rows with the same values and target, (n_rows,).

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The rows. Numbers are compared as such, whatever their type.
    y : ndarray of shape (n_rows,)
        Their targets.

    Returns
    -------
    ndarray of uint64, or None
        ``None`` for rows of a kind that cannot be hashed.
    """
    multipliers = np.random.default_rng(0).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = multipliers[-1] * _of_numbers(y)
    try:
        for place, column in enumerate(_columns(X)):
            total += multipliers[place] * column
    except (TypeError, ValueError):  # of values that are no numbers and cannot be hashed, lists say
        return None
    return _mixed(total)


def _columns(X: Any) -> Iterator[Hashes]:
    """Yield the hashes of the values of one column after another, (n_rows,) each."""
    if is_pandas(X):
        from pandas.util import hash_array

        for place, dtype in enumerate(X.dtypes.tolist()):
            column = X.iloc[:, place]
            if getattr(dtype, "kind", "O") in "biuf":
                yield _of_numbers(column.to_numpy(np.float64, na_value=np.nan))
            else:  # categories, texts, dates
                yield hash_array(column.astype(object).to_numpy(), categorize=True)
    elif hasattr(X, "hash_rows"):  # polars
        yield X.hash_rows(seed=0).to_numpy()
    elif issparse(X):
        yield _of_numbers(X @ np.random.default_rng(1).random(X.shape[1]))
    else:
        values = np.asarray(X, np.float64)
        for place in range(values.shape[1]):
            yield _of_numbers(values[:, place])


def _of_numbers(values: Any) -> Hashes:
    numbers = np.ascontiguousarray(values, np.float64) + 0.0  # no negative zero
    numbers[np.isnan(numbers)] = np.nan  # which has one form then
    return _mixed(numbers.view(np.uint64))


def _mixed(bits: Hashes) -> Hashes:
    """Spread differences over all bits, as SplitMix64 does."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
