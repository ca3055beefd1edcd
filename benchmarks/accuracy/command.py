"""How good are the distributions? The default, other variants of IBUGRegressor, and other packages, on real data.

    IBUG_DATA=folder python benchmarks/accuracy.py [--jobs 2] [--datasets concrete,wine] [--methods default,normal]
        [--bases lightgbm,catboost,xgboost] [--ways prefit,trained] [--folds 5] [--max-rows 10000]
        [--results accuracy.jsonl] [--report benchmarks/results/accuracy.md] [--only-report]
        [--comparisons]

Each dataset is cut into folds. On each, a fifth of the training rows is held out for validation: it finds the number of
trees, by early stopping, and for CBU by its score after calibration. A variant is fitted in two ways. "prefit": a model
that is trained on the other rows is wrapped and tuned on the validation rows. "trained": the estimator is trained here
on all training rows. Other packages are tuned on the validation rows and get all training rows. As in the paper, a
method is tuned once for each score that it is measured by (``scoring="crps"`` and ``scoring="nll"``), and the mean
score on the test rows counts. The same training on the same rows is done once for all variants.

Results are appended to a file of JSON lines; what is there already is not computed again, so that a run can be stopped
and taken up, here or in another environment: most of the other packages are in that of nox's session `study`,
where everything else runs as well. A package that is not installed is reported. Tables of mean scores, of wins, ties
and losses (paired t-test over the folds, 0.05) and the bars are printed, and written into a document between two marks
if --report is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy import measure, report, results
from benchmarks.accuracy.measure import Task
from benchmarks.accuracy.methods import BASES, METHODS, USUAL, USUAL_BASES, WAYS, settings
from benchmarks.accuracy.results import Experiment
from benchmarks.common import document
from benchmarks.common.arguments import add_datasets, add_report, chosen_names, parser_of
from benchmarks.common.lines import Row, Store
from benchmarks.common.progress import Progress, say
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import run_all


def main() -> None:
    options = parse_options()
    experiment = Experiment(options.folds, options.max_rows, options.max_trees)
    if not options.only_report:
        run(options, experiment)
    rows = results.read(options.results, experiment)
    printed = report.only_comparisons(rows) if options.comparisons else report.tables(rows)
    print(printed)
    if options.report:
        script = "accuracy.py --comparisons" if options.comparisons else "accuracy.py"
        document.write(options.report, script, f"{document.command()}\n\n{printed}")


def run(options: argparse.Namespace, experiment: Experiment) -> None:
    """Measure what has no result yet."""
    limit_threads()  # for the processes to come
    with Store(options.results) as store:
        every = plan(options, experiment, done=set())
        known = {results.key(row): row for row in results.read(options.results, experiment)}
        tasks = plan(options, experiment, done={key for key, row in known.items() if row["status"] == "ok"})
        progress = Progress("accuracy", len(every), tasks, options.jobs)
        for outcome in run_all(tasks, measure.run, jobs=options.jobs, time_limit=None):
            rows = outcome.result or []
            store.append([row for row in rows if "reason" not in row or not _told(row, known)])
            progress.tell(outcome.task, outcome.seconds, outcome.problem)
            for text in dict.fromkeys(f"{r['method']} {r['status']}: {r['reason']}" for r in rows if "reason" in r):
                say(f"    {text}")


def _told(row: Row, known: dict[tuple[object, ...], Row]) -> bool:
    """Return whether the file already tells why there is no result."""
    return row["reason"] == known.get(results.key(row), {}).get("reason")


def plan(options: argparse.Namespace, experiment: Experiment, done: set[tuple[object, ...]]) -> list[Task]:
    """Return the tasks, folds outermost so that every dataset has some results early; without what is done."""
    folder, names = chosen_names(options)
    tasks = []
    for fold in range(experiment.folds):
        for name in names:
            left = [
                setting
                for setting in settings(options.methods, options.bases, options.ways)
                if (name, fold, setting.method, setting.base, setting.way, setting.scoring) not in done
            ]
            for base in ("", *options.bases):  # each base model in one task: its trainings are shared there
                own = tuple(setting for setting in left if setting.base == base)
                if own:
                    tasks.append(Task(name, fold, own, experiment, folder, options.threads))
    return tasks


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=10_000)
    for name, known, usual in (
        ("methods", METHODS, USUAL),
        ("bases", BASES, USUAL_BASES),
        ("ways", tuple(WAYS), ("prefit", "trained")),
    ):
        text = f"with commas, of {', '.join(known)}; default: {', '.join(usual)}"
        parser.add_argument(f"--{name}", default=list(usual), type=names_of(known), help=text)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--max-trees", type=int, default=500, help="early stopping finds how many of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each training")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="JSON lines, appended to")
    add_report(parser)
    parser.add_argument("--comparisons", action="store_true", help="print wins, ties and losses only")
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()


def names_of(known: Sequence[str]) -> object:
    """Return what reads names with commas, and refuses unknown ones."""

    def names(given: str) -> list[str]:
        unknown = sorted(set(given.split(",")) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are: {', '.join(known)}")
        return given.split(",")

    return names
