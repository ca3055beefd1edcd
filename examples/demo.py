"""The main job on real data: a trained LightGBM model gets calibrated intervals, without retraining it.

Run with ``make demo``, or ``python examples/demo.py`` where ``ibug-learn[lightgbm]`` is installed.
"""

from __future__ import annotations

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ibug import IBUGRegressor
from ibug.metrics import coverage, crps, nll

LEVEL = 0.9


def main() -> None:
    """Train, wrap, and print scores, intervals and neighbours."""
    data = load_diabetes()
    X_rest, X_test, y_rest, y_test = train_test_split(data.data, data.target, test_size=0.25, random_state=0)
    X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=0.25, random_state=0)

    model = LGBMRegressor(n_estimators=150, learning_rate=0.04, num_leaves=7, random_state=0, verbose=-1)
    model.fit(X_train, y_train)  # the model that you already have

    u = IBUGRegressor(model, prefit=True).fit(X_train, y_train, X_val=X_val, y_val=y_val)
    raw = IBUGRegressor(model, prefit=True, distribution="normal", spread="targets", calibrate=False)
    raw.fit(X_train, y_train, X_val=X_val, y_val=y_val)

    print("Diabetes data (scikit-learn): disease progression after one year, 25 to 346")
    print(f"{len(y_train)} training rows, {len(y_val)} validation rows, {len(y_test)} test rows")
    print(f"Model: LightGBM, {model.n_estimators} trees of {model.num_leaves} leaves, already trained")
    print(f"Distribution: a {u.distribution_}; the weights that the validation rows give its experts:")
    for expert, weight in zip(u.stack_["expert"], u.stack_["weight"], strict=True):
        if weight > 0.005:
            print(f"  {weight:4.0%}  {expert}")
    print()
    print_scores(model, raw, u, X_test, y_test)
    print_predictions(u, X_test, y_test)
    print_neighbors(u, X_test, y_train, row=0)


def print_scores(model: LGBMRegressor, raw: IBUGRegressor, u: IBUGRegressor, X: np.ndarray, y: np.ndarray) -> None:
    """Print the scores on the test rows: the neighbours' plain variance, and the default, fitted to validation rows."""
    before, after = raw.predict_dist(X), u.predict_dist(X)
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    scores = [
        ("point error (RMSE), the model's own", f"{error:.2f}", f"{error:.2f}"),
        ("CRPS, lower is better", f"{crps(y, before):.2f}", f"{crps(y, after):.2f}"),
        ("NLL, lower is better", f"{nll(y, before):.3f}", f"{nll(y, after):.3f}"),
        (
            f"inside the {LEVEL:.0%} interval",
            f"{coverage(y, before, LEVEL):.1%}",
            f"{coverage(y, after, LEVEL):.1%}",
        ),
    ]
    print(f"{f'Scores on the {len(y)} test rows':38}{'plain variance':>20}{'fitted':>10}")
    for title, left, right in scores:
        print(f"  {title:36}{left:>20}{right:>10}")
    print()


def print_predictions(u: IBUGRegressor, X: np.ndarray, y: np.ndarray, n: int = 10) -> None:
    """Print a table of predictions with intervals."""
    intervals = u.predict_interval(X[:n], coverage=LEVEL)
    print(f"Ten predictions with their {LEVEL:.0%} intervals")
    print("  row   prediction   lower   upper   observed")
    for row, (mean, (low, high), observed) in enumerate(zip(u.predict(X[:n]), intervals, y[:n], strict=True)):
        note = "" if low <= observed <= high else "   outside"
        print(f"  {row:3}   {mean:10.1f} {low:7.1f} {high:7.1f} {observed:7.0f}{note}")
    print()


def print_neighbors(u: IBUGRegressor, X: np.ndarray, y_train: np.ndarray, row: int, n: int = 8) -> None:
    """Print the training rows behind one prediction."""
    affinities, rows = u.kneighbors(X[row : row + 1], n)
    print(f"Why row {row} is uncertain: its {n} nearest training rows")
    print("  training row   shared leaves   target")
    for affinity, neighbor in zip(affinities[0], rows[0], strict=True):
        print(f"  {neighbor:12} {affinity:7} of {u.source_.index.n_trees}   {y_train[neighbor]:6.0f}")


if __name__ == "__main__":
    main()
