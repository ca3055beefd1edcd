"""The main job on real data: a trained LightGBM model gets 90 % intervals that hold, without retraining it.

Run ``make demo``, or ``python examples/demo.py`` where ``ibug-learn[lightgbm,plot]`` is installed. The data come with
scikit-learn. ``--california`` takes California's house prices instead, which scikit-learn downloads once (0.4 MB).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import fetch_california_housing, load_breast_cancer
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.metrics import coverage, interval_score, mean_width
from ibug.plotting import IntervalDisplay

LEVEL = 0.9
NAIVE = "prediction ± 1.64 RMSE"
QUANTILES = "two quantile models"
PICTURE = Path("build") / "demo.png"


class Table(NamedTuple):
    """Real rows, and what they are."""

    X: np.ndarray  # (n_rows, n_features)
    y: np.ndarray  # (n_rows,)
    title: str
    target: str
    feature: str  # shown beside the neighbours
    column: int
    options: dict[str, Any]  # of LightGBM
    n_splits: int
    is_independent: bool  # rows have nothing in common that the model does not know


def biopsies() -> Table:
    """Return the largest table with a numeric target that comes with scikit-learn."""
    data = load_breast_cancer()
    names = list(data.feature_names)
    target = "area of the largest nuclei"
    title = f"Breast cancer biopsies (scikit-learn): the {target} in µm², from ten mean measurements"
    options = {"n_estimators": 150, "learning_rate": 0.04, "num_leaves": 7}
    return Table(
        data.data[:, :10], data.data[:, names.index("worst area")], title, target, "mean area", 3, options, 5, True
    )


def california() -> Table:
    """Return the houses of California; scikit-learn downloads them at the first call."""
    X, y = fetch_california_housing(return_X_y=True)
    title = "California housing (scikit-learn): the median price of a block's houses, in 100,000 USD"
    options = {"n_estimators": 500, "learning_rate": 0.05, "num_leaves": 15}
    return Table(X, y, title, "price", "income", 0, options, 1, False)


def main() -> None:
    """Train, wrap, and show what a user gets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--california", action="store_true", help="take the larger table, which is downloaded once")
    table = california() if parser.parse_args().california else biopsies()
    print(table.title)
    rows = []
    for split in reversed(range(table.n_splits)):  # the first split comes last, and is shown below
        u, intervals, X_train, y_train, X_test, y_test = compare(table, split)
        largest = u.predict(X_test) >= np.quantile(u.predict(X_test), 0.8)
        rows.append([[*scores(y_test, interval, largest)] for interval in intervals.values()])
    print_scores(list(intervals), np.mean(rows, axis=0), table.n_splits)
    print_neighbors(table, u, X_train, y_train, X_test, y_test)
    if table.is_independent:
        print_total(u, X_test, y_test, intervals["ibug"])
    draw(table, u.predict(X_test), y_test, intervals)


def compare(table: Table, split: int) -> tuple[Any, ...]:
    """Return ibug, the intervals of test rows by each method, and the rows of one random split."""
    X_rest, X_test, y_rest, y_test = train_test_split(table.X, table.y, test_size=0.25, random_state=split)
    X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=0.25, random_state=split)
    model = LGBMRegressor(**table.options, random_state=0, verbose=-1).fit(X_train, y_train)  # the one you have

    started = time.perf_counter()
    u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)
    if split == 0:
        seconds = time.perf_counter() - started
        print(f"LightGBM, {model.n_estimators} trees, is trained. ibug wraps it in {seconds:.1f} s.\n")

    error = np.sqrt(np.mean((model.predict(X_val) - y_val) ** 2))
    # The quantile models need no validation rows, so they are trained on these as well.
    quantiles = [
        LGBMRegressor(objective="quantile", alpha=alpha, **table.options, random_state=0, verbose=-1)
        .fit(X_rest, y_rest)
        .predict(X_test)
        for alpha in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    ]
    intervals = {
        NAIVE: model.predict(X_test)[:, None] + error * np.array([-1.645, 1.645]),
        QUANTILES: np.sort(np.column_stack(quantiles), axis=1),  # they may cross
        "ibug": u.predict_interval(X_test, coverage=LEVEL),
    }
    return u, intervals, X_train, y_train, X_test, y_test


def scores(y: np.ndarray, interval: np.ndarray, largest: np.ndarray) -> tuple[float, ...]:
    """Return the coverage of all rows and of those with the largest predictions, the mean width, the score."""
    return (
        coverage(y, interval),
        coverage(y[largest], interval[largest]),
        mean_width(y, interval),
        interval_score(y, interval, level=LEVEL),
    )


def print_scores(names: list[str], rows: np.ndarray, n_splits: int) -> None:
    """Print a line for each method."""
    splits = f", mean of {n_splits} random splits" if n_splits > 1 else ""
    print(f"{LEVEL:.0%} intervals of test rows{splits}; the lower the score, the better")
    print(f"  {'':24}{'inside':>8}{'inside, largest fifth':>24}{'mean width':>13}{'interval score':>17}")
    for name, (all_rows, largest, width, score) in zip(names, rows, strict=True):
        print(f"  {name:24}{all_rows:8.0%}{largest:24.0%}{width:13.4g}{score:17.4g}")
    print()


def print_neighbors(table: Table, u: IBUGRegressor, X: np.ndarray, y: np.ndarray, X_test: Any, y_test: Any) -> None:
    """Print the training rows behind the least certain prediction."""
    row = int(np.argmax(u.predict_var(X_test)))
    x = X_test[row : row + 1]
    affinities, neighbors = u.kneighbors(x, 5)
    low, high = u.predict_interval(x, coverage=LEVEL)[0]
    print(f"Row {row} is the least certain: {u.predict(x)[0]:.4g}, interval {low:.4g} to {high:.4g}.")
    print("Why? The training rows that share the most leaves with it:")
    print(f"  {'training row':>12}{'shared leaves':>16}{table.feature:>12}{table.target:>30}")
    for affinity, neighbor in zip(affinities[0], neighbors[0], strict=True):
        leaves = f"{affinity} of {u.source_.index.n_trees}"
        print(f"  {neighbor:12}{leaves:>16}{X[neighbor, table.column]:12.4g}{y[neighbor]:30.4g}")
    print(f"  {'the row':>12}{'':16}{x[0, table.column]:12.4g}{y_test[row]:30.4g}\n")


def print_total(u: IBUGRegressor, X: np.ndarray, y: np.ndarray, interval: np.ndarray) -> None:
    """Print the mean of all test rows, which is a total with weights, beside the mean of the rows' ends."""
    low, high = u.predict_total(X, weights=np.full(len(y), 1 / len(y)), blocks=False, coverage=LEVEL)[0]
    ends = interval.mean(axis=0)
    print(f"The mean of all {len(y)} test rows: interval {low:.4g} to {high:.4g}, observed {y.mean():.4g}")
    print(f"(the rows' own ends, averaged: {ends[0]:.4g} to {ends[1]:.4g})\n")


def draw(table: Table, prediction: np.ndarray, y: np.ndarray, intervals: dict[str, np.ndarray]) -> None:
    """Draw the naive intervals and those of ibug into a file."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, (NAIVE, "ibug"), strict=True):
        IntervalDisplay.from_predictions(y, intervals[name], prediction=prediction, coverage=LEVEL, ax=axis)
        axis.set(ylabel=table.target if axis is axes[0] else "")
        axis.text(0.03, 0.95, name, transform=axis.transAxes, va="top", weight="bold", size="large")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
    print(f"Picture: {PICTURE}")


if __name__ == "__main__":
    main()
