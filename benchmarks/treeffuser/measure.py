"""Treeffuser on one fold of one dataset: the CRPS of its samples and the time that they take.

Nothing here needs ibug, which wants newer packages than Treeffuser does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.data import load, without_missing_categories
from benchmarks.common.folds import fold_of
from benchmarks.common.quiet import quiet

Floats = NDArray[np.float64]

SAMPLES = 100


@dataclass(frozen=True)
class Task:
    """One dataset and one fold."""

    dataset: str
    fold: int
    folds: int
    max_rows: int
    folder: Path | None

    def __str__(self) -> str:
        return f"{self.dataset} fold {self.fold + 1}"

    @property
    def kind(self) -> str:
        """What decides how long it takes."""
        return self.dataset

    def as_row(self) -> dict[str, Any]:
        """Return the columns that name it."""
        return {"dataset": self.dataset, "fold": self.fold, "folds": self.folds, "max_rows": self.max_rows}


@quiet()
def run(task: Task) -> dict[str, Any]:
    """Return the scores of Treeffuser with its default settings, on one thread."""
    from treeffuser import Treeffuser

    X, y = load(task.dataset, task.folder, task.max_rows)
    X = without_missing_categories(X)
    train, test = fold_of(len(y), task.fold, task.folds)
    start = time.process_time()
    model = Treeffuser(seed=0, n_jobs=1).fit(X.iloc[train].reset_index(drop=True), y[train])
    fitted = time.process_time()
    samples = np.asarray(model.sample(X.iloc[test].reset_index(drop=True), n_samples=SAMPLES, seed=0), np.float64)
    predicted = time.process_time()
    samples = samples.reshape(SAMPLES, len(test))
    return {
        **task.as_row(),
        "crps": float(np.mean(crps_of_samples(samples, y[test]))),
        "rmse": float(np.sqrt(np.mean(np.square(samples.mean(axis=0) - y[test])))),
        "n_test": len(test),
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
        "samples": SAMPLES,
        "version": version("treeffuser"),
    }


def crps_of_samples(samples: Floats, y: Floats) -> Floats:
    """Return the unbiased estimate of the CRPS from m independent samples: E|x − y| − ½ E|x − x'| over pairs x ≠ x'.

    Parameters
    ----------
    samples : ndarray of shape (m, n_rows)
    y : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    m = len(samples)
    # In ascending order, the i-th smallest of m is the larger of i pairs and the smaller of m − 1 − i.
    weights = 2 * np.arange(m) - (m - 1)
    pairs = weights @ np.sort(samples, axis=0)  # the sum of |x − x'| over unordered pairs
    return np.abs(samples - y).mean(axis=0) - pairs / (m * (m - 1))
