"""Several targets at once: energy and variogram scores of the joint stack, and of what one could do instead.

    IBUG_DATA=folder python benchmarks/several.py [--jobs 2] [--datasets energy,ring] [--max-rows 1000]
    IBUG_DATA=folder .venv-treeffuser/bin/python benchmarks/several.py --treeffuser --max-rows 1000
    IBUG_DATA=folder python benchmarks/several.py --boxes --max-rows 1000
    IBUG_DATA=folder python benchmarks/several.py --conditional
    python benchmarks/several.py --only-report --report docs/several.md

All methods have the same LightGBM models, one for each target, trained on the same rows; Treeffuser has its own. The
scores are of 200 samples of each row (Treeffuser: 100) in units of the training targets' deviations, unbiased for any
number of samples. Treeffuser is slow, so that it is compared on fewer rows; it has an environment of its own (the
session `treeffuser` of nox). Results are appended to a file of JSON lines; what is there already is not computed again.
--boxes measures the coverage of joint boxes over 200 random splits of some tables, --conditional the CRPS of each
target once the others are known.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.common import document, lines
from benchmarks.common.arguments import add_datasets, add_report, parser_of
from benchmarks.common.lines import Row, Store
from benchmarks.common.paths import data_folder
from benchmarks.common.progress import Progress
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import run_all
from benchmarks.several.task import Task


def main() -> None:
    options = parse_options()
    if not options.only_report:
        run(options)
    if options.treeffuser:
        return
    from benchmarks.several import report

    printed = report.text(lines.read(options.results))
    print(printed)
    if options.report:
        document.write(options.report, "several.py", f"{document.command()}\n\n{printed}")


def run(options: argparse.Namespace) -> None:
    """Measure what has no result yet."""
    limit_threads()  # for the processes to come
    folder = data_folder(options.data)
    with Store(options.results) as store:
        measure, tasks = chosen(options, folder)
        method = next((name for name in ("boxes", "conditional", "treeffuser") if getattr(options, name)), "joint")
        done = {(row["dataset"], row["fold"]) for row in known(options) if row["method"] == method}
        left = [task for task in tasks if (task.dataset, task.fold) not in done]
        progress = Progress("several", len(tasks), left, options.jobs)
        for outcome in run_all(left, measure, jobs=options.jobs, time_limit=None):
            if outcome.status == "ok":
                store.append(outcome.result)
            progress.tell(outcome.task, outcome.seconds, outcome.problem)


def chosen(options: argparse.Namespace, folder: Path | None) -> tuple[Any, list[Task]]:
    """Return what measures, and the tasks."""
    from benchmarks.several import data

    if options.boxes:
        from benchmarks.several import boxes

        names = options.datasets.split(",") if options.datasets else boxes.names(folder)
        return boxes.run, [Task(name, 0, options.folds, options.max_rows, folder) for name in names]
    names = options.datasets.split(",") if options.datasets else data.names(folder)
    tasks = [
        Task(name, fold, options.folds, options.max_rows, folder) for fold in range(options.folds) for name in names
    ]
    if options.treeffuser:
        from benchmarks.several import treeffuser

        return treeffuser.run, tasks
    if options.conditional:
        from benchmarks.several import conditional

        return conditional.run, tasks
    from benchmarks.several import measure

    return measure.run, tasks


def known(options: argparse.Namespace) -> list[Row]:
    """Return the results at hand."""
    wanted = {"folds": options.folds, "max_rows": options.max_rows}.items()
    return [row for row in lines.read(options.results) if wanted <= row.items()]


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=3000)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=Path("several.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--treeffuser", action="store_true", help="measure Treeffuser, in its environment")
    parser.add_argument("--boxes", action="store_true", help="measure the coverage of joint boxes over 200 splits")
    parser.add_argument("--conditional", action="store_true", help="measure targets once the others are known")
    add_report(parser)
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()
