"""The command: ``python -m benchmarks compare --data FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.accuracy import measure, results
from benchmarks.accuracy.measure import Task
from benchmarks.accuracy.methods import BASES, PEERS, Setting
from benchmarks.accuracy.results import Experiment
from benchmarks.common import document
from benchmarks.common.lines import Row, Store
from benchmarks.common.progress import Progress, say
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import run_all
from benchmarks.own.files import Table, examine
from benchmarks.own.table import text
from benchmarks.study import methods as study
from benchmarks.study.datasets import DatasetError

RESULTS = Path("own-results.jsonl")
VARIANTS = ("default", "normal", "paper")
WAY, SCORING = "prefit", "crps"

HELP = """
The default distribution against others on your own data. Every Parquet file of the folder is a dataset, and its last
column is the target. Each fold trains a model with early stopping, wraps it, and scores the distributions of rows that
nothing has seen: the default, a normal distribution, the paper's rule, and the other packages that are installed.
Results are kept in a file; the same command goes on where it was stopped.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--data", type=Path, required=True, help="the folder with your Parquet files")
    parser.add_argument("--base", choices=BASES, help="the library of the model; default: the first that is installed")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--max-rows", type=int, default=5000, help="take a random sample of larger files")
    parser.add_argument("--max-trees", type=int, default=300, help="early stopping finds how many of these")
    parser.add_argument("--only-ibug", action="store_true", help="without other packages, which take the most time")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--document", type=Path, help="write the table into a document, between its marks")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"JSON lines, appended to; default: {RESULTS}")


def compare(options: argparse.Namespace) -> None:
    """Measure what has no result yet, and print the table."""
    if options.folds < 2 or options.jobs < 1 or options.max_rows < 200 or options.max_trees < 20:
        raise DatasetError("--folds is 2 at least, --jobs 1, --max-rows 200 and --max-trees 20.")
    tables, problems = examine(options.data)
    for line in [*problems, *map(str, tables)]:
        say(line)
    if not tables:
        raise DatasetError(f"No file of {options.data} can be measured.")
    limit_threads()  # for the processes to come
    experiment = Experiment(options.folds, options.max_rows, options.max_trees)
    settings = _settings(options.base or _installed_base(), not options.only_ibug)
    every = _tasks(tables, settings, experiment, options.data)
    with Store(options.results) as store:
        known = _of_these(tables, results.read(options.results, experiment), options.max_rows)
        done = {results.key(row) for row in known if row["status"] == "ok"}
        tasks = [task for task in every if not _keys(task) <= done]
        progress = Progress("compare", len(every), tasks, options.jobs)
        for outcome in run_all(tasks, measure.run, jobs=options.jobs, time_limit=None):
            rows = outcome.result or []
            store.append(rows)
            progress.tell(outcome.task, outcome.seconds, outcome.problem)
            for row in rows:
                if "reason" in row:
                    say(f"    {row['method']} {row['status']}: {row['reason']}")
    found = _of_these(tables, results.read(options.results, experiment), options.max_rows)
    printed = text(tables, found, settings)
    print(printed)
    if options.document is not None:
        shown = "$ python -m benchmarks compare --data FOLDER"
        document.write(options.document, "compare", f"{shown}\n\n{printed}")


def _of_these(tables: list[Table], rows: list[Row], max_rows: int) -> list[Row]:
    """Return the results of these files: one of the same name with another number of rows is another one."""
    sizes = {table.name: min(table.n_rows, max_rows) for table in tables}
    return [row for row in rows if row["n"] == sizes.get(row["dataset"])]


def _installed_base() -> str:
    found = [base for base in BASES if study.importable(base)]
    if not found:
        raise DatasetError(f"None of {', '.join(BASES)} is installed: pip install lightgbm, say.")
    return found[0]


def _settings(base: str, with_peers: bool) -> list[Setting]:
    """Return what is measured: variants of the estimator on one library, and the packages that are installed."""
    ours = [Setting(method, base, WAY, SCORING) for method in VARIANTS]
    installed = [name for name in PEERS if study.importable(study.METHODS[name].package)]
    return ours + [Setting(name, "", "", SCORING) for name in installed if with_peers]


def _tasks(tables: list[Table], settings: list[Setting], experiment: Experiment, folder: Path) -> list[Task]:
    """Return one task for each file, fold and kind: folds outermost, and ours first, so that a table is there early."""
    return [
        Task(table.name, fold, own, experiment, folder, 1)
        for fold in range(experiment.folds)
        for table in tables
        for own in (tuple(one for one in settings if one.base), *((one,) for one in settings if not one.base))
    ]


def _keys(task: Task) -> set[tuple[object, ...]]:
    return {(task.dataset, task.fold, one.method, one.base, one.way, one.scoring) for one in task.settings}
