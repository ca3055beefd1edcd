"""What a second processor is worth: batches and single rows with one thread and with two, and two processes at once.

It prints one line of JSON: python -m benchmarks.speed.threads LightGBM 40000 1000

Times are those of the clock, the best of some rounds, so that the machine must be idle. Two processes that each do the
work of one, and share nothing, tell what the machine itself has to give.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from benchmarks.common.progress import say
from benchmarks.speed.models import MODELS, PACKAGES, VALIDATION
from benchmarks.speed.rows import synthetic_rows
from ibug import IBUGRegressor

QUERIES, ALONE = 4_000, 64


def clock(work: Callable[[], object], n_rounds: int) -> float:
    """Return the shortest time of the clock."""
    work()
    times = []
    for _ in range(n_rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def run_parallel(work: Callable[[], object], n_rounds: int) -> float:
    """Return the shortest time of the clock while another process does the same; the slower one of both counts."""
    context = multiprocessing.get_context("fork")
    ready, times = context.Barrier(2), context.SimpleQueue()

    def both() -> None:
        for _ in range(n_rounds):
            ready.wait()
            start = time.perf_counter()
            work()
            times.put(time.perf_counter() - start)

    other = context.Process(target=both)
    other.start()
    both()
    other.join()
    found = [times.get() for _ in range(2 * n_rounds)]
    return sorted(found)[1]  # a time that both processes have reached, or the second best of one


def measure(library: str, n_rows: int, n_trees: int, n_rounds: int) -> dict[str, Any]:
    """Train a model, wrap it, and return seconds by what was done; or why nothing could be measured."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # speed.py gives its processes one processor only
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if processors < 2:
        return {"absent": "this machine has one processor"}
    X, y = synthetic_rows(n_rows + VALIDATION + QUERIES)
    say(f"... {library}, {n_rows:,} rows, {n_trees:,} trees: training and indexing")
    model = MODELS[library](n_trees).fit(X[:n_rows], y[:n_rows])
    known, queries = slice(n_rows, n_rows + VALIDATION), X[-QUERIES:]
    u = IBUGRegressor(model, prefit=True, n_jobs=1).fit(X[:n_rows], y[:n_rows], X_val=X[known], y_val=y[known])
    found: dict[str, float] = {}
    for name, work in (
        ("batch", lambda: u.predict_interval(queries)),
        ("alone", lambda: [u.predict_interval(queries[i : i + 1]) for i in range(ALONE)]),
    ):
        say(f"... {name}: one thread, two threads, two processes")
        found[f"{name}, one thread"] = clock(work, n_rounds)
        if hasattr(os, "fork"):
            found[f"{name}, two processes"] = run_parallel(work, n_rounds)
        u.set_params(n_jobs=2)
        found[f"{name}, two threads"] = clock(work, n_rounds)
        u.set_params(n_jobs=1)
    package = PACKAGES[library]
    return {"library": library, "n_rows": n_rows, "n_trees": n_trees, "versions": {package: version(package)}} | {
        "seconds": found
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=MODELS)
    parser.add_argument("rows", type=int)
    parser.add_argument("trees", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.library, options.rows, options.trees, options.rounds)))


if __name__ == "__main__":
    main()
