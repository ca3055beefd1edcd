"""How neighbours are searched: the number of cells that a row visits, chosen so that distributions lose nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._options import Options
from ibug._typing import Floats, Rows
from ibug.neighbors import JoinedIndex, LeafIndex, LocalSource, SearchPlan
from ibug.rule import Rule
from ibug.training._diagnostics import evenly_spaced

# The numbers of cells to choose from.
_CELLS = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
# About as many rows as these are searched among all training rows, to compare.
_ROWS = 1000
# The number of neighbours whose recall is measured: as many as the widest expert of a stack takes.
_NEIGHBORS = 63
# The least share of them that is found, on average and for 99 of 100 rows.
_RECALL, _LEAST_RECALL = 0.97, 0.7
# The share by which the mean CRPS may be higher, and with its standard error.
_LOSS, _LOSS_AND_ERROR = 1e-3, 1.5e-3
# Rows in cells are compared code by code, all training rows by bitmaps that many queries share, which is about this
# many times as fast; and a plan should take half of the time at most.
_COST, _WORTH = 4.0, 0.5


def with_planned_search(source: LocalSource, X: Any, options: Options) -> LocalSource:
    """Return the source with the least number of cells that finds nearly all neighbours of some of the rows X.

    X has rows to predict, or training rows, each of which is then its own nearest.
    """
    index, wanted = source.index, options.search
    if isinstance(index, JoinedIndex):
        return source
    if index.n_cells == 0 or wanted == "exact":
        few = "" if wanted == "exact" else f"{index.n_rows} rows are too few for cells to pay"
        return source.searched(SearchPlan(reason=few))
    leaves = np.concatenate([*source.leaves_of(_some_of(X))])
    k = min(_NEIGHBORS, index.n_rows)
    exact, _ = index.query(leaves, k, n_jobs=options.n_jobs)
    if wanted != "auto":
        return source.searched(_measured(index, leaves, min(int(wanted), index.n_cells), exact, options))
    for n_cells in (*(each for each in _CELLS if each < index.n_cells), index.n_cells):
        plan = _measured(index, leaves, n_cells, exact, options)
        if not _pays(plan):
            break
        if plan.recall >= _RECALL and plan.least_recall >= _LEAST_RECALL:
            return source.searched(plan)
    return source.searched(SearchPlan(reason=f"too large a part of {index.n_cells} cells would have to be visited"))


def with_checked_search(source: LocalSource, rule: Rule, rows: Rows, options: Options) -> LocalSource:
    """Return the source with more cells to visit, if the rule's CRPS on some of the rows asks for them."""
    plan, index = source.search, source.index
    if plan.n_cells is None or isinstance(index, JoinedIndex):
        return source
    X, y = (_some_of(each) for each in rows)
    exact = _crps(source.searched(SearchPlan()), rule, X, y, options)
    unit = max(float(exact.mean()), np.finfo(float).tiny)
    while True:
        losses = (_crps(source.searched(plan), rule, X, y, options) - exact) / unit
        loss, error = float(losses.mean()), float(losses.std() / np.sqrt(len(losses)))
        plan = replace(plan, loss=loss)
        larger = [each for each in _CELLS if each > (plan.n_cells or 0) and each < index.n_cells]
        fits = loss <= _LOSS and loss + error <= _LOSS_AND_ERROR
        if fits or options.search != "auto" or not larger:
            return source.searched(plan)
        leaves = np.concatenate([*source.leaves_of(X)])
        nearest, _ = index.query(leaves, plan.k, n_jobs=options.n_jobs)
        plan = _measured(index, leaves, larger[0], nearest, options)
        if not _pays(plan):
            reason = f"fewer cells change the CRPS by {loss:+.2%} ± {error:.2%}, and more do not pay"
            return source.searched(SearchPlan(reason=reason))


def _some_of(rows: Any) -> Any:
    return _safe_indexing(rows, evenly_spaced(_num_samples(rows), _ROWS))


def _pays(plan: SearchPlan) -> bool:
    return _COST * plan.visited <= _WORTH


def _measured(
    index: LeafIndex, leaves: NDArray[np.int32], n_cells: int, exact: NDArray[Any], options: Options
) -> SearchPlan:
    """Return the plan to visit some cells, with its recall: those that tie with the k-th nearest are as good.

    Shapes: exact (n_rows, k).
    """
    k = exact.shape[1]
    affinities, _ = index.query(leaves, k, n_cells=n_cells, n_jobs=options.n_jobs)
    recall = np.mean(affinities >= exact[:, -1:], axis=1)
    visited = float(index.visited(leaves[:: max(1, len(leaves) // 100)], k, n_cells).mean())
    least = float(np.quantile(recall, 0.01))
    return SearchPlan(n_cells, index.n_cells, visited, k, float(recall.mean()), least, n_measured=len(leaves))


def _crps(source: LocalSource, rule: Rule, X: Any, y: Floats, options: Options) -> Floats:
    """Return the CRPS of each row by a rule without conformal calibration, of several targets in units of each."""
    batches = source.batches(X, rule.needs, n_jobs=options.n_jobs)
    scores = np.concatenate([rule.distribution(batch).crps(y[batch.where]) for batch in batches])
    unit = np.maximum(np.abs(y - np.median(y, axis=0)).mean(axis=0), np.finfo(float).tiny)
    return np.asarray((scores / unit).reshape(len(y), -1).mean(axis=1))
