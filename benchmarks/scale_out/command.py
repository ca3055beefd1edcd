"""Measure how the sharded index scales: one and two single-threaded worker processes on this machine.

    python benchmarks/scale_out.py                              1,000,000 rows, 500 trees, 10,000 predictions: minutes
    python benchmarks/scale_out.py --report docs/scaling.md     and write the figures into the document
    python benchmarks/scale_out.py --quick                      a small setting, a minute: does it run?

The machine should be idle, with at least two processors. Rows are made up, each partition where it is needed; the model
is trained on 50,000 of them and kept in a folder for the next run (--cache), and all are indexed.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.common import document, progress
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.bars import verdict
from benchmarks.scale_out.measure import MEGABYTE, Figures, Setting, measure, processors, train

FULL = Setting(n_rows=1_000_000, n_trees=500, n_queries=10_000, n_parts=16, n_validation=1_000, rounds=3)
QUICK = Setting(n_rows=20_000, n_trees=50, n_queries=200, n_parts=4, n_validation=100, rounds=1)
LEAST_EFFICIENCY = 0.8
MOST_BEYOND_SHARE = 0.5  # of the share of the index

# The workers that a billion rows are divided among: processes of one thread. Dask begins to write to disk at 60 % of a
# worker's memory.
BILLION = 10**9
WORKER_BYTES, MOST_HELD = 4 * 2**30, 0.6
BYTES_PER_NEIGHBOR = 4 + 8 + 8  # affinity, row number, target
BYTES_PER_QUERY = 8  # the prediction, which goes along with the leaves


def main() -> None:
    options = parse_options()
    setting = QUICK if options.quick else FULL
    setting = replace(setting, n_rows=options.rows or setting.n_rows, n_trees=options.trees or setting.n_trees)
    say(f"{processors()} processors; training {setting.n_trees} trees")
    model = train(setting, Path(options.cache))
    runs = []
    for n_workers, n_rows in ((1, setting.n_rows), (2, setting.n_rows), (2, setting.n_rows // 4)):
        say(f"{n_workers} worker(s), {n_rows:,} rows")
        runs.append(measure(model, replace(setting, n_rows=n_rows), n_workers))
    text = report(setting, *runs)
    print(text)
    if options.report:
        document.write(options.report, "scale_out.py", text, fenced=False)


def report(setting: Setting, one: Figures, two: Figures, quarter: Figures) -> str:
    """Return the figures as text in Markdown."""
    efficiency = one.predict_seconds / (2 * two.predict_seconds)
    beyond = max(run.beyond / min(run.shares) for run in (one, two))
    expected = expected_bytes(2, setting, two.k)
    lines = [
        f"{setting.n_rows:,} training rows in {setting.n_parts} partitions, {setting.n_trees} trees, "
        f"{setting.n_queries:,} predictions (`predict_interval`, {two.k} neighbours each), "
        f"the best of {setting.rounds} rounds.",
        "",
        "| workers | rows | fit, s | predictions, s | processor time, s | libraries, MB | share of index, MB | "
        "peak beyond libraries, MB | bytes per query |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row(run) for run in (one, two, quarter)),
        "",
        f"- Parallel efficiency on two workers: {efficiency:.0%} ({verdict(efficiency >= LEAST_EFFICIENCY)}: at least "
        f"{LEAST_EFFICIENCY:.0%}).",
        "- Beyond libraries and its share of the index a worker had at most "
        f"{max(one.beyond, two.beyond) / MEGABYTE:.0f} MB, "
        f"{beyond:.0%} of the share ({verdict(beyond <= MOST_BEYOND_SHARE)}: at most {MOST_BEYOND_SHARE:.0%}).",
        f"- Bytes between workers per query: {two.bytes_per_query:,.0f} with all rows, {quarter.bytes_per_query:,.0f} "
        f"with a quarter of them; (W − 1)(ℓ + 8 + 20 k) says {expected:,.0f}: "
        f"{two.bytes_per_query / expected - 1:+.1%} and {quarter.bytes_per_query / expected - 1:+.1%}.",
        f"  By kind, with all rows: {by_kind(two)}.",
        f"- All messages, those of client and scheduler and all headers included: {two.messages:,.0f} bytes per query "
        f"with all rows, {quarter.messages:,.0f} with a quarter of them, {one.messages:,.0f} with one worker.",
        "",
        *projection(setting, two),
    ]
    return "\n".join(lines)


def row(run: Figures) -> str:
    sizes = (", ".join(f"{n / MEGABYTE:.0f}" for n in column) for column in (run.libraries, run.shares, run.peaks))
    worked = ", ".join(f"{seconds:.1f}" for seconds in run.work_seconds)
    return (
        f"| {run.n_workers} | {run.n_rows:,} | {run.fit_seconds:.1f} | {run.predict_seconds:.1f} | {worked} | "
        f"{' | '.join(sizes)} | {run.bytes_per_query:,.0f} |"
    )


def by_kind(run: Figures) -> str:
    kinds = sorted(run.bytes_by_kind.items(), key=lambda item: -item[1])
    return ", ".join(f"{name.removeprefix('ibug-')} {size:,.0f}" for name, size in kinds)


def projection(setting: Setting, two: Figures) -> list[str]:
    """Return what a billion rows would take, by the formulas of docs/scaling.md."""
    per_row = sum(two.shares) / two.n_rows
    cost = two.predict_seconds * two.n_workers / (setting.n_queries * two.n_rows)
    constant = max(two.libraries) + two.beyond
    room = min(MOST_HELD * WORKER_BYTES, WORKER_BYTES - constant)
    n_workers = math.ceil(BILLION * per_row / room)
    milliseconds = 1000 * 1000 * cost * BILLION / n_workers
    moved = expected_bytes(n_workers, setting, two.k)
    share = BILLION * per_row / n_workers
    return [
        f"A billion rows and {setting.n_trees} trees, from b = {per_row:.0f} bytes per row, c = {cost * 1e9:.2f} "
        f"nanoseconds per query and row of one worker and m = {constant / 1e9:.2f} GB of libraries and work "
        f"(processes of one thread with M = {WORKER_BYTES / 1e9:.1f} GB):",
        "",
        "| workers W | index | memory of a worker | bytes per query, all links | into one worker | ms per 1,000 "
        "predictions |",
        "|---|---|---|---|---|---|",
        f"| {n_workers:,} | {BILLION * per_row / 1e9:,.0f} GB | {share / 1e9:.1f} + {constant / 1e9:.1f} GB | "
        f"{moved:,.0f} | {moved / (n_workers - 1):,.0f} | {milliseconds:,.0f} |",
    ]


def expected_bytes(n_workers: int, setting: Setting, k: int) -> float:
    """Return (W − 1)(ℓ + 8 + 20 k).

    Leaves of one byte and the prediction go to every other worker, and each worker's k nearest rows come back.
    """
    return (n_workers - 1) * (setting.n_trees + BYTES_PER_QUERY + BYTES_PER_NEIGHBOR * k)


def say(text: str) -> None:
    progress.say(f"[scale_out] {text}")


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="a small setting")
    parser.add_argument("--rows", type=int, help="training rows")
    parser.add_argument("--trees", type=int, help="trees")
    cache = Path(tempfile.gettempdir()) / "ibug-scale-out"
    parser.add_argument(
        "--cache", default=str(cache), help="the folder that keeps the trained model (default: %(default)s)"
    )
    add_report(parser)
    return parser.parse_args()
