"""The time of totals of many rows in many groups, beside that of the distributions of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.common import timing
from benchmarks.common.quiet import quiet
from benchmarks.totals.data import divided, made
from benchmarks.totals.measure import fitted
from benchmarks.totals.task import Task

GROUPS, ROUNDS = 1000, 3


@quiet()
def run(task: Task, n_rows: int) -> list[dict[str, Any]]:
    """Return the seconds of both for rows that are in groups of the same size, on one thread."""
    train, valid, _ = divided(made("made-one", 0), 0)
    u = fitted(train, valid, task.trees)
    x = np.random.default_rng(1).uniform(-2, 2, size=(n_rows, train.X.shape[1]))
    X, day = pd.DataFrame(x, columns=train.X.columns), np.arange(n_rows) % GROUPS
    tasks = {
        "totals": timing.Task(lambda: u.total_dist(X, day, blocks=day), 1),
        "rows": timing.Task(lambda: u.predict_dist(X), 1),
    }
    found = timing.in_turn(tasks, ROUNDS, alternate=True)
    times = timing.medians(found)
    ratio = timing.ratio(found, "totals", "rows")
    return [{**task.as_row(), "method": "speed", "n_rows": n_rows, "groups": GROUPS, "ratio": ratio, **times}]
