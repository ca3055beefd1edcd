"""Measure full scans by the number of queries at a time, for every instruction set that the machine has.

    python benchmarks/sharing.py            Friedman's data, LightGBM
    python benchmarks/sharing.py --write    and put the table into docs/performance.md

Few queries compare their leaf codes with those of the training rows one by one, many share bitmaps of their leaves; the
star is where that begins. Times are processor times of one thread per query, the best of several rounds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import marks
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from search import DOCUMENT, in_turn
from sklearn.datasets import make_friedman1
from speed_measure import without_bounds

from ibug import LeafIndex
from ibug.leaves import read_leaves_of
from ibug.neighbors import _kernel

SIZES = (24, 32, 64, 128, 192, 256, 512)
K = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    text = table(options.rows, options.trees)
    print(text)
    if options.write:
        marks.write(DOCUMENT, "sharing.py", text)


def table(n_rows: int, n_trees: int) -> str:
    """Return the times per query by instruction set and number of queries."""
    X, y = make_friedman1(n_rows + SIZES[-1], noise=1.0, random_state=0)
    model = LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1).fit(X[:n_rows], y[:n_rows])
    reader = read_leaves_of(model)
    reader.prepare(X[:n_rows])
    index = without_bounds(LeafIndex.build(reader.read_leaves(X[:n_rows])))
    queries = reader.read_leaves(X[n_rows:])
    lines = [
        f"LightGBM, {n_rows:,} rows, {n_trees} trees, k = {K}: time per query by the number of queries",
        f"  {'':<10}" + "".join(f"{size:>12}" for size in SIZES),
    ]
    for name in _kernel.instruction_sets():
        times = in_turn({str(size): (scan(index, queries[:size], name), size * calls(size)) for size in SIZES})
        begins = next((size for size in SIZES if size >= _kernel.least_queries(name)), None)
        cells = (f"{'*' if size == begins else ''}{times[str(size)] * 1e6:.1f} us" for size in SIZES)
        lines.append(f"  {name:<10}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def calls(size: int) -> int:
    """Return how many calls of so many queries are about as many queries as one of the most."""
    return round(SIZES[-1] / size)


def scan(index: LeafIndex, queries: NDArray[Any], instruction_set: str) -> Callable[[], None]:
    """Return a task that searches for these queries in one call, as often as `calls` says."""
    k = min(K, index.n_rows)

    def run() -> None:
        for _ in range(calls(len(queries))):
            index.query(queries, k, instruction_set=instruction_set)

    return run


if __name__ == "__main__":
    main()
