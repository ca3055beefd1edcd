"""Other packages that predict uncertainty, timed on the rows that ``speed.py`` gives to ibug: each on its real package.

    python -m benchmarks.speed.peers NGBoost 8000 500    one line of JSON

It needs neither ibug nor the newest NumPy, so that ``speed.py --peers-python`` can start it in another environment:
PGBM and some others want older versions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from benchmarks.common.threads import use_one_thread
from benchmarks.common.timing import BATCH, Task, in_turn, medians, one_by_one, seconds, single_rows
from benchmarks.speed.rows import synthetic_rows

CONFORMALIZED = 1000  # rows of the training rows that MAPIE sets aside
LEVEL = 0.9

Predict = Callable[[Any], object]


def ngboost(X: Any, y: Any, n_trees: int) -> Predict:
    """Natural gradient boosting of both parameters of a normal distribution, with its own default trees."""
    from ngboost import NGBRegressor

    model = NGBRegressor(n_estimators=n_trees, verbose=False, random_state=0).fit(X, y)
    return lambda rows: model.pred_dist(rows).params


def pgbm(X: Any, y: Any, n_trees: int) -> Predict:
    """Mean and variance from the statistics of leaves: the variant on scikit-learn's histogram trees."""
    from pgbm.sklearn import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        max_iter=n_trees, max_leaf_nodes=31, learning_rate=0.05, early_stopping=False, with_variance=True
    ).fit(X, y)
    return lambda rows: model.predict(rows, return_std=True)


def cbu(X: Any, y: Any, n_trees: int) -> Predict:
    """CatBoost's trees of two outputs, mean and variance."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        iterations=n_trees, depth=7, loss_function="RMSEWithUncertainty", thread_count=1, random_seed=0,
        allow_writing_files=False, verbose=False,
    ).fit(X, y)  # fmt: skip
    return lambda rows: model.predict(rows)


def quantile_forest(X: Any, y: Any, n_trees: int) -> Predict:
    """Quantiles of the training targets in the same leaves of a random forest."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_estimators=n_trees, n_jobs=1, random_state=0).fit(X, y)
    return lambda rows: model.predict(rows, quantiles=[(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])


def mapie(X: Any, y: Any, n_trees: int) -> Predict:
    """Three quantile models of LightGBM, conformalized."""
    from lightgbm import LGBMRegressor
    from mapie.regression import ConformalizedQuantileRegressor

    base = LGBMRegressor(
        objective="quantile", alpha=0.5, n_estimators=n_trees, num_leaves=31, learning_rate=0.05, n_jobs=1, verbose=-1
    )
    kept = min(CONFORMALIZED, len(y) // 2)
    model = ConformalizedQuantileRegressor(base, confidence_level=LEVEL).fit(X[kept:], y[kept:])
    model.conformalize(X[:kept], y[:kept])
    return lambda rows: model.predict_interval(rows)


#: The package whose version counts, and what trains the model.
PEERS: Mapping[str, tuple[str, Callable[[Any, Any, int], Predict]]] = {
    "NGBoost": ("ngboost", ngboost),
    "PGBM": ("pgbm", pgbm),
    "CBU": ("catboost", cbu),
    "quantile-forest": ("quantile-forest", quantile_forest),
    "MAPIE CQR": ("mapie", mapie),
}


def measure(name: str, n_rows: int, n_trees: int, n_rounds: int) -> dict[str, Any]:
    """Train one peer and time it: seconds per row, in a batch and alone; or say that it is absent."""
    package, train = PEERS[name]
    X, y = synthetic_rows(n_rows + BATCH)
    queries = X[n_rows:]
    trained: list[Predict] = []
    try:
        training_time = seconds(lambda: trained.append(train(X[:n_rows], y[:n_rows], n_trees)))
    except ImportError as error:
        return {"absent": str(error)}
    predict = trained[0]
    tasks = {"batch": Task(lambda: predict(queries), BATCH), "alone": one_by_one(predict, single_rows(queries))}
    times = medians(in_turn(tasks, n_rounds))
    return {"version": version(package), "training_time": training_time, "per_row": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("rows", type=int)
    parser.add_argument("trees", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.peer, options.rows, options.trees, options.rounds)))


if __name__ == "__main__":
    use_one_thread()  # before anything loads OpenMP
    main()
