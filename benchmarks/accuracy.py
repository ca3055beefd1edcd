"""How much more accurate than the paper: the default of IBUGRegressor, the paper's rule, CBU, and IBUG with CBU.

    IBUG_DATA=folder python benchmarks/accuracy.py [--datasets concrete,wine] [--methods paper,auto,cbu,auto+cbu]
        [--bases lightgbm,catboost] [--folds 5] [--max-rows 20000] [--max-trees 500] [--results accuracy.jsonl]
        [--report docs/accuracy.md] [--only-report]

Each dataset is cut into five folds. On each, the number of trees is found by early stopping on a fifth of the training
part, and every method gets the training part and that number. As in the paper, a method is tuned once for each score
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import accuracy_models
import accuracy_report
import numpy as np
from data import data_folder, load, names
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from ibug import IBUGRegressor
from ibug.metrics import coverage, crps, nll, rmse

Floats = NDArray[np.float64]
SCORES: dict[str, Callable[..., Any]] = {"crps": crps, "nll": nll}


def ibug(base: str, models: accuracy_models.Models, scoring: str, **options: Any) -> Any:
    return IBUGRegressor(models.estimator(base), scoring=scoring, random_state=0, **options)


def cbu(base: str, models: accuracy_models.Models, scoring: str) -> Any:
    from ibug import CBURegressor

    return CBURegressor(models.estimator("cbu"), scoring=scoring, random_state=0)


def together(base: str, models: accuracy_models.Models, scoring: str) -> Any:
    from ibug import ProbabilisticEnsemble

    return ProbabilisticEnsemble([("ibug", ibug(base, models, scoring)), ("cbu", cbu(base, models, scoring))])


def together_paper(base: str, models: accuracy_models.Models, scoring: str) -> Any:
    from ibug import ProbabilisticEnsemble

    members = [("ibug", ibug(base, models, scoring, spread="targets")), ("cbu", cbu(base, models, scoring))]
    return ProbabilisticEnsemble(members)


METHODS: dict[str, Callable[..., Any]] = {
    "paper": lambda *given: ibug(*given, spread="targets"),
    "paper-continuous": lambda *given: ibug(*given, spread="targets", calibrate="continuous"),
    "residuals": lambda *given: ibug(*given, spread="residuals"),
    "auto": ibug,
    "cbu": cbu,
    "auto+cbu": together,
    "paper+cbu": together_paper,
}


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
    tasks = [(fold, base, name) for fold in range(options.folds) for base in bases for name in chosen]
    tasks = [task for task in tasks if any(task_key(task, *way) not in done for way in ways(methods))]
    started = time.monotonic()
    for number, (fold, base, name) in enumerate(tasks):
        left = (time.monotonic() - started) / number * (len(tasks) - number) / 60 if number else float("nan")
        print(
            f"[{number + 1}/{len(tasks)}] {name}, {base}, fold {fold}; {left:.0f} min left", file=sys.stderr, flush=True
        )
        X, y = load(name, folder, options.max_rows)
        train, test = list(KFold(options.folds, shuffle=True, random_state=1).split(X))[fold]
        models = accuracy_models.Models(X, y, train, options.max_trees, options.threads)
        missing = [way for way in ways(methods) if task_key((fold, base, name), *way) not in done]
        for row in one_fold(models, base, missing, X.iloc[test], y[test]):
            append(options.results, {"dataset": name, "base": base, "fold": fold, "n": len(y), **row})


def one_fold(
    models: accuracy_models.Models, base: str, missing: list[tuple[str, str]], X_test: Any, y_test: Floats
) -> Iterator[dict[str, Any]]:
    """Yield the results of all methods that are not there yet."""
    X_train, y_train = models.X_train, models.y_train
    for method, scoring in missing:
        start = time.process_time()
        u = METHODS[method](base, models, scoring).fit(X_train, y_train)
        fitted = time.process_time()
        law = u.predict_dist(models.prepared(X_test))
        yield {
            "method": method,
            "scoring": scoring,
            "crps": crps(y_test, law),
            "nll": nll(y_test, law),
            "rmse": rmse(y_test, law),
            "coverage": coverage(y_test, np.stack(law.interval(0.9), axis=1)),
            "trees": models.n_trees(base),
            "spread": getattr(u, "spread_", ""),
            "fit_seconds": round(fitted - start, 2),
            "predict_seconds": round(time.process_time() - fitted, 3),
        }


def ways(methods: list[str]) -> list[tuple[str, str]]:
    return [(method, scoring) for method in methods for scoring in SCORES]


def task_key(task: tuple[int, str, str], method: str, scoring: str) -> tuple[Any, ...]:
    fold, base, name = task
    return name, base, fold, method, scoring


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
    parser.add_argument("--methods", default="paper,auto,cbu,auto+cbu", help=f"with commas, of {', '.join(METHODS)}")
    parser.add_argument("--bases", default="lightgbm,catboost", help="with commas")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--max-rows", type=int, default=20_000, help="larger datasets are sampled")
    parser.add_argument("--max-trees", type=int, default=500, help="early stopping finds how many of these")
    parser.add_argument("--threads", type=int, default=1, help="threads of each training")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="JSON lines, appended to")
    parser.add_argument("--report", type=Path, help="a document into which the tables are written")
    parser.add_argument("--only-report", action="store_true", help="make the tables from the results at hand")
    return parser.parse_args()


if __name__ == "__main__":
    main()
