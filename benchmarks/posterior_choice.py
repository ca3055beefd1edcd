"""Does a family chosen on validation rows beat the normal law? The paper's experiment on posteriors (section 5.4).

    IBUG_DATA=folder python benchmarks/posterior_choice.py [--datasets wine,bike] [--folds 10] [--max-rows 10000]
        [--report docs/posterior.md]

For each dataset and fold: CatBoost is trained (LightGBM with --booster lightgbm), the family and k are chosen on a
fifth of the training part by NLL, the model is trained anew on all of it, and the NLL on the test part is compared with
that of the normal law. The paper's figures stand beside ours where it has them.

A density can be made arbitrarily high at values that occur again and again, so an NLL of a discrete target measures how
well a law hits these values, not how well it predicts. "ties" is the share of test targets that occur in the training
part, too; "rounded" is the NLL of the probability that the law gives to the interval around each target which no other
target is nearer to, divided by its width: it cannot be lowered by spikes narrower than the target's own steps.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import marks
import numpy as np
from data import data_folder, load, names
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from ibug import IBUGRegressor
from ibug.metrics import crps, nll

Floats = NDArray[np.float64]

# Test NLL: IBUG-CatBoost with a normal law, and with the family that it chose; section 5.4 of the paper.
PAPER = {"wine": ("0.910", "0.785 (KDE)"), "meps": ("3.793", "-6.887 (Weibull)")}


def main() -> None:
    options = parse_options()
    folder = data_folder(options.data)
    chosen = options.datasets.split(",") if options.datasets else names(folder)
    lines = [
        f"{'dataset':13}{'ties':>6}  {'family (folds)':30}{'NLL normal':>11}{'chosen':>9}{'rounded: normal':>17}"
        f"{'chosen':>9}{'CRPS normal':>13}{'chosen':>10}   {'paper normal':>12} {'chosen':>16}"
    ]
    print(lines[0], flush=True)
    for name in chosen:
        X, y = load(name, folder, options.max_rows)
        rows = []
        folds = list(KFold(10, shuffle=True, random_state=1).split(X))[: options.folds]
        for number, (train, test) in enumerate(folds, 1):
            print(f"{name}: fold {number} of {len(folds)} …", file=sys.stderr, flush=True)
            rows.append(one_fold(X, y, train, test, options.booster))
        lines.append(line_of(name, rows))
        print(lines[-1], flush=True)
    if options.report:
        marks.write(options.report, Path(__file__).name, "\n".join(line.rstrip() for line in lines))


def one_fold(X: Any, y: Floats, train: Any, test: Any, booster: str) -> dict[str, Any]:
    """Return the scores of the normal law and of the chosen family on one test part."""
    X_train, y_train, X_test, y_test = X.iloc[train], y[train], X.iloc[test], y[test]
    result: dict[str, Any] = {"ties": float(np.mean(np.isin(y_test, y_train)))}
    estimator, fit_params = make_estimator(booster, X)
    for kind in ("normal", "tune"):
        u = IBUGRegressor(estimator, distribution=kind, spread="targets", scoring="nll", random_state=0).fit(
            X_train, y_train, **fit_params
        )
        law = u.predict_dist(X_test)
        result[kind] = nll(y_test, law), rounded_nll(y_test, law, y_train), crps(y_test, law)
    result["family"] = u.distribution_
    return result


def make_estimator(booster: str, X: Any) -> tuple[Any, dict[str, Any]]:
    """Return the estimator, and what its `fit` needs to know of categorical columns."""
    if booster == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=300, learning_rate=0.05, random_state=0, verbose=-1, n_jobs=1), {}
    from catboost import CatBoostRegressor

    categories = [column for column in X if str(X[column].dtype) == "category"]
    for column in categories:  # CatBoost takes no missing categories
        X[column] = X[column].astype(object).where(X[column].notna(), "missing").astype("category")
    estimator = CatBoostRegressor(iterations=500, random_seed=0, verbose=0, allow_writing_files=False, thread_count=1)
    return estimator, {"cat_features": categories}


def rounded_nll(y: Floats, law: Any, y_train: Floats) -> float:
    """Return the mean of −log(P(cell) / width) over cells that reach halfway to the next lower and higher target."""
    known = np.unique(np.concatenate([y_train, y]))
    if len(known) < 2:
        return float("nan")
    middle = (known[1:] + known[:-1]) / 2
    edges = np.concatenate([[2 * known[0] - middle[0]], middle, [2 * known[-1] - middle[-1]]])
    cell = np.searchsorted(known, y)
    low, high = edges[cell], edges[cell + 1]
    probability = np.maximum(law.cdf(high) - law.cdf(low), 1e-300)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with Parquet files; default: IBUG_DATA, else bundled data")
    parser.add_argument("--datasets", help="names, with commas; default: all")
    parser.add_argument("--folds", type=int, default=10, help="so many of the ten folds")
    parser.add_argument("--max-rows", type=int, default=10_000)
    parser.add_argument("--report", type=Path, help="a document into which the table is written")
    parser.add_argument("--booster", choices=("catboost", "lightgbm"), default="catboost")
    return parser.parse_args()


if __name__ == "__main__":
    main()
