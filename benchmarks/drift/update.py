"""What it costs to add rows to an index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray

from benchmarks.common.bars import Bar
from ibug import LeafIndex

N_TREES, N_UPDATES, REPEATS, K = 300, 60, 5, 31
N_CELLS = 48  # that a query visits


def leaves(n_rows: int) -> NDArray[np.int32]:
    """Return the leaves of rows in a model of LightGBM."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, 6))
    y = 4 * X[:, 0] + np.sin(6 * X[:, 1]) + 0.3 * rng.normal(size=n_rows)
    some = slice(min(n_rows, 20_000))
    model = LGBMRegressor(n_estimators=N_TREES, verbose=-1, n_jobs=1, random_state=0).fit(X[some], y[some])
    return np.asarray(model.predict(X, pred_leaf=True), np.int32)


def measured(n_rows: int) -> str:
    """Return the times of updates by 1 %, of a build and of searches in cells between them, with bars."""
    more = n_rows // 100
    found = leaves(n_rows + N_UPDATES * more + 500)
    queries = found[n_rows + N_UPDATES * more :]
    builds = [_time(LeafIndex.build, found[:n_rows]) for _ in range(REPEATS)]
    build, grown = min(builds), LeafIndex.build(found[:n_rows])
    costs, ratios, recalls, same = [], [], [], True
    for stop in range(n_rows + more, n_rows + N_UPDATES * more + 1, more):
        part = found[stop - more : stop]
        costs.append(min(_time(grown.extended, [part], more) for _ in range(REPEATS)) / build)
        grown = grown.extended([part], more)
        whole = LeafIndex.build(found[:stop])
        exact = whole.query(queries, K)
        same &= all(np.array_equal(*pair) for pair in zip(grown.query(queries, K), exact, strict=True))
        recalls.append([_recall(index, queries, exact[0]) for index in (grown, whole)])
        ratios.append(_slower(grown, whole, queries))
    ours, theirs = np.mean(recalls, axis=0)
    lines = [
        f"{n_rows:,} rows, {N_TREES} trees, {N_UPDATES} updates by 1 %; the fastest of {REPEATS}, on one processor",
        f"  build                       {build:8.3f} s",
        f"  the first update            {costs[0]:8.1%} of a build",
        f"  an update, on average       {np.mean(costs):8.1%} of a build, {max(costs):.1%} at most",
        f"  search of {len(queries)} rows          {np.mean(ratios):8.2f} of the time after a build on average, "
        f"{ratios[-1]:.2f} after the last update; {N_CELLS} cells, k = {K}",
        f"  share of the nearest found  {ours:8.1%}; {theirs:.1%} after a build",
        "",
        Bar("updates find what a build finds among all rows, bit for bit", "yes" if same else "no", same).line(),
        Bar("an update by 1 % costs 5 % of a build at most", f"{np.mean(costs):.1%}", np.mean(costs) < 0.05).line(),
        Bar("a percent less of the nearest is found at most", f"{theirs - ours:.1%}", theirs - ours < 0.01).line(),
        Bar("searches take a half longer at most, on average", f"{np.mean(ratios):.2f}", np.mean(ratios) < 1.5).line(),
    ]
    return "\n".join(lines)


def _time(function: Callable[..., Any], *arguments: Any) -> float:
    start = process_time()
    function(*arguments)
    return process_time() - start


def _slower(index: LeafIndex, other: LeafIndex, queries: NDArray[np.int32]) -> float:
    """Return the time of a search as a share of that of another index, asked in turn."""
    pairs = [[_time(partial(one.query, queries, K, n_cells=N_CELLS)) for one in (index, other)] for _ in range(REPEATS)]
    return float(np.divide(*np.min(pairs, axis=0)))


def _recall(index: LeafIndex, queries: NDArray[np.int32], exact: NDArray[np.int32]) -> float:
    """Return the share of the nearest that is found in cells. Shapes: exact (n_queries, k), affinities."""
    return float(np.mean(index.query(queries, K, n_cells=N_CELLS)[0] >= exact[:, -1:]))
