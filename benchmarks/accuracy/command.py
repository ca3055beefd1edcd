"""How much more accurate than the paper: the default of IBUGRegressor, the paper's rule, CBU, and IBUG with CBU.

    IBUG_DATA=folder python benchmarks/accuracy.py [--datasets concrete,wine] [--methods paper,auto,cbu,auto+cbu]
        [--bases lightgbm,catboost] [--folds 5] [--max-rows 20000] [--max-trees 500] [--results accuracy.jsonl]
        [--report docs/accuracy.md] [--only-report]

Each dataset is cut into five folds. On each, the number of trees is found on a fifth of the training part: by early
stopping, and for CBU by its score, after calibration, with the paper's numbers of trees. Every method gets the training
part and that number. As in the paper, a method is tuned once for each score
that it is measured by (``scoring="crps"`` and ``scoring="nll"``), and the mean score on the test part counts. The same
training on the same rows is done once and remembered, whichever method asks for it.

Results are appended to a file of JSON lines, one per dataset, base model, fold, method and score; what is there already
is not computed again, so that a run can be stopped and taken up. Tables of mean scores and of wins, ties and losses
(paired t-test over the folds, 0.05) are printed, and written into a document between two marks if --report is given.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accuracy_models
import accuracy_report
import numpy as np
from data import data_folder, load, names
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble
from ibug.metrics import coverage, crps, nll, rmse

Floats = NDArray[np.float64]
SCORES: dict[str, Callable[..., Any]] = {"crps": crps, "nll": nll}
FEW = 60  # validation rows, for the methods that end in this number


def ibug(base: str, models: accuracy_models.Models, scoring: str, **options: Any) -> Any:
    return IBUGRegressor(models.estimator(base), scoring=scoring, random_state=0, **options)


def with_few_rows(base: str, models: accuracy_models.Models, scoring: str, **options: Any) -> Any:
    """Return a regressor that is tuned on 60 rows, which nothing is trained on; their number is rounded up."""
    few = {"validation_fraction": (FEW - 0.5) / len(models.y_train), "refit": False}
    return ibug(base, models, scoring, **few, **options)


def cbu(base: str, models: accuracy_models.Models, scoring: str) -> Any:
    return CBURegressor(models.estimator("cbu", scoring), scoring=scoring, random_state=0)


METHODS: dict[str, Callable[..., Any]] = {
    "paper": lambda *given: ibug(*given, spread="targets"),
    "paper-continuous": lambda *given: ibug(*given, spread="targets", calibrate="continuous"),
    "residuals": lambda *given: ibug(*given, spread="residuals"),
    "auto": ibug,
    "paper-60": lambda *given: with_few_rows(*given, spread="targets"),
    "auto-60": with_few_rows,
    "cbu": cbu,
}

#: Averages of two of these.
TOGETHER = {"auto+cbu": ("auto", "cbu"), "paper+cbu": ("paper", "cbu")}


class Fits:
    """The regressors of one training part, each fitted once: an ensemble has the members that are measured alone."""

    def __init__(self, models: accuracy_models.Models) -> None:
        self.models = models
        self._fitted: dict[tuple[str, ...], tuple[Any, float]] = {}

    def fitted(self, method: str, base: str, scoring: str) -> tuple[Any, float]:
        """Return the regressor, and how many seconds of processor time it took."""
        key = (method, scoring) if method == "cbu" else (method, scoring, base)
        if key not in self._fitted:
            X, y = self.models.X_train, self.models.y_train
            members = {name: self.fitted(name, base, scoring) for name in TOGETHER.get(method, ())}
            start = time.process_time()
            if members:
                u = ProbabilisticEnsemble([(name, u) for name, (u, _) in members.items()], prefit=True)
            else:
                u = METHODS[method](base, self.models, scoring)
            u.fit(X, y)
            self._fitted[key] = u, time.process_time() - start + sum(seconds for _, seconds in members.values())
        return self._fitted[key]


def main() -> None:
    options = parse_options()
    if not options.only_report:
        run(options)
    rows = read(options.results)
    printed = accuracy_report.tables(rows)
    print(printed)
    if options.report:
        accuracy_report.write(options.report, printed)


def run(options: argparse.Namespace) -> None:
    warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")  # its successor is too new
    folder = data_folder(options.data)
    chosen = options.datasets.split(",") if options.datasets else names(folder)
    methods, bases = options.methods.split(","), options.bases.split(",")
    done = {key(row) for row in read(options.results)}
    # Folds outside, so that every dataset has some results early.
    tasks = [(fold, name) for fold in range(options.folds) for name in chosen]
    missing = {
        (fold, name): [way for way in ways(bases, methods) if (name, way[0], fold, *way[1:]) not in done]
        for fold, name in tasks
    }
    tasks = [task for task in tasks if missing[task]]
    started = time.monotonic()
    for number, (fold, name) in enumerate(tasks):
        left = (time.monotonic() - started) / number * (len(tasks) - number) / 60 if number else float("nan")
        print(f"[{number + 1}/{len(tasks)}] {name}, fold {fold}; {left:.0f} min left", file=sys.stderr, flush=True)
        X, y = load(name, folder, options.max_rows)
        train, test = list(KFold(options.folds, shuffle=True, random_state=1).split(X))[fold]
        fits = Fits(accuracy_models.Models(X, y, train, options.max_trees, options.threads))
        X_test = fits.models.prepared(X.iloc[test])
        for base, method, scoring in missing[fold, name]:
            row = measure(fits, base, method, scoring, X_test, y[test])
            append(options.results, {"dataset": name, "base": base, "fold": fold, "n": len(y), **row})


def measure(fits: Fits, base: str, method: str, scoring: str, X_test: Any, y_test: Floats) -> dict[str, Any]:
    """Return the scores of one method on the test part."""
    u, seconds = fits.fitted(method, base, scoring)
    start = time.process_time()
    law = u.predict_dist(X_test)
    return {
        "method": method,
        "scoring": scoring,
        "crps": crps(y_test, law),
        "nll": nll(y_test, law),
        "rmse": rmse(y_test, law),
        "coverage": coverage(y_test, np.stack(law.interval(0.9), axis=1)),
        "trees": fits.models.n_trees("cbu" if method == "cbu" else base, scoring),
        "spread": getattr(u, "spread_", ""),
        "fit_seconds": round(seconds, 2),
        "predict_seconds": round(time.process_time() - start, 3),
    }


def ways(bases: list[str], methods: list[str]) -> list[tuple[str, str, str]]:
    return [(base, method, scoring) for base in bases for method in methods for scoring in SCORES]


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["base"], row["fold"], row["method"], row["scoring"]


def read(path: Path) -> list[dict[str, Any]]:
    """Return the results at hand; a line that was cut short when a run was stopped is passed over."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"passing over a broken line of {path}: {line[:60]}", file=sys.stderr)
    return list({key(row): row for row in rows}.values())


def append(path: Path, row: dict[str, Any]) -> None:
    """Add one line; after a line that was cut short it begins a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0, 2)
        broken = False
        if file.tell():
            file.seek(-1, 2)
            broken = file.read(1) != b"\n"
        file.write(b"\n" * broken + json.dumps(row).encode() + b"\n")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with Parquet files; default: IBUG_DATA, else bundled data")
    parser.add_argument("--datasets", help="names, with commas; default: all")
    parser.add_argument(
        "--methods", default="paper,auto,cbu,auto+cbu", help=f"with commas, of {', '.join([*METHODS, *TOGETHER])}"
    )
    parser.add_argument("--bases", default="lightgbm,catboost", help="with commas")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--max-rows", type=int, default=20_000, help="larger datasets are sampled")
    parser.add_argument("--max-trees", type=int, default=500, help="early stopping finds how many of these")
    parser.add_argument("--threads", type=int, default=1, help="threads of each training")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--report", type=Path, help="a document into which the tables are written")
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()
