"""Whether the attribution of the width finds the feature that the noise depends on, and how long that takes.

    python benchmarks/width.py [--rows 100] [--report docs/width.md]

Made data of 20 features. The mean depends on four of them, the noise on one of these alone:
  two levels   the feature is 0 or 1, and the noise has a standard deviation of 0.2 or 2
  slope        the feature is uniform, and log σ of the noise grows with it, by a factor of 20 in all
Told are the share of rows in which that feature has the largest Shapley value of log σ, the time for all rows with the
default options, and the largest difference between the sum of a row's parts and its log σ. In the middle of a slope the
noise is the usual one: there the feature neither widens nor narrows, and another one comes first.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray

from benchmarks.common import document
from benchmarks.common.arguments import add_report, parser_of
from ibug import IBUGRegressor
from ibug.explain import explain_width

Floats = NDArray[np.float64]

N_FEATURES, NOISY = 20, 3


def main() -> None:
    options = parse_options()
    lines = [f"{'noise':14}{'rank 1':>10}{'rank 1, outer half':>20}{'wall s':>10}{'CPU s':>10}{'additive to':>14}"]
    for kind in ("two levels", "slope"):
        u, X_train, X = fitted(kind, options.train, options.rows)
        explain_width(u, X[:1], X_train)  # compiles what shap has compiled
        begin = time.perf_counter(), time.process_time()
        found = explain_width(u, X, X_train)
        wall, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
        first = np.argmax(np.abs(found.values), axis=1) == NOISY
        outer = np.abs(X[:, NOISY] - 0.5) > 0.25
        gap = np.max(np.abs(found.base_values + found.values.sum(axis=1) - 0.5 * np.log(u.predict_var(X))))
        lines.append(f"{kind:14}{first.mean():10.0%}{first[outer].mean():20.0%}{wall:10.1f}{cpu:10.1f}{gap:14.0e}")
    text = "\n".join([document.command(), "", *lines])
    print(text)
    if options.report:
        document.write(options.report, "width.py", text)


def fitted(kind: str, n_train: int, n_rows: int) -> tuple[IBUGRegressor, Floats, Floats]:
    """Return a regressor, its training rows, and the rows to explain."""
    X, y = made(kind, n_train + n_train // 4 + n_rows, np.random.default_rng(0))
    train, validation = slice(0, n_train), slice(n_train, n_train + n_train // 4)
    model = LGBMRegressor(n_estimators=300, learning_rate=0.05, random_state=0, verbose=-1).fit(X[train], y[train])
    u = IBUGRegressor(model, prefit=True, n_jobs=2)
    return u.fit(X[train], y[train], X_val=X[validation], y_val=y[validation]), X[train], X[validation.stop :]


def made(kind: str, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return rows and targets."""
    X = rng.uniform(size=(n, N_FEATURES))
    if kind == "two levels":
        X[:, NOISY] = rng.integers(0, 2, n)
        noise = np.where(X[:, NOISY] == 1, 2.0, 0.2)
    else:
        noise = 0.2 * 20 ** X[:, NOISY]
    mean = 4 * X[:, 0] + np.sin(6 * X[:, 1]) + X[:, 2] ** 2 + 2 * X[:, NOISY]
    return X, mean + noise * rng.normal(size=n)


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_report(parser)
    parser.add_argument("--rows", type=int, default=100, help="the number of rows to explain")
    parser.add_argument("--train", type=int, default=8000, help="the number of training rows")
    return parser.parse_args()
