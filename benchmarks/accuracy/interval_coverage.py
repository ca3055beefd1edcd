"""The share of truths inside 90 % intervals: paper's rule, normal, default, tuned by NLL, and conformal calibration.

    IBUG_DATA=folder python benchmarks/interval_coverage.py [--datasets concrete,wine] [--max-rows 5000] [--splits 3]

LightGBM is trained on half of the rows, a quarter chooses k and calibrates, and a quarter is predicted.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.common.arguments import add_datasets, each_dataset, parser_of
from ibug import IBUGRegressor
from ibug.metrics import coverage

LEVEL = 0.9
WAYS: dict[str, dict[str, Any]] = {
    "paper's rule": {"distribution": "normal", "spread": "targets"},
    'distribution="normal"': {"distribution": "normal"},
    "default": {},
    'scoring="nll"': {"scoring": "nll"},
    'conformal="scale"': {"conformal": "scale"},
    'conformal="distribution"': {"conformal": "distribution"},
}


def main() -> None:
    options = parse_options()
    print(f"{'dataset':13}" + "".join(f"{way:>26}" for way in WAYS))
    for name, X, y in each_dataset(options):
        observed = np.mean([one_split(X, y, seed) for seed in range(options.splits)], axis=0)
        print(f"{name:13}" + "".join(f"{share:26.1%}" for share in observed), flush=True)


def one_split(X: Any, y: NDArray[np.float64], seed: int) -> list[float]:
    """Return the share of truths inside their interval for each way."""
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=1 / 3, random_state=seed)
    model = LGBMRegressor(n_estimators=200, random_state=0, verbose=-1, n_jobs=1).fit(X_train, y_train)
    shares = []
    for options in WAYS.values():
        u = IBUGRegressor(model, prefit=True, random_state=seed, **options)
        u.fit(X_train, y_train, X_val=X_val, y_val=y_val)
        shares.append(coverage(y_test, u.predict_interval(X_test, LEVEL)))
    return shares


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=5000)
    parser.add_argument("--splits", type=int, default=3, help="random splits, whose shares are averaged")
    return parser.parse_args()
