"""A source that has more training rows than before, and may forget the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.neighbors._index import LeafIndex
from ibug.neighbors._joined import JoinedIndex
from ibug.neighbors._leaf_numbers import LeafNumbers
from ibug.neighbors._local import LocalSource
from ibug.neighbors._sampling import Sampling

# The largest number of errors of new rows that are kept, to compare those of later ones with.
_MOST_ERRORS = 1000


def updated(
    source: LocalSource,
    X: Any,
    y: Floats,
    sampling: Sampling,
    rng: np.random.RandomState,
    *,
    weights: Floats | None = None,
    keep: int | None = None,
    least: int = 1,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> LocalSource:
    """Return the source with newer rows behind its own, without the oldest if there are more than are to be kept.

    The model has not been trained on the new rows: where rows have residuals, theirs are target minus prediction.

    Shapes: weights (n_rows,).
    """
    for index in (source.index, source.residual_index, *source.own):
        _check_growable(index)
    n_old = len(source.targets)
    gone = 0 if keep is None else max(0, n_old + len(y) - keep)
    # As numbers of all rows, old and new, those that are in the index; ascending.
    old = np.arange(n_old) if source.rows is None else source.rows
    drawn = np.arange(len(y))
    if source.rows is not None:
        staying = drawn[max(0, gone - n_old) :]
        wanted = sampling.n_rows(n_old + len(y) - gone) - int(np.sum(old >= gone))
        drawn = np.sort(rng.choice(staying, min(max(wanted, 0), len(staying)), replace=False))
    rows = np.concatenate([old, n_old + drawn])
    n_left = int(np.sum(rows >= gone))
    if n_left < least:
        raise InvalidInputError(
            f"keep={keep} leaves {n_left} rows that can be neighbours, and {least} make up a distribution: keep more."
        )
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    index = _moved(source.index, source.leaves, X, drawn, int(np.sum(rows < gone)), **options)
    targets = np.concatenate([source.targets, y])[gone:]
    errors = y - np.asarray(source.leaves.reader.predict(X), np.float64)
    before = errors[:0] if source.new_errors is None else source.new_errors
    source = replace(source, new_errors=np.concatenate([before, errors])[-_MOST_ERRORS:])
    residuals, residual_index = source.residuals, source.residual_index
    if residuals is not None:
        residuals = np.concatenate([residuals, errors])
        # Rows with residuals of their own are forgotten as training rows are.
        first = gone if residual_index is None or keep is None else max(0, len(residuals) - keep)
        if residual_index is not None:
            residual_index = _moved(residual_index, source.leaves, X, np.arange(len(y)), first, **options)
        residuals = residuals[first:]
    sample = None if source.rows is None else rows[rows >= gone] - gone
    honest = replace(source.honest, values=residuals)
    if source.weights is not None:
        counts = np.concatenate([source.weights, np.ones(len(y)) if weights is None else weights])[gone:]
        source = replace(source, weights=counts)
    gone_rows = int(np.sum(rows < gone))
    own = tuple(
        _moved(one, leaves, X, drawn, gone_rows, **options)
        for one, leaves in zip(source.own, source.leaves.of_outputs() if source.own else (), strict=True)
    )
    return replace(
        source, index=index, rows=sample, targets=targets, honest=honest, residual_index=residual_index, own=own
    )


def _check_growable(index: LeafIndex | JoinedIndex | None) -> None:
    if isinstance(index, JoinedIndex):
        raise InvalidInputError(
            "The index is divided into shards, which rows cannot be added to: fit ibug.dask.IBUGRegressor on all rows."
        )
    if index is not None and index.is_mapped:
        raise InvalidInputError(
            "The index is mapped from a file, which other processes may share, and cannot take more rows: load the "
            "file with ibug.load(path, mmap=False)."
        )


def _moved(
    index: Any, leaves: LeafNumbers, X: Any, drawn: NDArray[np.intp], gone: int, *, n_jobs: int | None, verbose: bool
) -> LeafIndex:
    """Return the index with some rows of X behind its own, without the first `gone` of all."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    if gone >= index.n_rows:
        return leaves.index_of(X, drawn[gone - index.n_rows :], title="indexing new rows", **options)
    kept: LeafIndex = index.without_first(gone) if gone else index
    if not len(drawn):  # few new rows, of which a share can be neighbours
        return kept
    return kept.extended(_leaves(leaves, _safe_indexing(X, drawn), options), len(drawn))


def _leaves(leaves: LeafNumbers, X: Any, options: dict[str, Any]) -> Iterator[NDArray[np.int32]]:
    for chunk in leaves.chunks(X, title="indexing new rows", **options):
        yield chunk.leaves
