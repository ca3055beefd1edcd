"""Families on MEPS, the number of medical visits in a year: the paper's section 5.4, with what the default does there.

    IBUG_DATA=folder python benchmarks/posterior_meps.py [--folds 3] [--max-rows 4000] [--dataset meps]
        [--report benchmarks/results/study.md]

The paper reports a test NLL of 3.793 with normal distributions and of -6.887 with Weibull ones. For each fold CatBoost
is trained on four fifths of the training part; the rest chooses k and calibrates, by NLL. "fitted" families are fitted
to the targets of the neighbours, as the paper does; the others keep the model's prediction as their mean, and the
calibrated variance. "rounded" is the NLL of the probability of the cell around each target, halfway to the next
targets, divided by its width: spikes that are narrower than the target's own steps cannot lower it. The visits are
whole numbers, so it tells how well they are predicted, and the NLL does not. There a probability below one in the
number of training rows counts as that: a stack whose experts are all on neighbours gives none to numbers that none of
them has.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import document
from benchmarks.common.arguments import add_report, parser_of
from benchmarks.common.data import load, without_missing_categories
from benchmarks.common.folds import fold_of
from benchmarks.common.paths import data_folder
from benchmarks.common.progress import say
from benchmarks.posterior.choice import FOLDS, Floats, make_estimator, rounded_nll
from ibug import IBUGRegressor
from ibug.metrics import coverage, crps, nll

_PAPER: dict[str, Any] = {"spread": "targets", "scoring": "nll"}
_FITTED: dict[str, Any] = {**_PAPER, "location": "neighbors", "calibrate": False}

#: The arguments of IBUGRegressor, and what the paper has beside.
METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "normal": ({"distribution": "normal", **_PAPER}, "3.793"),
    "Weibull, fitted": ({"distribution": "weibull", **_FITTED}, "-6.887"),
    "Weibull": ({"distribution": "weibull", **_PAPER}, ""),
    "KDE, fitted": ({"distribution": "kde", **_FITTED}, ""),
    "KDE": ({"distribution": "kde", **_PAPER}, ""),
    "default, by NLL": ({"scoring": "nll"}, ""),
    "default": ({}, ""),
}
COLUMNS = ("NLL", "rounded", "CRPS", "90 % hold")


def main() -> None:
    options = parse_options()
    X, y = load(options.dataset, data_folder(options.data), options.max_rows)
    folds = []
    for number in range(options.folds):
        say(f"{options.dataset}: fold {number + 1} of {options.folds} …")
        folds.append(one_fold(X, y, number, options.booster))
    printed = table(folds, options.dataset, len(y))
    print(printed)
    if options.report:
        document.write(options.report, "posterior_meps.py", f"{document.command()}\n\n{printed}")


def one_fold(X: Any, y: Floats, number: int, booster: str) -> dict[str, tuple[float, ...]]:
    """Return the scores of each method on the test part of a fold; the model is trained once."""
    X = without_missing_categories(X)
    train, test = fold_of(len(y), number, FOLDS)
    part, held_out = train_test_split(train, test_size=0.2, random_state=0)
    estimator, fit_params = make_estimator(booster, X)
    model = estimator.fit(X.iloc[part], y[part], **fit_params)
    scores = {}
    for name, (arguments, _) in METHODS.items():
        u = IBUGRegressor(model, prefit=True, random_state=0, **arguments)
        u.fit(X.iloc[part], y[part], X_val=X.iloc[held_out], y_val=y[held_out])
        found = u.predict_dist(X.iloc[test])
        inside = coverage(y[test], np.stack(found.interval(0.9), axis=1), 0.9)
        rounded = rounded_nll(y[test], found, y[train], least=1 / len(part))
        scores[name] = nll(y[test], found), rounded, crps(y[test], found), inside
    return scores


def table(folds: list[dict[str, tuple[float, ...]]], dataset: str, n_rows: int) -> str:
    """Return the mean scores of each method over the folds."""
    lines = [
        f"{dataset}, {n_rows:,} rows, {len(folds)} of {FOLDS} folds: mean scores of test rows, lower is better",
        "",
    ]
    lines.append(f"{'distribution':18}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'paper: NLL':>14}")
    for name, (_, paper) in METHODS.items():
        *means, inside = np.mean([fold[name] for fold in folds], axis=0)
        lines.append(f"{name:18}" + "".join(f"{mean:11.3f}" for mean in means) + f"{inside:11.1%}{paper:>14}")
    return "\n".join(line.rstrip() for line in lines)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--dataset", default="meps")
    parser.add_argument("--data", type=Path, help="the folder with its file; default: IBUG_DATA")
    parser.add_argument("--folds", type=int, default=3, choices=range(1, FOLDS + 1), help="the first of ten folds")
    parser.add_argument("--max-rows", type=int, default=4000)
    parser.add_argument("--booster", choices=("catboost", "lightgbm"), default="catboost")
    add_report(parser)
    return parser.parse_args()
