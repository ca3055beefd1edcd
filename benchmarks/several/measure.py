"""The joint stack, marginals of our own without dependence, and a Gaussian copula on them, on one fold of one table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import spearmanr

from benchmarks.common.data import Floats
from benchmarks.common.early_stopping import fit_lightgbm
from benchmarks.common.folds import fold_of
from benchmarks.common.quiet import quiet
from benchmarks.several.data import load_several
from benchmarks.several.task import Task

SAMPLES = 200
MOST_TREES, PATIENCE = 500, 30


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return the scores of all methods, each with the same models, on one thread."""
    from sklearn.multioutput import MultiOutputRegressor

    from ibug import IBUGRegressor
    from ibug.metrics import crps, energy_score, variogram_score

    X, Y = load_several(task.dataset, task.folder, task.max_rows)
    train, test = fold_of(len(Y), task.fold, task.folds)
    X_train, X_test = X.iloc[train].reset_index(drop=True), X.iloc[test].reset_index(drop=True)
    unit = Y[train].std(axis=0)
    n_trees = trees_for(X_train, Y[train])
    rows = []

    def add(method: str, samples: Floats, crps_of: list[float], seconds: float) -> None:
        scores = {
            "energy": energy_score(Y[test], samples, unit=unit),
            "variogram": variogram_score(Y[test], samples, unit=unit),
            "crps": float(np.mean(np.array(crps_of) / unit)),
        }
        rows.append({**task.as_row(), "method": method, **scores, "seconds": seconds, "trees": n_trees})

    start = time.process_time()
    joint = IBUGRegressor(MultiOutputRegressor(booster(n_trees)), random_state=0, n_jobs=1).fit(X_train, Y[train])
    found = joint.predict_dist(X_test)
    samples = found.rvs(SAMPLES, random_state=0)
    own = [crps(Y[test, j], found.marginal(j)) for j in range(len(unit))]
    add("joint", samples, own, time.process_time() - start)
    rows[-1]["exact"] = float(found.energy_score(Y[test]).mean())
    rows[-1]["weights"] = joint.stack_["weight"].tolist()

    start = time.process_time()
    marginals = [
        IBUGRegressor(booster(n_trees), random_state=0, n_jobs=1).fit(X_train, Y[train, j]).predict_dist(X_test)
        for j in range(len(unit))
    ]
    seconds = time.process_time() - start
    own = [crps(Y[test, j], one) for j, one in enumerate(marginals)]
    rng = np.random.default_rng(0)
    for method, correlation in (("independent", np.eye(len(unit))), ("copula", correlation_of(joint.residuals_))):
        scores = rng.multivariate_normal(np.zeros(len(unit)), correlation, size=(len(test), SAMPLES))
        drawn = np.stack([one.ppf(ndtr(scores[:, :, j])) for j, one in enumerate(marginals)], axis=2)
        add(method, drawn.transpose(1, 0, 2), own, seconds)
    return rows


def booster(n_trees: int) -> Any:
    """Return the model of one target."""
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=n_trees, learning_rate=0.05, verbose=-1, n_jobs=1, random_state=0)


def trees_for(X: Any, Y: Floats) -> int:
    """Return a number of trees that is good for all targets, by early stopping on a fifth of the rows."""
    rows = np.random.default_rng(0).permutation(len(Y))
    held_out, kept = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    found = [
        fit_lightgbm(booster(MOST_TREES), X.iloc[kept], column[kept], X.iloc[held_out], column[held_out], PATIENCE)
        for column in Y.T
    ]
    return max(10, int(np.mean(found)))


def correlation_of(residuals: Floats) -> Floats:
    """Return the correlations of a Gaussian copula: from Spearman's, of honest residuals."""
    found = np.atleast_2d(spearmanr(residuals).statistic)
    if found.shape == (1, 1):
        found = np.array([[1.0, found[0, 0]], [found[0, 0], 1.0]])
    correlation = 2 * np.sin(np.pi / 6 * found)
    values, vectors = np.linalg.eigh(correlation)
    correlation = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    deviation = np.sqrt(np.diag(correlation))
    return np.asarray(correlation / np.outer(deviation, deviation))
