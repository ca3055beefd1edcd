"""Which rows of an unlabelled pool to label: those whose labels would help most with uncertain rows."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import _num_samples, check_is_fitted

from ibug._typing import Floats, Integers
from ibug._validation import as_rows, check_at_least_one
from ibug.exceptions import InvalidInputError
from ibug.rule import one_target

# A label says something about the rows that are nearest to it.
_NEIGHBORS = 100


class LabellingRank(NamedTuple):
    """Rows of a pool, the most helpful first."""

    rows: Integers  # (n_chosen,) their numbers in the pool
    gain: Floats  # (n_chosen,) the spread that comes to have a nearer label, in units of the target


def rank_for_labelling(estimator: Any, X_pool: Any, n_rows: int | None = None) -> LabellingRank:
    """Choose one row after another, so that uncertain rows get a labelled row with many leaves in common.

    With the labelled rows S, row j has the affinity c_j(S) with the nearest of them, as a share of the trees. The next
    row is the one that raises Σ_j σ_j c_j most. So it is near many uncertain rows that no label is near yet; of twins
    only one is chosen.

    Parameters
    ----------
    estimator : IBUGRegressor
        A fitted regressor of one target; its training rows are the labelled ones.
    X_pool : array-like or data frame of shape (n_pool, n_features)
        The unlabelled rows.
    n_rows : int, default=None
        The number of rows to choose; ``None``: all.
    """
    check_is_fitted(estimator)
    one_target(estimator.rule_, "rank_for_labelling")
    spread, X_pool = np.sqrt(estimator.predict_var(X_pool)), as_rows(X_pool)
    source, n_jobs, verbose = estimator.source_, estimator.n_jobs, bool(estimator.verbose)
    n_pool = _num_samples(X_pool)
    n_chosen = n_pool if n_rows is None else check_at_least_one(n_rows, "n_rows")
    if n_chosen > n_pool:
        raise InvalidInputError(f"n_rows must be at most the {n_pool} rows of the pool; got {n_rows}.")
    index = source.leaves.index_of(X_pool, n_jobs=n_jobs, title="indexing the pool", verbose=verbose)
    k = min(_NEIGHBORS, n_pool)
    near, covered = [], []
    for _, leaves, _ in source.leaves.chunks(X_pool, k, n_jobs=n_jobs, title="comparing the pool", verbose=verbose):
        near.append(index.query(leaves, k, n_jobs=n_jobs))
        covered.append(source.index.query(leaves, 1, n_jobs=n_jobs)[0][:, 0])
    affinities, rows = (np.concatenate(parts) for parts in zip(*near, strict=True))
    order, gain = greedy(affinities / index.n_trees, rows, spread, np.concatenate(covered) / index.n_trees, n_chosen)
    return LabellingRank(order, gain)


def greedy(shares: Floats, rows: Integers, spread: Floats, covered: Floats, n_chosen: int) -> tuple[Integers, Floats]:
    """Choose rows one after another, each the one of the largest gain; of equal gains the widest, then the first.

    Shapes: shares, rows (n_pool, k); spread, covered (n_pool,).
    """
    # Gains never grow as more rows are chosen. So one that was computed earlier is a bound, and only the row with the
    # largest bound is looked at again.
    n, k = rows.shape
    helped = csr_matrix((shares.ravel(), (rows.ravel(), np.repeat(np.arange(n), k))), shape=(n, n))
    covered = covered.copy()

    def helped_by(i: int) -> tuple[Integers, Floats]:
        here = slice(helped.indptr[i], helped.indptr[i + 1])
        return helped.indices[here], helped.data[here]

    def gain_of(i: int) -> float:
        others, own = helped_by(i)
        return float(np.maximum(own - covered[others], 0.0) @ spread[others])

    heap = [(-gain_of(i), -spread[i], i, 0) for i in range(n)]
    heapq.heapify(heap)
    order, gains = np.empty(n_chosen, np.int64), np.empty(n_chosen)
    for step in range(n_chosen):
        while heap[0][3] < step and heap[0][0] < 0:
            _, negative_spread, i, _ = heap[0]
            heapq.heapreplace(heap, (-gain_of(i), negative_spread, i, step))
        gain, _, i, _ = heapq.heappop(heap)
        order[step], gains[step] = i, -gain
        others, own = helped_by(i)
        covered[others] = np.maximum(covered[others], own)
    return order, gains
