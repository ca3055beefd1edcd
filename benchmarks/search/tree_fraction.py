"""The paper's figure of tree sampling: score and time a row against the share τ/T of the trees, for three orders.

    IBUG_DATA=folder python benchmarks/tree_fraction.py [--dataset california] [--library LightGBM] [--trees 500]
        [--image docs/images/tree_fraction_nll.png] [--report benchmarks/results/performance.md]

A model is trained once. Then, for each share and order, the training rows are indexed by these trees, tuned on the
validation rows for the NLL, and measured on the test rows, one thread. Points are always predicted with all trees, so
that their accuracy does not change; what changes is the affinity, its cost and the variance. The table is printed, and
written into a document between two marks if --report is given.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import document
from benchmarks.common.arguments import add_report
from benchmarks.common.data import as_numbers, load
from benchmarks.common.paths import ROOT, data_folder
from benchmarks.common.progress import say
from benchmarks.common.threads import use_one_thread
from benchmarks.speed.models import MODELS

ORDERS = ("first", "random", "last")
SHARES = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
IMAGE = ROOT / "docs" / "images" / "tree_fraction_nll.png"


def main() -> None:
    options = parse_options()
    use_one_thread()
    os.environ.setdefault("MPLBACKEND", "agg")
    from ibug import IBUGRegressor
    from ibug.plotting import TreeFractionDisplay

    folder = data_folder(options.data)
    name = options.dataset if folder is not None else "diabetes"
    X, y = load(name, folder, options.max_rows)
    X = as_numbers(X).to_numpy(np.float64)
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
    X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=0.2, random_state=1)
    model = MODELS[options.library](options.trees).fit(X_train, y_train)
    paper: dict[str, Any] = {"distribution": "normal", "spread": "targets", "scoring": "nll"}
    u = IBUGRegressor(model, prefit=True, **paper, n_jobs=1, random_state=0)
    u.fit(X_train, y_train, X_val=X_val, y_val=y_val)
    title = f"{name}, {len(y_train):,} training rows, {options.library}, {u.source_.index.n_trees:,} trees"
    say(f"{title}: measuring")
    display = TreeFractionDisplay.from_estimator(
        u, X_train, y_train, X_val, y_val, X_test, y_test, fractions=SHARES, orders=ORDERS, n_repeats=options.repeats
    )
    display.figure_.suptitle(title, fontsize="medium")
    display.figure_.savefig(options.image, dpi=120)
    text = table(title, display)
    print(text)
    if options.report is not None:
        document.write(options.report, "tree_fraction.py", f"{document.command()}\n{text}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of datasets (default: IBUG_DATA)")
    parser.add_argument("--dataset", default="california", help="without a folder it is scikit-learn's diabetes data")
    parser.add_argument("--max-rows", type=int, help="larger datasets are sampled")
    parser.add_argument("--library", choices=MODELS, default="LightGBM")
    parser.add_argument("--trees", type=int, default=500, help="the model's trees")
    parser.add_argument("--repeats", type=int, default=5, help="how often each time is measured; the shortest counts")
    parser.add_argument("--image", type=Path, default=IMAGE, help="where to draw the figure")
    add_report(parser)
    return parser.parse_args()


def table(title: str, display: Any) -> str:
    """Return the scores and times as text, a line for each share."""
    lines = [title, f"  {'':>8}{'NLL, trees taken':>30}{'ms a row':>30}"]
    lines.append(f"  {'tau/T':>8}" + "".join(f"{order:>10}" for order in (*display.scores, *display.seconds)))
    for i, share in enumerate(display.fractions):
        scores = "".join(f"{values[i]:>10.4f}" for values in display.scores.values())
        times = "".join(f"{1e3 * values[i]:>10.4f}" for values in display.seconds.values())
        lines.append(f"  {share:>8.0%}{scores}{times}")
    return "\n".join(lines)
