"""Which rows to label next: ``rank_for_labelling`` against random choice and against the widest rows.

    IBUG_DATA=folder python benchmarks/labelling.py [--datasets california,power,wine] [--seeds 8] [--report FILE]

A third of the rows is for tests, 150 of the others have a label, and the rest is the pool. In each of five rounds a
model is trained on all labelled rows and scored on the test rows; then 40 rows of the pool are chosen and get their
labels. The table has the change against random choice, over the four rounds after a choice: mean and standard error
over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray

from benchmarks.common import document
from benchmarks.common.arguments import add_datasets, add_report, each_dataset, parser_of
from benchmarks.common.progress import say
from ibug import IBUGRegressor
from ibug.explain import rank_for_labelling
from ibug.metrics import crps, rmse

Integers = NDArray[np.int64]
Choice = Callable[[IBUGRegressor, Any, int, np.random.Generator], Integers]

N_LABELLED, N_NEW, ROUNDS = 150, 40, 5
SCORES = ("CRPS", "RMSE", "mean width of 90 % intervals")

CHOICES: dict[str, Choice] = {
    "random": lambda u, pool, n, rng: rng.choice(len(pool), n, replace=False),
    "the widest": lambda u, pool, n, rng: np.argsort(-u.predict_var(pool), kind="stable")[:n],
    "rank_for_labelling": lambda u, pool, n, rng: rank_for_labelling(u, pool, n).rows,
}


def main() -> None:
    options = parse_options()
    lines = [f"{'':14}{'':20}" + "".join(f"{name:>30}" for name in SCORES)]
    for name, X, y in each_dataset(options):
        found = {choice: measure(X, y, CHOICES[choice], options.seeds, choice) for choice in CHOICES}
        for choice, scores in found.items():
            if choice != "random":
                cells = "".join(f"{text:>30}" for text in changes(scores, found["random"]))
                lines.append(f"{name:14}{choice:20}{cells}")
    text = "\n".join([document.command(), "", *lines])
    print(text)
    if options.report:
        document.write(options.report, "labelling.py", text)


def measure(X: Any, y: NDArray[np.float64], choose: Choice, n_seeds: int, name: str) -> NDArray[np.float64]:
    """Return the mean scores over the rounds after a choice, (n_seeds, 3)."""
    scores = []
    for seed in range(n_seeds):
        say(f"  {name}, seed {seed} …")
        rows = np.random.default_rng(seed).permutation(len(y))
        test, rest = np.split(rows, [len(y) // 3])
        scores.append(np.mean(rounds(X, y, test, rest, choose, np.random.default_rng(seed + 100))[1:], axis=0))
    return np.array(scores)


def rounds(
    X: Any, y: NDArray[np.float64], test: Integers, rest: Integers, choose: Choice, rng: np.random.Generator
) -> list[list[float]]:
    """Return the scores of each round."""
    labelled, pool, found = rest[:N_LABELLED], rest[N_LABELLED:], []
    u: IBUGRegressor | None = None
    for _ in range(ROUNDS):
        if u is not None:
            chosen = choose(u, X.iloc[pool], min(N_NEW, len(pool)), rng)
            labelled, pool = np.concatenate([labelled, pool[chosen]]), np.delete(pool, chosen)
        u = fit(X.iloc[labelled], y[labelled])
        distribution = u.predict_dist(X.iloc[test])
        lower, upper = distribution.interval(0.9)
        errors = crps(y[test], distribution), rmse(y[test], u.predict(X.iloc[test]))
        found.append([*map(float, errors), float(np.mean(upper - lower))])
    return found


def fit(X: Any, y: NDArray[np.float64]) -> IBUGRegressor:
    """Train on all labelled rows; clones tell how wide the distributions have to be."""
    model = LGBMRegressor(n_estimators=100, num_leaves=8, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1)
    return IBUGRegressor(model, random_state=0, n_jobs=1).fit(X, y)


def changes(scores: NDArray[np.float64], random: NDArray[np.float64]) -> list[str]:
    """Return the mean change of each score against random choice, and its standard error, as text."""
    change = 100 * (scores / random - 1)
    error = change.std(axis=0, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.full(3, np.nan)
    return [f"{mean:+.1f} ± {each:.1f} %" for mean, each in zip(change.mean(axis=0), error, strict=True)]


def parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_datasets(parser, max_rows=4000)
    add_report(parser)
    parser.add_argument("--seeds", type=int, default=8, help="the number of divisions of the rows")
    return parser.parse_args()
