"""All methods on one split of one case: with the same model, rows and distributions of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.data import Floats
from benchmarks.common.quiet import quiet
from benchmarks.totals import schaake
from benchmarks.totals.data import Case, divided, load_case
from benchmarks.totals.task import Task

COVERAGE = 0.9


@quiet()
def run(task: Task) -> list[dict[str, Any]]:
    """Return coverage, CRPS and width of the totals of test groups by each method, on one thread."""
    from ibug.totals import group_sums

    case = load_case(task.case, task.split, task.folder, task.max_units)
    train, valid, test = divided(case, task.split)
    u = fitted(train, valid, task.trees)
    observed = group_sums(test.y, test.groups)
    rows = []

    def add(method: str, crps: Floats, low: Floats, high: Floats, **more: Any) -> None:
        inside = (low <= observed) & (observed <= high)
        scores = {"coverage": inside.mean(), "crps": crps.mean(), "width": (high - low).mean(), "groups": len(inside)}
        rows.append({**task.as_row(), "method": method, **scores, **more})

    found = u.dependence_
    learned = {
        "kinds": list(found.names),
        "estimates": found.estimate.tolist(),
        "errors": found.standard_error.tolist(),
        "used": found.correlation.tolist(),
        "units": len(np.unique(valid.units)),
    }
    for method, blocks in (("factor", test.blocks), ("independent", False)):
        total = u.total_dist(test.X, test.groups, blocks=blocks)
        add(method, total.crps(observed), *total.interval(COVERAGE), **(learned if method == "factor" else {}))

    distribution = u.predict_dist(test.X)
    quantiles = np.asarray(distribution.ppf(schaake.LEVELS[None, :]))
    added = np.stack([group_sums(column, test.groups) for column in quantiles.T], axis=1)
    low, high = (group_sums(ends, test.groups) for ends in distribution.interval(COVERAGE))
    add("ends", schaake.crps_of_quantiles(added, observed), low, high)

    predicted = u.predict_dist(valid.X)
    before, at = (predicted.cdf(y) for y in (np.nextafter(valid.y, -np.inf), valid.y))
    known = schaake.ranks(before, at, np.random.default_rng(task.split))
    drawn = schaake.samples(quantiles, test.units, test.groups, known, valid.units)
    low, high = np.quantile(drawn, [0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2], axis=1, method="weibull")
    add("ranks", schaake.crps_of_samples(drawn, observed), low, high)
    return rows


def fitted(train: Case, valid: Case, trees: int) -> Any:
    """Return a regressor of a trained LightGBM model, which has learned from validation rows and their blocks."""
    from lightgbm import LGBMRegressor

    from ibug import IBUGRegressor

    model = LGBMRegressor(n_estimators=trees, learning_rate=0.05, verbose=-1, n_jobs=1, random_state=0)
    model.fit(train.X, train.y)
    u = IBUGRegressor(model, prefit=True, random_state=0, n_jobs=1)
    return u.fit(train.X, train.y, X_val=valid.X, y_val=valid.y, blocks_val=valid.blocks)
