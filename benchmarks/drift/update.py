"""What it costs to add rows to an index."""

from __future__ import annotations

from time import process_time

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray

from benchmarks.common.bars import Bar
from ibug import LeafIndex

N_TREES, REPEATS, K = 300, 5, 31


def leaves(n_rows: int) -> NDArray[np.int32]:
    """Return the leaves of rows in a model of LightGBM."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, 6))
    y = 4 * X[:, 0] + np.sin(6 * X[:, 1]) + 0.3 * rng.normal(size=n_rows)
    some = slice(min(n_rows, 20_000))
    model = LGBMRegressor(n_estimators=N_TREES, verbose=-1, n_jobs=1, random_state=0).fit(X[some], y[some])
    return np.asarray(model.predict(X, pred_leaf=True), np.int32)


def measured(n_rows: int) -> str:
    """Return the times of an update by 1 %, of a build and of searches, with bars."""
    more = n_rows // 100
    found = leaves(n_rows + more + 500)
    queries = found[n_rows + more :]
    old, every = found[:n_rows], found[: n_rows + more]
    base = LeafIndex.build(old)
    builds, updates = [], []
    for _ in range(REPEATS):
        start = process_time()
        whole = LeafIndex.build(every)
        builds.append(process_time() - start)
        start = process_time()
        grown = base.extended([every[n_rows:]], more)
        updates.append(process_time() - start)
    same = all(np.array_equal(*pair) for pair in zip(grown.query(queries, K), whole.query(queries, K), strict=True))
    build, update = min(builds), min(updates)
    many = base
    for _ in range(20):  # a fifth more rows, in small parts
        many = many.extended([every[n_rows:]], more)
    slower = [_search(index, queries) for index in (whole, grown, many)]
    lines = [
        f"{n_rows:,} rows, {N_TREES} trees; the fastest of {REPEATS}, in seconds of one processor",
        f"  build with all rows      {build:8.3f} s",
        f"  update by 1 % of rows    {update:8.3f} s  {update / build:6.1%} of a build",
        f"  search of {len(queries)} rows       {slower[0]:8.3f} s after a build, {slower[1]:.3f} s after an update, "
        f"{slower[2]:.3f} s after 20",
        "",
        Bar("an update finds what a build finds, bit for bit", "yes" if same else "no", same).line(),
        Bar("an update by 1 % costs 3 % of a build at most", f"{update / build:.1%}", update / build <= 0.03).line(),
        Bar(
            "after 20 updates searches take at most twice as long",
            f"{slower[2] / slower[0]:.2f}",
            slower[2] <= 2 * slower[0],
        ).line(),
    ]
    return "\n".join(lines)


def _search(index: LeafIndex, queries: NDArray[np.int32]) -> float:
    times = []
    for _ in range(REPEATS):
        start = process_time()
        index.query(queries, K)
        times.append(process_time() - start)
    return min(times)
