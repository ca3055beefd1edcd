"""Measure the search in cells against the one among all training rows, with LightGBM's trees of 63 leaves.

    python benchmarks/search.py                      datasets of the folder that IBUG_DATA names, and its folder large
    python benchmarks/search.py --folds 5            five folds of those with fewer than 100,000 rows, for a t-test
    python benchmarks/search.py --growth 2500000     growth with the rows, 40,000 to this number: flights, with noise
    python benchmarks/search.py --only-report …      either, from what --results has, without measuring

Times are processor times of one thread. `search="auto"` is measured against `search="exact"` on the same model, rows
and calls; rounds are taken in turn, and the shortest counts. Models can be trained beforehand, on a machine that others
use too: --models FOLDER --train writes them, --models FOLDER reads them. With --results FILE what was measured is kept,
and not measured again.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import document, lines
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.progress import say
from benchmarks.common.threads import use_one_thread
from benchmarks.search import cells, growth

# Trees of the model.
DATASETS = {
    "flights_delay": 1000,
    "stroop_rt": 500,
    "un_population": 1000,
    "facebook": 500,
    "news": 500,
    "protein": 500,
}
GROWN, GROWN_TREES = "flights_delay", 500
SIZES = (40_000, 160_000, 640_000)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the datasets, instead of IBUG_DATA")
    parser.add_argument("--datasets", nargs="+", help=f"default: {', '.join(DATASETS)}; for --growth: {GROWN}")
    parser.add_argument("--trees", type=int, help="the trees of every model, instead of each dataset's number")
    parser.add_argument("--folds", type=int, default=1, help="of the datasets with fewer than 100,000 rows")
    parser.add_argument("--growth", nargs="?", type=int, const=SIZES[-1], metavar="ROWS", help="up to this many rows")
    parser.add_argument("--rows", nargs="+", type=int, help=f"for --growth: in place of {SIZES} and ROWS")
    parser.add_argument("--rounds", type=int, default=3, help="how often each time is taken")
    parser.add_argument("--models", type=Path, metavar="FOLDER", help="trained models are kept here")
    parser.add_argument("--train", action="store_true", help="train the models of --models, and stop")
    parser.add_argument("--results", type=Path, metavar="FILE", help="results are kept here")
    parser.add_argument("--only-report", action="store_true", help="report the results of --results")
    add_report(parser)
    options = parser.parse_args()
    use_one_thread()
    grown = options.growth is not None
    names = options.datasets or ([GROWN] if grown else list(DATASETS))
    if grown:
        tasks, text = growth_tasks(names[0], options), growth.report
    else:
        tasks, text = dataset_tasks(names, options), cells.report
    if options.train:
        return
    found = measured(tasks, options)
    printed = text(found)
    print(printed)
    if options.report is not None:
        mark = "search.py --growth" if grown else "search.py"
        document.write(options.report, mark, f"{document.command()}\n{printed}")


Tasks = dict[str, Callable[[], dict[str, Any]]]


def dataset_tasks(names: list[str], options: argparse.Namespace) -> Tasks:
    """Return what to measure: a task for each dataset and fold."""
    tasks: Tasks = {}
    for name in names:
        n_trees = options.trees or DATASETS.get(name, 500)
        for fold in cells.folds_of(name, n_trees, options):
            if options.train:
                say(f"training: {fold}")
                fold.model()
            tasks[str(fold)] = fold.measure
    return tasks


def growth_tasks(name: str, options: argparse.Namespace) -> Tasks:
    """Return what to measure: a task for each number of rows, of which the last is saved and loaded."""
    sizes = options.rows or sorted({*(size for size in SIZES if size < options.growth), options.growth})
    source = growth.Grown(name, options.trees or GROWN_TREES, options)
    if options.train:
        source.model()
    return {f"{source}, {n:,} rows": source.task(n, mapped=n == sizes[-1]) for n in sizes}


def measured(tasks: Tasks, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the results: those of an earlier run, and what is measured now."""
    with contextlib.ExitStack() as stack:
        done: dict[str, dict[str, Any]] = {}
        store = None
        if options.results is not None:
            done = {row["key"]: row for row in lines.read(options.results)}
            store = stack.enter_context(lines.Store(options.results))
        for number, (key, task) in enumerate(tasks.items(), 1):
            if key in done or options.only_report:
                continue
            say(f"[{number}/{len(tasks)}] {key}")
            done[key] = {"key": key, **task()}
            if store is not None:
                store.append([done[key]])
        return [done[key] for key in tasks if key in done]
