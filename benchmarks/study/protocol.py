"""The paper's protocol (section 5.1): one dataset, one method, one fold, and the scores of four settings.

Of ten folds one is the test set. The rest is split 80/20 to tune hyperparameters and to calibrate; the method is then
fitted on all of it. The settings are the score that it is tuned for, CRPS or NLL, with and without calibration of the
variance. All four come from the same fit.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, train_test_split

from benchmarks.study.datasets import DATASETS, load
from benchmarks.study.encoding import encode
from benchmarks.study.memory import Memory
from benchmarks.study.methods import METHODS, SCORINGS, Fitted, Floats, Moments, Split, importable
from benchmarks.study.task import NotRun, Task
from ibug import VarianceCalibrator
from ibug.distributions import Distribution, Normal
from ibug.metrics import check_score, coverage, crps, interval_score, mace, mean_width, nll, rmse, sharpness

FOLDS = 10
FOLD_SEED = 1
SPLIT_SEED = 1
VALIDATION = 0.2
COVERAGE = 0.9


def run(task: Task, folder: Path | None, memory_folder: Path | None = None) -> list[dict[str, Any]]:
    """Return one result row for each setting."""
    method = METHODS[task.method]()
    if not importable(method.package):
        raise NotRun(f"{method.package} is not installed; nox's session `study` has it")
    X, y = _load(task.dataset, folder, task.max_rows)
    limit = method.row_limit.get(task.grid)
    if limit is not None and len(y) > limit:
        raise NotRun(f"{len(y)} rows; with this grid the method is run on up to {limit}, for its time")
    split, X_test, y_test = prepare(X, y, task, memory_folder)
    started, wall = time.process_time(), time.perf_counter()
    fitted = method.fit(split)
    common = {
        **task.as_row(),
        "status": "ok",
        "train_seconds": time.process_time() - started + split.memory.saved_seconds,
        "train_wall_seconds": time.perf_counter() - wall,
        "n_train": len(split.y_train),
        "n_test": len(y_test),
        "n_features": split.X_train.shape[1],
        "target_deviation": float(np.std(y)),
    }
    return [{**common, **row} for row in score(fitted, split, X_test, y_test)]


def prepare(X: Any, y: Floats, task: Task, memory_folder: Path | None = None) -> tuple[Split, Floats, Floats]:
    """Return what a method may see of a fold, and its test rows."""
    folds = KFold(FOLDS, shuffle=True, random_state=FOLD_SEED)
    train, test = list(folds.split(y))[task.fold]
    X_train, X_test = encode(X.iloc[train], X.iloc[test])
    part, held_out = train_test_split(np.arange(len(train)), test_size=VALIDATION, random_state=SPLIT_SEED)
    y_train = y[train]
    place = (task.dataset, task.max_rows, task.fold, len(y), float(np.sum(y)), X_train.shape)
    split = Split(
        X_train[part],
        y_train[part],
        X_train[held_out],
        y_train[held_out],
        X_train,
        y_train,
        grid=task.grid,
        seed=SPLIT_SEED,
        dataset=DATASETS[task.dataset].title,
        memory=Memory(memory_folder, place),
    )
    return split, X_test, y[test]


def score(fitted: Fitted, split: Split, X_test: Floats, y_test: Floats) -> list[dict[str, Any]]:
    """Return the scores of each setting."""
    rows = []
    own = fitted.interval(X_test, COVERAGE)
    for scoring in SCORINGS:
        _check(fitted.held_out[scoring], "validation rows")
        calibrator = VarianceCalibrator(scoring=scoring).fit(*fitted.held_out[scoring], split.y_val)
        started = time.process_time()
        plain = fitted.predict(X_test, scoring)
        seconds = (time.process_time() - started) / len(y_test)
        _check(plain, "test rows")
        for calibrated in (True, False):
            moments, learned = plain, {}
            if calibrated and (special := fitted.calibrated(X_test, scoring)) is not None:
                moments = special
            elif calibrated:
                moments = Moments(plain.mean, calibrator.transform(plain.variance))
                learned = {"gamma": calibrator.gamma_, "delta": calibrator.delta_}
            row = {"scoring": scoring, "calibrated": calibrated, "predict_seconds": seconds, **learned}
            normal = Normal(moments.mean, np.sqrt(moments.variance))
            row |= metrics(fitted.distribution(X_test, scoring, calibrated=calibrated) or normal, y_test)
            if own is not None:
                row["own_coverage"] = float(np.mean((own[:, 0] <= y_test) & (y_test <= own[:, 1])))
                row["own_width"] = float(np.mean(own[:, 1] - own[:, 0]))
            rows.append({**row, "parameters": fitted.parameters[scoring]})
    return rows


def metrics(predicted: Distribution, y: Floats) -> dict[str, float]:
    """Return the paper's scores of distributions, and how their 90 % intervals do."""
    return {
        "crps": crps(y, predicted),
        "nll": nll(y, predicted),
        "rmse": rmse(y, predicted.mean()),
        "check": check_score(y, predicted),
        "interval": interval_score(y, predicted),
        "mace": mace(y, predicted),
        "sharpness": sharpness(y, predicted),
        "coverage": coverage(y, predicted, COVERAGE),
        "width": mean_width(y, predicted, COVERAGE),
    }


def _check(moments: Moments, where: str) -> None:
    if not all(np.all(np.isfinite(each)) for each in moments):
        raise ArithmeticError(f"The method predicted means or variances that are no numbers for some {where}.")


@lru_cache(maxsize=2)
def _load(name: str, folder: Path | None, max_rows: int | None) -> tuple[Any, Floats]:
    return load(name, folder, max_rows)
