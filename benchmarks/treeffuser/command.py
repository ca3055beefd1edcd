"""Treeffuser (Beltran-Velez et al., NeurIPS 2024) with its default settings, on the folds of the accuracy benchmark.

    IBUG_DATA=folder .venv/bin/nox --session treeffuser -- [--jobs 2] [--datasets concrete,wine]
    IBUG_DATA=folder python benchmarks/accuracy.py --folds 3 --max-rows 4000 --bases lightgbm --ways trained
        --methods default,normal --results accuracy-small.jsonl
    python benchmarks/treeffuser.py --only-report --ours accuracy-small.jsonl [--report benchmarks/results/peers.md]

It lives in an environment of its own, because it wants LightGBM 4.3, scikit-learn 1.5 and NumPy 1. Its CRPS is that of
100 samples, in the form that is unbiased for any number of samples. Results are appended to a file of JSON lines; what
is there already is not computed again. The report pairs them with those of the accuracy benchmark: datasets, samples of
their rows and folds are the same. Times are processor times of one thread, with 100 samples of each row.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.common import document, lines
from benchmarks.common.arguments import add_datasets, add_report, chosen_names, parser_of
from benchmarks.common.lines import Row, Store
from benchmarks.common.progress import Progress
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import run_all


def main() -> None:
    options = parse_options()
    if not options.only_report:
        run(options)
    from benchmarks.accuracy.results import Experiment
    from benchmarks.accuracy.results import read as read_ours
    from benchmarks.treeffuser import report

    experiment = Experiment(options.folds, options.max_rows, options.max_trees)
    printed = report.text(list(known(options).values()), read_ours(options.ours, experiment), options.base)
    print(printed)
    if options.report:
        document.write(options.report, "treeffuser.py", f"{document.command()}\n\n{printed}")


def run(options: argparse.Namespace) -> None:
    """Measure what has no result yet."""
    from benchmarks.treeffuser import measure

    limit_threads()  # for the processes to come
    with Store(options.results) as store:
        folder, names = chosen_names(options)
        tasks = [
            measure.Task(name, fold, options.folds, options.max_rows, folder)
            for fold in range(options.folds)
            for name in names
        ]
        done = known(options)
        left = [task for task in tasks if (task.dataset, task.fold) not in done]
        progress = Progress("treeffuser", len(tasks), left, options.jobs)
        for outcome in run_all(left, measure.run, jobs=options.jobs, time_limit=None):
            if outcome.status == "ok":
                store.append([outcome.result])
            progress.tell(outcome.task, outcome.seconds, outcome.problem)


def known(options: argparse.Namespace) -> dict[tuple[str, int], Row]:
    """Return the results at hand by dataset and fold."""
    wanted = {"folds": options.folds, "max_rows": options.max_rows}.items()
    return {(row["dataset"], row["fold"]): row for row in lines.read(options.results) if wanted <= row.items()}


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=4000)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=Path("treeffuser.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--ours", type=Path, default=Path("accuracy.jsonl"), help="results of benchmarks/accuracy.py")
    parser.add_argument("--base", default="lightgbm", help="the base model of ours")
    parser.add_argument("--max-trees", type=int, default=500, help="that ours were run with")
    add_report(parser)
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()
