"""Which tasks are to be done, and doing them: in processes, with progress, each result stored at once."""

from __future__ import annotations

import datetime
import platform
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import ibug
from benchmarks.common.lines import Row, Store
from benchmarks.common.progress import Progress
from benchmarks.common.quiet import quiet
from benchmarks.common.threads import limit_threads
from benchmarks.common.workers import Outcome, run_all
from benchmarks.study import protocol
from benchmarks.study.methods import METHODS, SCORINGS
from benchmarks.study.results import complete, read, task_of
from benchmarks.study.task import NotRun, Task

SETTINGS = 2 * len(SCORINGS)


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    datasets: Sequence[str]
    methods: Sequence[str]
    folds: int
    grid: str = "quick"
    max_rows: int | None = None

    def tasks(self) -> list[Task]:
        """Return the tasks, folds outermost: a run that is stopped has whole folds."""
        return [
            Task(dataset, method, fold, self.grid, self.max_rows)
            for fold in range(self.folds)
            for dataset in self.datasets
            for method in self.methods
        ]


def remaining(plan: Plan, rows: list[Row], *, retry: bool = False) -> list[Task]:
    """Return the tasks that have no result yet; with `retry` those that failed or were stopped are among them."""
    kept = [row for row in rows if row["status"] in ("ok", "skipped")] if retry else rows
    done = set(complete(kept, SETTINGS))
    return [task for task in plan.tasks() if task not in done]


def run(
    plan: Plan,
    path: Path,
    folder: Path | None,
    *,
    jobs: int = 1,
    time_limit: float | None = None,
    retry: bool = False,
    stream: TextIO | None = None,
    work: Any = None,
) -> list[Outcome]:
    """Do what is left of a plan, and return what came of it.

    Parameters
    ----------
    plan
        What is to be run.
    path
        The file with the results, new ones are appended.
    folder
        Where the datasets are.
    jobs, time_limit
        Processes, and seconds for each task.
    retry
        Try again what failed before.
    stream
        Where progress is told; standard error by default.
    work : function of a Task
        What is done with each; for tests.
    """
    limit_threads()  # for the processes to come
    work = work or partial(_work, folder=folder, memory=path.with_suffix(".models"))
    outcomes = []
    with Store(path) as store:
        tasks = remaining(plan, read(path), retry=retry)
        progress = Progress("study", len(plan.tasks()), tasks, jobs, stream)
        for outcome in run_all(tasks, work, jobs=jobs, time_limit=time_limit, skip=NotRun):
            store.append(rows_of(outcome))
            progress.tell(outcome.task, outcome.seconds, outcome.problem)
            outcomes.append(outcome)
    return outcomes


def rows_of(outcome: Outcome) -> list[Row]:
    """Return the rows to store: one for each setting, or one with the reason why there is none."""
    common = {
        "run": uuid.uuid4().hex[:12],
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": outcome.seconds,
    }
    if outcome.status == "ok":
        return [{**row, **common} for row in outcome.result]
    return [{**outcome.task.as_row(), "status": outcome.status, "reason": outcome.reason, **common}]


@quiet()  # MAPIE tells of every crossing of quantiles
def _work(task: Task, *, folder: Path | None, memory: Path) -> list[Row]:
    versions = installed(METHODS[task.method].package)
    return [{**row, "versions": versions} for row in protocol.run(task, folder, memory)]


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of Python, ibug, NumPy, scikit-learn and the packages."""
    names = {"sklearn": "scikit-learn", "quantile_forest": "quantile-forest"}
    found = {"Python": platform.python_version(), "ibug": ibug.__version__}
    for package in ("numpy", "sklearn", *packages):
        name = names.get(package, package)
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def status(plan: Plan, path: Path) -> str:
    """Return a table of what is done, by method, and the reasons of what is not."""
    wanted = set(plan.tasks())
    rows = [row for row in read(path) if task_of(row) in wanted]
    done = set(complete(rows, SETTINGS))
    states: dict[Task, str] = {task_of(row): row["status"] for row in rows if task_of(row) in done}
    kinds = ("ok", "skipped", "failed", "timeout")
    lines = [f"{len(done)} of {len(wanted)} tasks are done ({path})", ""]
    lines.append(f"{'method':18}" + "".join(f"{kind:>9}" for kind in kinds) + f"{'left':>9}")
    for method in plan.methods:
        mine = [task for task in wanted if task.method == method]
        counts = [sum(states.get(task) == kind for task in mine) for kind in kinds]
        lines.append(f"{method:18}" + "".join(f"{count:9}" for count in (*counts, len(mine) - sum(counts))))
    whole = [fold + 1 for fold in range(plan.folds) if all(task in done for task in wanted if task.fold == fold)]
    lines += ["", f"whole folds: {', '.join(map(str, whole)) or 'none'}"]
    for row in rows:
        if row["status"] in ("failed", "timeout"):
            lines.append(f"{row['dataset']} {row['method']} fold {row['fold'] + 1} {row['status']}: {row['reason']}")
    return "\n".join(lines)
