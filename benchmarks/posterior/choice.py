"""Does a family chosen on validation rows beat the normal distribution? The paper's experiment (section 5.4).

    IBUG_DATA=folder python benchmarks/posterior_choice.py [--datasets wine,bike] [--folds 10] [--max-rows 10000]
        [--report docs/posterior.md]

For each dataset and fold: CatBoost is trained (LightGBM with --booster lightgbm), the family and k are chosen on a
fifth of the training part by NLL, the model is trained anew on all of it, and the NLL on the test part is compared with
that of the normal distribution. The paper's figures stand beside ours where it has them.

A density can be made arbitrarily high at values that occur again and again, so an NLL of a discrete target measures how
well a distribution hits these values, not how well it predicts. "ties" is the share of test targets that also occur in
the training part. "rounded" is the NLL of the probability of the cell around each target, halfway to the next targets,
divided by its width: spikes narrower than the target's own steps cannot lower it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import document
from benchmarks.common.arguments import add_datasets, add_report, each_dataset, parser_of
from benchmarks.common.data import categories, without_missing_categories
from benchmarks.common.folds import fold_of
from benchmarks.common.progress import say
from ibug import IBUGRegressor
from ibug.metrics import crps, nll

Floats = NDArray[np.float64]
FOLDS = 10

# Test NLL: IBUG-CatBoost with a normal distribution, and with the family that it chose; section 5.4 of the paper.
PAPER = {"wine": ("0.910", "0.785 (KDE)"), "meps": ("3.793", "-6.887 (Weibull)")}


def main() -> None:
    options = parse_options()
    lines = [
        f"{'dataset':13}{'ties':>6}  {'family (folds)':30}{'NLL normal':>11}{'chosen':>9}{'rounded: normal':>17}"
        f"{'chosen':>9}{'CRPS normal':>13}{'chosen':>10}   {'paper normal':>12} {'chosen':>16}"
    ]
    print(lines[0], flush=True)
    for name, X, y in each_dataset(options):
        rows = []
        for number in range(options.folds):
            say(f"{name}: fold {number + 1} of {options.folds} …")
            rows.append(one_fold(X, y, *fold_of(len(y), number, FOLDS), options.booster))
        lines.append(line_of(name, rows))
        print(lines[-1], flush=True)
    if options.report:
        document.write(options.report, "posterior_choice.py", "\n".join(line.rstrip() for line in lines))


def one_fold(X: Any, y: Floats, train: Any, test: Any, booster: str) -> dict[str, Any]:
    """Return the scores of the normal distribution and of the chosen family on one test part."""
    if booster == "catboost":
        X = without_missing_categories(X)
    X_train, y_train, X_test, y_test = X.iloc[train], y[train], X.iloc[test], y[test]
    result: dict[str, Any] = {"ties": float(np.mean(np.isin(y_test, y_train)))}
    estimator, fit_params = make_estimator(booster, X)
    for kind in ("normal", "tune"):
        u = IBUGRegressor(estimator, distribution=kind, spread="targets", scoring="nll", random_state=0).fit(
            X_train, y_train, **fit_params
        )
        found = u.predict_dist(X_test)
        result[kind] = nll(y_test, found), rounded_nll(y_test, found, y_train), crps(y_test, found)
    result["family"] = u.distribution_
    return result


def make_estimator(booster: str, X: Any) -> tuple[Any, dict[str, Any]]:
    """Return the estimator, and the arguments of its `fit` that name categorical columns."""
    if booster == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=300, learning_rate=0.05, random_state=0, verbose=-1, n_jobs=1), {}
    from catboost import CatBoostRegressor

    estimator = CatBoostRegressor(iterations=500, random_seed=0, verbose=0, allow_writing_files=False, thread_count=1)
    return estimator, {"cat_features": categories(X)}


def rounded_nll(y: Floats, distribution: Any, y_train: Floats, least: float = 1e-300) -> float:
    """Return the mean of −log(P(cell) / width) over cells that reach halfway to the next lower and higher target.

    A probability below `least` counts as that.
    """
    known = np.unique(np.concatenate([y_train, y]))
    if len(known) < 2:
        return float("nan")
    middle = (known[1:] + known[:-1]) / 2
    edges = np.concatenate([[2 * known[0] - middle[0]], middle, [2 * known[-1] - middle[-1]]])
    cell = np.searchsorted(known, y)
    low, high = edges[cell], edges[cell + 1]
    probability = np.maximum(distribution.cdf(high) - distribution.cdf(low), least)
    return float(np.mean(np.log(high - low) - np.log(probability)))


def line_of(name: str, rows: list[dict[str, Any]]) -> str:
    """Return the line of one dataset."""
    families, counts = np.unique([row["family"] for row in rows], return_counts=True)
    order = np.argsort(-counts)
    shown = ", ".join(f"{families[i]} ({counts[i]})" for i in order[:2])
    normal, chosen = (np.mean([row[kind] for row in rows], axis=0) for kind in ("normal", "tune"))
    paper = PAPER.get(name, ("", ""))
    return (
        f"{name:13}{np.mean([row['ties'] for row in rows]):6.0%}  {shown:30}{normal[0]:11.3f}{chosen[0]:9.3f}"
        f"{normal[1]:17.3f}{chosen[1]:9.3f}{normal[2]:13.4g}{chosen[2]:10.4g}   {paper[0]:>12} {paper[1]:>16}"
    )


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=10_000)
    parser.add_argument("--folds", type=int, default=FOLDS, choices=range(1, FOLDS + 1), help="the first of ten folds")
    add_report(parser)
    parser.add_argument("--booster", choices=("catboost", "lightgbm"), default="catboost")
    return parser.parse_args()
