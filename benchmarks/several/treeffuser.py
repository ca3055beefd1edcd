"""Treeffuser on one fold of one table with several targets; nothing here needs ibug."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.common.data import Floats, without_missing_categories
from benchmarks.common.folds import fold_of
from benchmarks.common.quiet import quiet
from benchmarks.several.data import load_several
from benchmarks.several.task import Task

SAMPLES = 100


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return the scores of Treeffuser with its default settings, on one thread."""
    from treeffuser import Treeffuser

    X, Y = load_several(task.dataset, task.folder, task.max_rows)
    X = without_missing_categories(X)
    train, test = fold_of(len(Y), task.fold, task.folds)
    start = time.process_time()
    model = Treeffuser(seed=0, n_jobs=1).fit(X.iloc[train].reset_index(drop=True), Y[train])
    samples = np.asarray(model.sample(X.iloc[test].reset_index(drop=True), n_samples=SAMPLES, seed=0), np.float64)
    seconds = time.process_time() - start
    unit = Y[train].std(axis=0)
    samples, values = samples.reshape(SAMPLES, len(test), -1) / unit, Y[test] / unit
    scores = {"energy": float(energy(samples, values).mean()), "variogram": float(variogram(samples, values).mean())}
    return [{**task.as_row(), "method": "treeffuser", **scores, "seconds": seconds, "version": version("treeffuser")}]


def energy(samples: Floats, y: Floats) -> Floats:
    """Return the unbiased energy score of samples, (m, n, d), at y, (n, d): over pairs of different samples."""
    m = len(samples)
    away = np.linalg.norm(samples - y, axis=2).mean(axis=0)
    apart = np.array([np.linalg.norm(rows[:, None] - rows[None], axis=2).sum() for rows in samples.transpose(1, 0, 2)])
    return away - 0.5 * apart / (m * (m - 1))


def variogram(samples: Floats, y: Floats, p: float = 0.5) -> Floats:
    """Return the variogram score of samples, (m, n, d), at y, (n, d)."""
    total, d = np.zeros(len(y)), y.shape[1]
    for i in range(d):
        for j in range(i + 1, d):
            expected = (np.abs(samples[:, :, i] - samples[:, :, j]) ** p).mean(axis=0)
            total += np.square(np.abs(y[:, i] - y[:, j]) ** p - expected)
    return total
