"""How times are measured: processor time of one thread, tasks in turn.

It needs NumPy alone, for peers that live in an environment of their own.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = 512  # queries of a batch
ALONE = 16  # queries that come one by one
LEAST_TIME = float(os.environ.get("IBUG_LEAST_TIME", "0.1"))  # seconds that each timing lasts; less in the tests

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Work to be timed, and how many rows or comparisons it does; it is repeated until `least_time` is over."""

    work: Callable[[], object]
    units: int
    least_time: float = LEAST_TIME

    def time(self) -> float:
        """Return the seconds per unit."""
        calls, elapsed = 1, seconds(self.work)
        while elapsed < self.least_time:
            elapsed += seconds(self.work)
            calls += 1
        return elapsed / calls / self.units


def one_by_one(work: Callable[[Any], object], rows: list[Any]) -> Task:
    """Return the task to do the work for each of some single rows."""

    def all_alone() -> None:
        for row in rows:
            work(row)

    return Task(all_alone, len(rows))


def single_rows(rows: Any) -> list[Any]:
    """Return the first rows of an array or a pandas frame, each with its two axes."""
    cut = getattr(rows, "iloc", rows)
    return [cut[i : i + 1] for i in range(min(ALONE, len(rows)))]


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's time and not the clock's: what others do on the same machine is not to be measured."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(tasks: Mapping[str, Task], n_rounds: int, *, alternate: bool = False) -> dict[str, Floats]:
    """Time the tasks one after another, `n_rounds` times: seconds per unit, (n_rounds,) for each.

    In turn, so that what slows the machine down for a while touches all of them; if they `alternate`, every other round
    goes backward, so that no task always follows the same one.
    """
    for task in tasks.values():
        task.work()
    rounds = []
    for number in range(n_rounds):
        names = list(tasks)[:: -1 if alternate and number % 2 else 1]
        rounds.append({name: tasks[name].time() for name in names})
    return {name: np.array([times[name] for times in rounds]) for name in tasks}


def ratio(times: Mapping[str, Floats], slow: str, fast: str) -> float:
    """Return the median of the ratios within each round."""
    return float(np.median(times[slow] / times[fast]))


def medians(times: Mapping[str, Floats]) -> dict[str, float]:
    """Return the median time of each task."""
    return {name: float(np.median(values)) for name, values in times.items()}


def best(times: Mapping[str, Floats]) -> dict[str, float]:
    """Return the shortest time of each task."""
    return {name: float(np.min(values)) for name, values in times.items()}


def peak_memory() -> int:
    """Return the most memory that the process has had, in bytes."""
    # Where there is one, the system's own account: `getrusage` of a child begins with what its parent had.
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
