"""Measure the exact search that skips rows against the full scan.

    python benchmarks/search.py              real datasets of the folder that IBUG_DATA names, some minutes
    python benchmarks/search.py --growth     10,000 to 1,000,000 rows of made data with five features
    python benchmarks/search.py --growth --grown facebook    the same of a real table, repeated with noise where it ends
    python benchmarks/search.py --write      either, and put the tables into benchmarks/results/performance.md

Times are processor times of one thread, the best of several rounds taken in turn. "Full" looks at every row, for many
queries at a time; "comparing" does so for few, whose codes are compared one by one; "alone" is one row a call.
"Visited" is the share of the tiles of 16 rows that a query has to look at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.common import data, document
from benchmarks.common.arguments import parser_of
from benchmarks.common.bars import Bar
from benchmarks.common.paths import ROOT, data_folder
from benchmarks.common.threads import use_one_thread
from benchmarks.common.timing import Task, best, in_turn, seconds
from benchmarks.search.indexes import LIBRARIES, trained_reader, without_bounds
from ibug import LeafIndex
from ibug.neighbors import Builder

DATASETS = ("bike", "california", "obesity", "news")
KS = (10, 100, 301)
BATCH, ALONE, ROUNDS = 512, 32, 9
FEW = 24  # queries at a time, too few to share bitmaps of their leaves
GROWTH = (10_000, 40_000, 160_000, 640_000, 1_000_000)
Draw = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]
DOCUMENT = ROOT / "benchmarks" / "results" / "performance.md"

LEAST_SPEEDUP, MOST_SLOWDOWN, MOST_GROWTH = 8.0, 1.1, 3.5
TRAINED = 40_000  # rows of the model whose index grows
NOISE = 0.05  # of a column's standard deviation, on rows that are repeated


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--growth", action="store_true", help="how the time grows with the rows")
    parser.add_argument("--grown", metavar="DATASET", help="for --growth: this real table in place of made data")
    parser.add_argument("--data", type=Path, help="folder of the datasets, instead of IBUG_DATA")
    parser.add_argument("--datasets", nargs="+", help=f"default: {', '.join(DATASETS)}")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--rows", type=int, nargs="+", default=list(GROWTH), help="for --growth")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    options = parser.parse_args()
    use_one_thread()
    if not options.growth:
        text, mark = datasets(options), "search.py"
    elif options.grown is None:
        text, mark = growth(options.rows, options.trees, made, "made data of 5 features"), "search.py --growth"
    else:
        source = grown(options.grown, data_folder(options.data))
        title = f"{options.grown}, repeated with noise of {NOISE:.0%} of each column's deviation"
        text, mark = growth(options.rows, options.trees, source, title), "search.py --growth --grown"
    if options.write:
        document.write(DOCUMENT, mark, text.strip())


def datasets(options: argparse.Namespace) -> str:
    folder = data_folder(options.data)
    names = options.datasets or [n for n in DATASETS if n in data.names(folder)] or data.names(folder)
    lines: list[str] = []
    bars: list[str] = []
    for name in names:
        for library in LIBRARIES:
            X, y = data.load(name, folder)
            show(lines, *one_dataset(name, library, X, y, options.trees, bars))
    show(lines, "", "Bars, k = 10", *bars)
    return "\n".join(lines)


def one_dataset(name: str, library: str, X: Any, y: Any, n_trees: int, bars: list[str]) -> list[str]:
    """Return the lines of a dataset and a library, and add to the bars."""
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.1, random_state=1)
    if library == "CatBoost":  # category numbers, as LightGBM sees them, instead of statistics of the target
        X_train, X_test = data.as_numbers(X_train), data.as_numbers(X_test)
    reader = trained_reader(library, X_train, y_train, n_trees)
    start = time.process_time()
    leaves = reader.read_leaves(X_train)
    leaf_time = time.process_time() - start
    builder = Builder(*leaves.shape)
    builder.add(np.ascontiguousarray(leaves, np.int32))
    order_time = seconds(builder.sort)
    index, queries = LeafIndex.build(leaves), reader.read_leaves(X_test)[:BATCH]
    lines = [
        "",
        f"{name}, {library}: {index.n_rows:,} rows, {index.n_trees} trees",
        f"  order {order_time:.3f} s, leaf numbers {leaf_time:.3f} s ({reader.how}): {order_time / leaf_time:.2f} x; "
        f"memory {index.nbytes / leaves.size:.3f} bytes per row and tree, "
        f"{index.bounds_nbytes / leaves.size:.3f} of them bounds",
        f"  {'k':>5}{'comparing':>12}{'full':>12}{'skipping':>12}{'ratio':>8}{'full alone':>14}{'skipping':>12}"
        f"{'ratio':>8}{'visited':>10}",
    ]
    for k in [k for k in KS if 8 * k <= index.n_rows] or [1]:
        figures, line = one_k(index, queries, k)
        lines.append(line)
        if k == KS[0] and name in DATASETS:
            bars += judged(f"{name}, {library}", name, figures)
    text = f"{name}, {library}: building the order costs less than the leaf numbers"
    if name in DATASETS:
        bars.append(Bar(text, f"{order_time / leaf_time:.2f} x", order_time < leaf_time).line())
    return lines


def judged(title: str, name: str, figures: dict[str, float]) -> list[str]:
    """Return whether the bars of a dataset are met."""
    bars: list[str] = []
    for where, full, words in (
        ("batch", "full batch", "the full scan, batch"),
        ("batch", "comparing", "comparing code by code, batch"),
        ("alone", "full alone", "the full scan, alone"),
    ):
        speedup = figures[full] / figures[f"skipping {where}"]
        if name == "news" and full == "comparing":
            continue
        if name == "news":
            met, text = 1 / speedup <= MOST_SLOWDOWN, f"{title}: at most 10 % slower than {words}"
        else:
            met, text = speedup >= LEAST_SPEEDUP, f"{title}: at least 8 x faster than {words}"
        bars.append(Bar(text, f"{speedup:.2f} x", met).line())
    return bars


def one_k(index: LeafIndex, queries: NDArray[Any], k: int) -> tuple[dict[str, float], str]:
    """Return the times per query by name, and a line of the table."""
    full = without_bounds(index)
    alone = [queries[i : i + 1] for i in range(min(ALONE, len(queries)))]
    some = [queries[i : i + FEW] for i in range(0, len(queries), FEW)]
    t = shortest(
        {
            "comparing": (lambda: [full.query(q, k) for q in some], len(queries)),
            "full batch": (lambda: full.query(queries, k), len(queries)),
            "skipping batch": (lambda: index.query(queries, k), len(queries)),
            "full alone": (lambda: [full.query(q, k) for q in alone], len(alone)),
            "skipping alone": (lambda: [index.query(q, k) for q in alone], len(alone)),
        }
    )
    line = (
        f"  {k:5}{t['comparing'] * 1e6:9.1f} us{t['full batch'] * 1e6:9.1f} us{t['skipping batch'] * 1e6:9.1f} us"
        f"{t['full batch'] / t['skipping batch']:6.1f} x{t['full alone'] * 1e6:11.1f} us"
        f"{t['skipping alone'] * 1e6:9.1f} us{t['full alone'] / t['skipping alone']:6.1f} x"
        f"{index.visited(queries, k).mean():10.1%}"
    )
    return t, line


def shortest(tasks: dict[str, tuple[Any, int]]) -> dict[str, float]:
    """Return the shortest time per query of each task, which is given as work and number of queries."""
    timed = {name: Task(work, n_queries, least_time=0.0) for name, (work, n_queries) in tasks.items()}
    return best(in_turn(timed, ROUNDS, alternate=True))


def growth(sizes: list[int], n_trees: int, rows_of: Draw, title: str) -> str:
    """Return how the time per query grows with the rows; `rows_of(n, seed=…)` draws rows and targets."""
    lines: list[str] = []
    show(
        lines,
        f"LightGBM, {n_trees} trees trained on {TRAINED:,} rows: {title}; k = 10",
        f"  {'rows':>10}{'full':>12}{'skipping':>12}{'ratio':>8}{'alone':>12}{'visited':>10}{'tiles':>8}{'build':>10}",
    )
    reader = trained_reader("LightGBM", *rows_of(TRAINED, seed=0), n_trees)
    queries = reader.read_leaves(rows_of(BATCH, seed=1)[0])
    times: dict[str, dict[int, float]] = {"batch": {}, "alone": {}}
    for n in sizes:
        X = rows_of(n, seed=2)[0]
        start = time.process_time()
        chunks = (reader.read_leaves(X[i : i + 8192]) for i in range(0, n, 8192))
        index = LeafIndex.from_chunks(chunks, n)
        build = time.process_time() - start
        full = without_bounds(index)
        tasks = {
            "full": (lambda full=full: full.query(queries[:64], 10), 64),
            "skipping": (lambda index=index: index.query(queries, 10), BATCH),
            "alone": (lambda index=index: [index.query(queries[i : i + 1], 10) for i in range(ALONE)], ALONE),
        }
        t = shortest(tasks)
        times["batch"][n], times["alone"][n] = t["skipping"], t["alone"]
        share = float(index.visited(queries, 10).mean())
        show(
            lines,
            f"  {n:10,}{t['full'] * 1e6:9.1f} us{t['skipping'] * 1e6:9.1f} us{t['full'] / t['skipping']:6.1f} x"
            f"{t['alone'] * 1e6:9.1f} us{share:10.2%}{share * -(-n // 16):8.0f}{build:8.2f} s",
        )
    for kind, found in times.items():
        if {40_000, 640_000} <= found.keys():
            ratio = found[640_000] / found[40_000]
            text = f"time per row at 640,000 rows, of that at 40,000, {kind}: at most {MOST_GROWTH:g} x"
            show(lines, Bar(text, f"{ratio:.2f} x", ratio <= MOST_GROWTH).line(width=6))
    return "\n".join(lines)


def grown(name: str, folder: Path | None) -> Draw:
    """Return what draws rows of a table: without repetition while it has some, then again, with noise.

    Queries, of another seed than the rows of an index, are rows of the table as well: the last ones.
    """
    X, y = data.load(name, folder)
    table = np.ascontiguousarray(data.as_numbers(X).to_numpy(np.float64))
    order = np.random.default_rng(0).permutation(len(table))
    queries, rest = order[:BATCH], order[BATCH:]
    scale = NOISE * np.nan_to_num(np.nanstd(table, axis=0))

    def rows_of(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if n == BATCH:
            return table[queries], y[queries]
        chosen = np.resize(rest, n)
        rows = table[chosen]
        again = np.arange(n) >= len(rest)
        rows[again] += scale * np.random.default_rng(seed).normal(size=(again.sum(), rows.shape[1]))
        return rows, y[chosen]

    return rows_of


def made(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows of five features and a smooth target with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.normal(size=n)


def show(lines: list[str], *new: str) -> None:
    for line in new:
        print(line, flush=True)
        lines.append(line)
