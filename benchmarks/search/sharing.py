"""Measure full scans by the number of queries at a time, for every instruction set that the machine has.

    python benchmarks/sharing.py            Friedman's data, LightGBM
    python benchmarks/sharing.py --write    and put the table into benchmarks/results/performance.md

Few queries compare their leaf codes with those of the training rows one by one, many share bitmaps of their leaves; the
star is where that begins. Times are processor times of one thread per query, the best of several rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.datasets import make_friedman1

from benchmarks.common import document
from benchmarks.common.arguments import parser_of
from benchmarks.common.paths import ROOT
from benchmarks.common.threads import use_one_thread
from benchmarks.common.timing import Task, best, in_turn
from benchmarks.search.indexes import trained_reader
from ibug import LeafIndex
from ibug.neighbors import instruction_sets, least_queries

DOCUMENT = ROOT / "benchmarks" / "results" / "performance.md"
ROUNDS = 9
SIZES = (8, 16, 32, 40, 64, 128, 512)
K = 100


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    use_one_thread()
    text = table(options.rows, options.trees)
    print(text)
    if options.write:
        document.write(DOCUMENT, "sharing.py", text)


def table(n_rows: int, n_trees: int) -> str:
    """Return the times per query by instruction set and number of queries."""
    X, y = make_friedman1(n_rows + SIZES[-1], noise=1.0, random_state=0)
    reader = trained_reader(X[:n_rows], y[:n_rows], n_trees)
    index = LeafIndex.build(reader.read_leaves(X[:n_rows]))
    queries = reader.read_leaves(X[n_rows:])
    lines = [
        f"LightGBM, {n_rows:,} rows, {n_trees} trees, k = {K}: time per query by the number of queries",
        f"  {'':<10}" + "".join(f"{size:>12}" for size in SIZES),
    ]
    for name in instruction_sets():
        tasks = {
            str(size): Task(scan(index, queries[:size], name), size * calls(size), least_time=0.0) for size in SIZES
        }
        times = best(in_turn(tasks, ROUNDS, alternate=True))
        begins = next((size for size in SIZES if size >= least_queries(name)), None)
        cells = (f"{'*' if size == begins else ''}{times[str(size)] * 1e6:.1f} us" for size in SIZES)
        lines.append(f"  {name:<10}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def calls(size: int) -> int:
    """Return how many calls of this size make about as many queries as one call of the largest size."""
    return round(SIZES[-1] / size)


def scan(index: LeafIndex, queries: NDArray[Any], instruction_set: str) -> Callable[[], None]:
    """Return a task that searches for these queries in one call, as often as `calls` says."""
    k = min(K, index.n_rows)

    def run() -> None:
        for _ in range(calls(len(queries))):
            index.query(queries, k, instruction_set=instruction_set)

    return run
