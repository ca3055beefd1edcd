"""Progress of commands that take long: lines on standard error, with the time that is left."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from statistics import mean
from typing import Protocol, TextIO


class Kind(Protocol):
    """A task: tasks of one kind are expected to take about the same time."""

    @property
    def kind(self) -> str:
        """What kind of task it is."""


def say(text: str) -> None:
    """Tell something that is not a result."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time in words."""
    minutes = round(seconds / 60)
    return f"{seconds:.0f} s" if seconds < 120 else f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


class Progress:
    """One line for each finished task, with the time that is left.

    A task is expected to take what others of its kind took in this run, or the average task if none is done.

    Parameters
    ----------
    name
        What each line begins with.
    total
        The number of tasks, with those that were done before.
    tasks
        Those that are left.
    jobs
        How many are worked on at a time.
    stream
        Where the lines are written; standard error by default.
    """

    def __init__(
        self, name: str, total: int, tasks: Sequence[Kind], jobs: int = 1, stream: TextIO | None = None
    ) -> None:
        self._name, self._total, self._jobs, self._stream = name, total, jobs, stream or sys.stderr
        self._left = Counter(task.kind for task in tasks)
        self._took: dict[str, list[float]] = {}
        left = len(tasks)
        if left < total:
            self._say(f"{total - left} of {total} tasks are done already; {left} are left")
        self._say(f"{left} tasks, {jobs} at a time")

    def tell(self, task: Kind, seconds: float, problem: str = "") -> None:
        """Report a finished task: how long it took, or what went wrong."""
        self._left[task.kind] -= 1
        self._took.setdefault(task.kind, []).append(seconds)
        done = self._total - sum(self._left.values())
        result = problem or f"{seconds:.1f} s"
        self._say(f"{done}/{self._total} {task}: {result}; {duration(self._seconds_left())} left")

    def _seconds_left(self) -> float:
        average = mean(seconds for each in self._took.values() for seconds in each)
        means = {kind: mean(each) for kind, each in self._took.items()}
        return sum(count * means.get(kind, average) for kind, count in self._left.items()) / self._jobs

    def _say(self, line: str) -> None:
        self._stream.write(f"[{self._name}] {line}\n")
        self._stream.flush()
