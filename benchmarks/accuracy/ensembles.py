"""CRPS, NLL and RMSE of IBUG, of CBU and of both together, CatBoost as base.

    IBUG_DATA=folder python benchmarks/ensembles.py [--datasets concrete,wine] [--max-rows 5000] [--folds 3]

The paper's protocol (section 5.1) without the search over the base model's parameters: of ten folds the first ones are
predicted, a fifth of the training rows is held out to tune and calibrate by the score that is reported, and then the
models are trained on all of them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from catboost import CatBoostRegressor
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from benchmarks.common.arguments import add_datasets, each_dataset, parser_of
from benchmarks.common.data import categories
from benchmarks.common.progress import say
from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble
from ibug.metrics import crps, nll, rmse

Floats = NDArray[np.float64]
SCORES = {"crps": crps, "nll": nll}
METHODS = ("IBUG", "CBU", "average", "mixture")


def main() -> None:
    options = parse_options()
    for name, X, y in each_dataset(options):
        folds = list(KFold(10, shuffle=True, random_state=0).split(X))[: options.folds]
        scores = []
        for i, (train, test) in enumerate(folds):
            say(f"{name}, fold {i + 1} of {len(folds)} …")
            scores.append(one_fold(X, y, train, test, options.trees))
        print(f"\n{name}: {len(y)} rows, {len(folds)} folds\n{'':10}{'RMSE':>12}{'CRPS':>12}{'NLL':>12}")
        for method, row in zip(METHODS, np.mean(scores, axis=0), strict=True):
            print(f"{method:10}" + "".join(f"{score:12.5g}" for score in row), flush=True)


def one_fold(X: Any, y: Floats, train: NDArray[np.intp], test: NDArray[np.intp], trees: int) -> Floats:
    """Return RMSE, CRPS and NLL of each method, (n_methods, 3)."""
    model = CatBoostRegressor(
        iterations=trees,
        learning_rate=0.1,
        cat_features=tuple(categories(X)),
        random_seed=0,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    )
    X_train, y_train, X_test, y_test = X.iloc[train], y[train], X.iloc[test], y[test]
    table = np.empty((len(METHODS), 3))
    for column, (scoring, score) in enumerate(SCORES.items(), start=1):
        settings: dict[str, Any] = {"scoring": scoring, "random_state": 0, "n_jobs": 1}
        ibug = IBUGRegressor(model, distribution="normal", **settings)  # an average is one of normal distributions
        members = [("ibug", ibug), ("cbu", CBURegressor(model, **settings))]
        for _, member in members:
            member.fit(X_train, y_train)
        methods = [
            *(member for _, member in members),
            ProbabilisticEnsemble(members, prefit=True).fit(X_train, y_train),
            ProbabilisticEnsemble(members, combine="mixture", prefit=True).fit(X_train, y_train),
        ]
        for row, method in enumerate(methods):
            table[row, 0] = rmse(y_test, method.predict(X_test))
            table[row, column] = score(y_test, method.predict_dist(X_test))
    return table


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=5000)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=500)
    return parser.parse_args()
