"""Totals of rows in blocks: a common factor against independent rows, added ends and ranks of validation blocks.

    IBUG_DATA=folder python benchmarks/totals.py [--jobs 2] [--cases bike-day,made-one] [--splits 10]
    python benchmarks/totals.py --speed
    python benchmarks/totals.py --only-report --report benchmarks/results/totals.md

All methods have the same LightGBM model, which was trained on 60 per cent of the blocks; 20 per cent are for
validation, 20 per cent for testing. Five splits test each block once. `factor` is the default of `total_dist`;
`independent` is `blocks=False`; `ends` adds up the ends of the rows' intervals; `ranks` gives rows the ranks of whole
validation blocks, as the Schaake shuffle does: one sample of a total for each of these blocks. Made rows are drawn anew
for each split. Results are appended to a file of JSON lines; what is there already is not computed again. --speed
measures the time of totals instead.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from benchmarks.common import document, lines
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.lines import Store
from benchmarks.common.paths import data_folder
from benchmarks.common.progress import Progress
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import run_all
from benchmarks.totals.task import Task


def main() -> None:
    options = parse_options()
    if not options.only_report:
        run(options)
    from benchmarks.totals import report

    printed = report.text(lines.read(options.results))
    print(printed)
    if options.report:
        document.write(options.report, "totals.py", f"{document.command()}\n\n{printed}")


def run(options: argparse.Namespace) -> None:
    """Measure what has no result yet."""
    limit_threads()  # for the processes to come
    from benchmarks.totals import data, measure, speed

    folder = data_folder(options.data)
    if options.speed:
        function, names, splits = partial(speed.run, n_rows=options.speed_rows), ["speed"], 1
    else:
        function, splits = measure.run, options.splits
        names = options.cases.split(",") if options.cases else data.names(folder)
    tasks = [Task(name, split, options.trees, options.max_units, folder) for split in range(splits) for name in names]
    with Store(options.results) as store:
        done = [set(row.items()) for row in known(options.results)]
        left = [task for task in tasks if options.speed or set(task.as_row().items()) not in done]
        progress = Progress("totals", len(tasks), left, options.jobs)
        for outcome in run_all(left, function, jobs=options.jobs, time_limit=None):
            if outcome.status == "ok":
                store.append(outcome.result)
            progress.tell(outcome.task, outcome.seconds, outcome.problem)


def known(path: Path) -> list[dict[str, object]]:
    """Return the tasks whose results are at hand."""
    return [{name: row[name] for name in ("case", "split", "trees", "max_units")} for row in lines.read(path)]


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, help="folder with Parquet files; default: IBUG_DATA, else made rows alone")
    parser.add_argument("--cases", help="names, with commas; default: all")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--max-units", type=int, help="only the first blocks of each case (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=Path("totals.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--speed", action="store_true", help="measure the time of totals")
    parser.add_argument("--speed-rows", type=int, default=100_000, help="rows whose totals are timed")
    add_report(parser)
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()
