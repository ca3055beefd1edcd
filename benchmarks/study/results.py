"""The results of the study: which task each row belongs to, and which tasks are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import lines
from benchmarks.common.lines import Row
from benchmarks.study.task import Task


def read(path: Path) -> list[Row]:
    """Return the rows of each task's last run."""
    return latest(lines.read(path))


def task_of(row: Row) -> Task:
    """Return the task that a row is a result of."""
    return Task(row["dataset"], row["method"], row["fold"], row["grid"], row["max_rows"])


def latest(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of each task's last run: a task that failed can have been run again."""
    by_task: dict[Task, dict[Any, Row]] = {}
    for row in rows:
        known = by_task.setdefault(task_of(row), {})
        if any(old["run"] != row["run"] for old in known.values()):
            known.clear()
        known[row.get("scoring"), row.get("calibrated")] = row
    return [row for known in by_task.values() for row in known.values()]


def complete(rows: Iterable[Row], settings: int) -> Iterator[Task]:
    """Yield the tasks that are done: with a row for each setting, or with the reason why there is none."""
    counts: dict[Task, int] = {}
    for row in rows:
        task = task_of(row)
        counts[task] = counts.get(task, 0) + (settings if row["status"] != "ok" else 1)
    yield from (task for task, count in counts.items() if count >= settings)
