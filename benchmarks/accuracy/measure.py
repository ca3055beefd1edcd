"""The scores of every method on one fold of one dataset, for one base model or for the peers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import methods
from benchmarks.accuracy.fold import Floats, Fold
from benchmarks.accuracy.methods import Setting
from benchmarks.accuracy.models import Models
from benchmarks.accuracy.peers import Peer
from benchmarks.accuracy.results import Experiment
from benchmarks.common.data import load
from benchmarks.common.quiet import quiet
from benchmarks.study.task import NotRun
from ibug.distributions import Distribution, Empirical
from ibug.metrics import coverage, crps, interval_score, mean_width, nll, rmse

COVERAGE = 0.9


@dataclass(frozen=True)
class Task:
    """One dataset, one fold, and what is to be measured there: all of it on one base model, or all of it peers."""

    dataset: str
    fold: int
    settings: tuple[Setting, ...]
    experiment: Experiment
    folder: Path | None
    threads: int

    def __str__(self) -> str:
        return f"{self.dataset} fold {self.fold + 1} {self.kind}"

    @property
    def kind(self) -> str:
        """What decides how long it takes."""
        return self.settings[0].base or "peers"


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return a row for each setting: its scores, or the reason why there are none."""
    X, y = load(task.dataset, task.folder, task.experiment.max_rows)
    fold = Fold(X, y, task.fold, task.experiment.folds)
    predictors = Predictors(fold, task.experiment.max_trees, task.threads)
    rows = []
    for setting in task.settings:
        place = {"dataset": task.dataset, "fold": task.fold, **asdict(setting), **task.experiment.as_row()}
        rows.append({**place, "n": len(y), "n_val": len(fold.y_val), **_result(predictors, setting)})
    return rows


def _result(predictors: Predictors, setting: Setting) -> dict[str, Any]:
    try:
        return {"status": "ok", **measured(predictors, setting)}
    except NotRun as reason:
        return {"status": "skipped", "reason": str(reason)}
    except Exception as error:  # whatever a library may do, the others go on
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}


class Predictors:
    """The fitted methods of one fold, each fitted once: an ensemble has the members that are measured alone."""

    def __init__(self, fold: Fold, max_trees: int, threads: int) -> None:
        self.fold = fold
        self.models = Models(fold, max_trees, threads)
        self._fitted: dict[Any, tuple[Any, float]] = {}

    def fitted(self, setting: Setting) -> tuple[Any, float]:
        """Return a regressor of ibug, and the seconds of processor time that it took."""
        return self._once(setting, lambda: methods.fit(setting, self.models, lambda member: self.fitted(member)[0]))

    def peer(self, name: str) -> tuple[Peer, float]:
        """Return another package's method, tuned for both scores, and the seconds of processor time that it took."""
        return self._once(name, lambda: Peer(name, self.fold))

    def _once(self, key: Any, make: Callable[[], Any]) -> tuple[Any, float]:
        if key not in self._fitted:
            start = time.process_time()
            made = make()
            self._fitted[key] = made, time.process_time() - start
        return self._fitted[key]


def measured(predictors: Predictors, setting: Setting) -> dict[str, Any]:
    """Return the scores of one setting on the test rows, and what it was made of."""
    fold = predictors.fold
    about: dict[str, Any]
    if setting.method in methods.PEERS and setting.method != "cbu":
        peer, fit_seconds = predictors.peer(setting.method)
        start = time.process_time()
        distribution = peer.predict_dist(setting.scoring)
        predict_seconds = time.process_time() - start
        point, about = peer.predict(setting.scoring), {"parameters": peer.about(setting.scoring)}
    else:
        u, fit_seconds = predictors.fitted(setting)
        start = time.process_time()
        distribution = u.predict_dist(fold.X_test)
        predict_seconds = time.process_time() - start
        point = u.predict(fold.X_test)
        base = setting.base or setting.method
        about = {"trees": predictors.models.n_trees(base, setting.scoring), "spread": getattr(u, "spread_", "")}
        if hasattr(u, "source_"):
            about["tree_fraction"] = u.source_.tree_fraction
    times = {"fit_seconds": round(fit_seconds, 2), "predict_seconds": predict_seconds, "n_test": len(fold.y_test)}
    return {**scores(fold.y_test, point, distribution), **times, **about}


def scores(y: Floats, point: Floats, distribution: Distribution) -> dict[str, Any]:
    """Return the scores of predictions: of the distributions, of their 90 % intervals, and of two point predictions.

    Parameters
    ----------
    y, point : ndarray of shape (n_rows,)
        Targets, and the model's own predictions.
    distribution
        The predicted distributions.
    """
    interval = np.stack(distribution.interval(COVERAGE), axis=1)
    return {
        "crps": crps(y, distribution),
        "nll": None if isinstance(distribution, Empirical) else nll(y, distribution),  # quantiles have no density
        "coverage": coverage(y, interval, COVERAGE),
        "width": mean_width(y, interval, COVERAGE),
        "interval_score": interval_score(y, interval, COVERAGE),
        "rmse": rmse(y, point),
        "rmse_mean": rmse(y, distribution.mean()),
    }
