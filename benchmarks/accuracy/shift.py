"""Does the affinity score find rows dissimilar to the training data? An AUROC per dataset and kind of shift.

    IBUG_DATA=folder python benchmarks/shift.py [--datasets concrete,wine] [--max-rows 5000]

Three kinds of shifted rows are made from test rows, and told from the test rows by the affinity score alone:
  shuffled   each feature is drawn from another test row: every value is ordinary, the combination is not
  moved      one numeric feature, chosen at random, is moved by three standard deviations
  unseen     the model is trained without the tenth of the rows in which its most important feature is largest
Beside the AUROC (0.5 is blind, 1 is perfect) stands the share of rows below the threshold learned on validation rows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.common.arguments import add_datasets, each_dataset, parser_of
from ibug import IBUGRegressor

KINDS = ("shuffled", "moved", "unseen")


def main() -> None:
    options = parse_options()
    print(
        f"{'dataset':14}"
        + "".join(f"{kind + ' AUROC':>17}{'flagged':>9}" for kind in KINDS)
        + f"{'ordinary flagged':>19}"
    )
    every = []
    for name, X, y in each_dataset(options):
        results = measure(X, y, np.random.default_rng(0))
        every.append([results[kind][0] for kind in KINDS])
        cells = "".join(f"{results[kind][0]:17.3f}{results[kind][1]:9.1%}" for kind in KINDS)
        print(f"{name:14}{cells}{results['shuffled'][2]:19.1%}", flush=True)
    print(f"{'median':14}" + "".join(f"{value:17.3f}{'':9}" for value in np.median(every, axis=0)))


def measure(X: Any, y: NDArray[np.float64], rng: np.random.Generator) -> dict[str, tuple[float, float, float]]:
    """Return for each kind of shift: AUROC, the share of shifted rows below the threshold, and of ordinary rows."""
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.25, random_state=0)
    u = fit(X_train, y_train)
    results = {
        "shuffled": compare(u, X_test, shuffled(X_test, rng)),
        "moved": compare(u, X_test, moved(X_test, X_train, rng)),
    }
    column = X.columns[int(np.argmax(u.estimator_.feature_importances_))]
    values = X[column].cat.codes if isinstance(X[column].dtype, pd.CategoricalDtype) else X[column]
    high = (values > np.nanquantile(values, 0.9)).to_numpy()
    X_train, X_test, y_train, _ = train_test_split(X[~high], y[~high], test_size=0.25, random_state=0)
    results["unseen"] = compare(fit(X_train, y_train), X_test, X[high]) if high.any() else (np.nan,) * 3
    return results


def fit(X: Any, y: NDArray[np.float64]) -> IBUGRegressor:
    """Train on most rows, and let the others choose k and the threshold."""
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=0)
    model = LGBMRegressor(n_estimators=300, learning_rate=0.05, random_state=0, verbose=-1).fit(X_train, y_train)
    return IBUGRegressor(model, prefit=True, spread="targets").fit(X_train, y_train, X_val=X_val, y_val=y_val)


def compare(u: IBUGRegressor, ordinary: Any, shifted: Any) -> tuple[float, float, float]:
    """Return how well the affinity score tells the two apart."""
    familiar, strange = u.affinity_score(ordinary), u.affinity_score(shifted)
    labels = np.repeat([0, 1], [len(familiar), len(strange)])
    auroc = roc_auc_score(labels, -np.concatenate([familiar, strange]))
    return (
        float(auroc),
        float(np.mean(strange < u.affinity_threshold_)),
        float(np.mean(familiar < u.affinity_threshold_)),
    )


def shuffled(X: Any, rng: np.random.Generator) -> Any:
    """Draw each feature from another row."""
    return X.apply(lambda column: column.iloc[rng.permutation(len(X))].set_axis(X.index)).astype(X.dtypes.to_dict())


def moved(X: Any, X_train: Any, rng: np.random.Generator) -> Any:
    """Move one numeric feature of each row by three standard deviations, up or down."""
    numeric = X_train.select_dtypes("number")
    step = 3 * numeric.std().to_numpy()
    out = X.copy()
    out[numeric.columns] = out[numeric.columns].astype(float)
    which = rng.integers(0, numeric.shape[1], len(X))
    sign = rng.choice([-1, 1], len(X))
    for number, column in enumerate(numeric.columns):
        rows = which == number
        out.loc[rows, column] += sign[rows] * step[number]
    return out


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=5000)
    return parser.parse_args()
