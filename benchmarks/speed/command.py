"""Measure the speed and memory of ibug on synthetic data, one thread, beside the model and other ways.

The other ways are the model's own `predict`, a walk over leaf members, and other packages that predict uncertainty.

    python benchmarks/speed.py --treeffuser results.jsonl --report benchmarks/results/performance.md
    python benchmarks/speed.py --huge                          500,000 rows of 90 features, 1,000 trees as well
    python benchmarks/speed.py --quick                         small sizes: does it run?

Every setting is measured in a process of its own, on one processor. With --results FILE each result is kept as a line
of JSON as soon as it is there, and what the file has already is not measured again: a run can be stopped and taken up.
A setting that fails is reported, and the others go on; so is a package that is not installed. Some packages want older
versions of NumPy and scikit-learn: --peers-python names the Python of an environment that has them.

Times are processor times of one thread. "Peak" is what the kernel's counting loop reaches where its data fit the
first-level cache; "kernel" is the whole search for the nearest rows, by the comparisons of leaf codes that it stands
for. Many queries share bitmaps of their leaves instead of comparing code by code, so the kernel can be above the peak.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import document, lines
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.processes import result_of
from benchmarks.common.progress import say
from benchmarks.common.threads import use_one_thread
from benchmarks.speed import report
from benchmarks.speed.models import (
    FEATURES_OF_HUGE,
    GIGABYTE,
    HUGE,
    LARGE,
    MATCHING,
    MODELS,
    QUICK,
    SMALL,
    THREADED,
    USUAL_FEATURES,
)
from benchmarks.speed.peers import PEERS


@dataclass(frozen=True)
class Unit:
    """One setting, to be measured by one process."""

    module: str  # measure, peers, threads or loading
    name: str
    n_rows: int
    n_trees: int
    n_features: int = USUAL_FEATURES

    def __str__(self) -> str:
        return f"{self.name}, {self.n_rows:,} rows, {self.n_trees:,} trees"

    @property
    def key(self) -> str:
        """What tells it from other units."""
        return f"{self.module} {self.name} {self.n_rows} {self.n_trees} {self.n_features}"

    def result(self, peers_python: str, n_rounds: int) -> dict[str, Any]:
        """Return what a process measures; ``{"failed": reason}`` if it fails."""
        size = [str(self.n_rows), str(self.n_trees)]
        if self.module == "measure":
            size += ["--features", str(self.n_features)]
        return result_of(
            f"benchmarks.speed.{self.module}",
            self.name,
            *size,
            "--rounds",
            str(n_rounds),
            python=peers_python if self.module == "peers" else sys.executable,
            tell=lambda line: say(f"    {line}"),
        )


def main() -> None:
    options = parse_options()
    use_one_thread()  # which the processes that measure inherit
    units = plan(options)
    results = measured(units, options)

    def of(module: str) -> report.Named:
        return [(unit.name, results[unit.key]) for unit in units if unit.module == module]

    peers = of("peers")
    if options.treeffuser is not None:
        peers.append(("Treeffuser", treeffuser(options.treeffuser)))
    text = report.text(of("measure"), peers, of("threads"), of("loading"))
    print(text)
    if options.report is not None:
        document.write(options.report, "speed.py", f"{document.command()}\n{text}")


def measured(units: list[Unit], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the results by key: those of an earlier run, and what is measured now."""
    n_rounds = options.rounds or (1 if options.quick else 5)
    with contextlib.ExitStack() as stack:
        done: dict[str, dict[str, Any]] = {}
        store = None
        if options.results is not None:
            store = stack.enter_context(lines.Store(options.results))
            done = {row.pop("key"): row for row in lines.read(options.results)}
        for number, unit in enumerate(units, 1):
            title = f"[{number}/{len(units)}] {unit}"
            if unit.key in done:
                say(f"{title}: measured before")
                continue
            say(title)
            start = time.monotonic()
            done[unit.key] = unit.result(options.peers_python, n_rounds)
            say(f"{title}: {time.monotonic() - start:.0f} s")
            if store is not None and "failed" not in done[unit.key]:
                store.append([{"key": unit.key, **done[unit.key]}])
        return done


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--huge", action="store_true", help="500,000 rows of 90 features, 1,000 trees as well")
    parser.add_argument("--library", action="append", choices=MODELS, help="measure this library only (repeatable)")
    parser.add_argument("--peer", action="append", choices=PEERS, help="measure this package only (repeatable)")
    parser.add_argument("--no-peers", action="store_true", help="measure no other packages")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has the other packages")
    parser.add_argument("--rows", type=int, help="measure this number of training rows instead")
    parser.add_argument("--trees", type=int, help="measure this number of trees instead")
    parser.add_argument("--rounds", type=int, help="how often each task is timed (default: 5, quick: 1)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep results here, and go on from what is there")
    parser.add_argument("--treeffuser", type=Path, metavar="FILE", help="results of benchmarks/treeffuser.py")
    add_report(parser)
    return parser.parse_args()


def treeffuser(path: Path) -> dict[str, Any]:
    """Return the time per row of Treeffuser, the median of what ``benchmarks/treeffuser.py`` has measured in batches.

    Its rows are those of other data, and its trees are its own: it stands for a magnitude.
    """
    rows = [row for row in lines.read(path) if row.get("n_test")]
    if not rows:
        raise SystemExit(f"{path} has no results of benchmarks/treeffuser.py.")
    time_per_row = statistics.median(row["predict_seconds"] / row["n_test"] for row in rows)
    return {"version": rows[-1]["version"], "per_row": {"batch": time_per_row}}


def plan(options: argparse.Namespace) -> list[Unit]:
    """Return what to measure; an override of rows or trees replaces all sizes by one."""
    libraries = options.library or list(MODELS)
    peers = [] if options.no_peers else options.peer or list(PEERS)
    sizes, matching = [LARGE, SMALL, MATCHING], MATCHING
    if options.quick or options.rows is not None or options.trees is not None:
        rows, trees = QUICK if options.quick else LARGE
        matching = (options.rows or rows, options.trees or trees)
        sizes = [matching]
    units = [Unit("measure", library, *size) for size in sizes for library in libraries]
    units += [Unit("peers", peer, *matching) for peer in peers]
    if not options.quick and options.rows is None and options.trees is None and "LightGBM" in libraries:
        units += [Unit("threads", "LightGBM", *THREADED), Unit("loading", "LightGBM", *GIGABYTE)]
    if options.huge:
        units += [Unit("measure", library, *HUGE, FEATURES_OF_HUGE) for library in libraries]
    return units
