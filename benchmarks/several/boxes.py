"""The coverage of joint boxes over 200 random splits of rows that the model has not seen into validation and new rows.

Given these rows, the splits are independent, and the guarantee of split conformal boxes holds for their mean exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.quiet import quiet
from benchmarks.several.data import load_several
from benchmarks.several.measure import booster
from benchmarks.several.task import Task

SPLITS, COVERAGE, N_TREES = 200, 0.9, 50


def names(folder: Path | None) -> list[str]:
    """Return the tables that are split."""
    return [*(() if folder is None else ("energy", "births", "households")), "branches"]


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return the mean coverage of boxes, and of intervals of each target by itself, over all splits."""
    from sklearn.multioutput import MultiOutputRegressor

    from ibug import IBUGRegressor

    X, Y = load_several(task.dataset, task.folder, task.max_rows)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(Y))
    train, others = rows[: len(rows) // 3], rows[len(rows) // 3 :]
    model = MultiOutputRegressor(booster(N_TREES)).fit(X.iloc[train], Y[train])
    n_valid = len(others) * 3 // 4
    u = IBUGRegressor(model, prefit=True, conformal="scale", residuals="none", random_state=0, n_jobs=1)
    u.fit(X.iloc[train], Y[train], X_val=X.iloc[others[:n_valid]], y_val=Y[others[:n_valid]])
    boxes, apart = [], []
    for _ in range(SPLITS):
        drawn = rng.permutation(others)
        valid, new = drawn[:n_valid], drawn[n_valid:]
        u.recalibrate(X.iloc[valid], Y[valid])
        for joint, found in ((True, boxes), (False, apart)):
            ends = u.predict_interval(X.iloc[new], COVERAGE, joint=joint)
            inside = (ends[:, :, 0] <= Y[new]) & (Y[new] <= ends[:, :, 1])
            found.append(inside.all(axis=1).mean())
    return [
        {
            **task.as_row(),
            "method": "boxes",
            "coverage": float(np.mean(boxes)),
            "error": float(np.std(boxes, ddof=1) / np.sqrt(SPLITS)),
            "all_intervals": float(np.mean(apart)),
            "n_conformal": u.rule_.boxes.n_rows,
            "n_new": len(others) - n_valid,
            "n_targets": Y.shape[1],
            "continuous": all(len(np.unique(column)) > 0.5 * len(column) for column in Y.T),
            "splits": SPLITS,
        }
    ]
