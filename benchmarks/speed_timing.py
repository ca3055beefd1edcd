"""How ``speed.py`` measures: processor time of one thread, tasks in turn.

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
    """Work to be timed, which is repeated where it is short, and how many rows or comparisons it does."""

    work: Callable[[], object]
    units: int

    def time(self) -> float:
        """Return the seconds per unit."""
        calls, elapsed = 0, 0.0
        while elapsed < LEAST_TIME:
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


def in_turn(tasks: Mapping[str, Task], n_rounds: int) -> dict[str, Floats]:
    """Time the tasks one after another, `n_rounds` times: seconds per unit, (n_rounds,) for each.

    In turn, so that what slows the machine down for a while touches all of them.
    """
    for task in tasks.values():
        task.work()
    rounds = [{name: task.time() for name, task in tasks.items()} for _ in range(n_rounds)]
    return {name: np.array([times[name] for times in rounds]) for name in tasks}


def ratio(times: Mapping[str, Floats], slow: str, fast: str) -> float:
    """Return the median of the ratios within each round."""
    return float(np.median(times[slow] / times[fast]))


def medians(times: Mapping[str, Floats]) -> dict[str, float]:
    """Return the median time of each task."""
    return {name: float(np.median(values)) for name, values in times.items()}


def peak_memory() -> int:
    """Return the most memory that the process has had, in bytes."""
    # Where there is one, the system's own account: `getrusage` of a child begins with what its parent had.
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def use_one_thread() -> None:
    """Keep every library to one thread; CatBoost, which predicts with all processors, by giving it only one."""
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def synthetic_rows(n_rows: int, n_features: int = 9) -> tuple[Floats, Floats]:
    """Draw rows (n_rows, n_features) and targets (n_rows,): a smooth mean of 8 features, noise that varies with one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_features))
    mean = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + np.exp(X[:, 3]) + X[:, 4] ** 2 * X[:, 5]
    mean += np.cos(4 * X[:, 6] * X[:, 7]) / 2
    return X, mean + (0.1 + 0.4 * np.abs(X[:, 8])) * rng.normal(size=n_rows)
