"""The CRPS of each target once all others are known, against that of its marginal, on one fold of one table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common.folds import fold_of
from benchmarks.common.quiet import quiet
from benchmarks.several.data import load_several
from benchmarks.several.measure import booster, trees_for
from benchmarks.several.task import Task


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return both scores, means over targets in units of their training deviation, on one thread."""
    from sklearn.multioutput import MultiOutputRegressor

    from ibug import IBUGRegressor

    X, Y = load_several(task.dataset, task.folder, task.max_rows)
    train, test = fold_of(len(Y), task.fold, task.folds)
    X_train, X_test = X.iloc[train].reset_index(drop=True), X.iloc[test].reset_index(drop=True)
    n_trees = trees_for(X_train, Y[train])
    u = IBUGRegressor(MultiOutputRegressor(booster(n_trees)), random_state=0, n_jobs=1).fit(X_train, Y[train])
    joint, unit, d = u.predict_dist(X_test), Y[train].std(axis=0), Y.shape[1]
    marginal = joint.crps(Y[test]).mean(axis=0) / unit
    start = time.process_time()
    found = [
        joint.conditional(j, {g: Y[test, g] for g in range(d) if g != j}).crps(Y[test, j]).mean() / unit[j]
        for j in range(d)
    ]
    seconds = time.process_time() - start
    scores = {"crps": float(np.mean(found)), "marginal": float(np.mean(marginal))}
    worst = {"worst": float(np.max(found / marginal)), "best": float(np.min(found / marginal))}
    return [{**task.as_row(), "method": "conditional", **scores, **worst, "seconds": seconds, "trees": n_trees}]
