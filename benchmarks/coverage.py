"""The coverage of models that are trained here, on fresh rows: ``python benchmarks/coverage.py [--seeds 32] [--real]``.

Each row of the table is the mean over the seeds: the share of new rows inside 90 % intervals with its standard error,
the shares below the quantiles for 5, 25, 50, 75 and 95 %, and the CRPS. Generators draw 4,000 new rows per seed. With
--real the rows are datasets instead (IBUG_DATA, or --data), and seeds are folds: two thirds train, one third is new.
"""

import sys
import warnings
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout: benchmarks/__init__.py says why
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from lightgbm import LGBMRegressor

    from benchmarks.common.arguments import add_datasets, each_dataset, parser_of
    from benchmarks.common.data import as_numbers
    from benchmarks.common.folds import fold_of
    from ibug import IBUGRegressor
    from ibug.exceptions import LikelyMistakeWarning, NarrowWarning
    from ibug.metrics import crps

    LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

    def noise_elsewhere(r: np.random.Generator, n: int) -> tuple[Any, Any]:
        X = r.uniform(size=(n, 4))
        return X, 2 * X[:, 0] + (0.2 + X[:, 1]) * r.normal(size=n)

    def amounts(r: np.random.Generator, n: int) -> tuple[Any, Any]:
        X = r.uniform(size=(n, 8))
        return X, (1 + X[:, 0] + X[:, 1] ** 2) * r.gamma(2, 0.5, size=n)

    def gamma_noise(r: np.random.Generator, n: int) -> tuple[Any, Any]:
        X = r.normal(size=(n, 4))
        return X, X[:, 0] + np.abs(X[:, 1]) + (0.3 + 0.3 * (X[:, 2] > 0)) * (r.gamma(2, size=n) - 2)

    def lognormal(r: np.random.Generator, n: int) -> tuple[Any, Any]:
        X = r.normal(size=(n, 5))
        width = 0.25 + 0.25 * (X[:, 2] > 0)
        return X, np.exp(0.5 * X[:, 0] + 0.3 * np.sin(2 * X[:, 1]) + width * r.normal(size=n))

    def friedman(r: np.random.Generator, n: int) -> tuple[Any, Any]:
        X = r.uniform(size=(n, 6))
        mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        return X, mean + (0.5 + 2 * X[:, 5]) * r.normal(size=n)

    Generator = Callable[[np.random.Generator, int], tuple[Any, Any]]
    GENERATORS: dict[str, tuple[Generator, int]] = {
        "noise elsewhere": (noise_elsewhere, 1800),
        "amounts": (amounts, 1800),
        "gamma noise": (gamma_noise, 1200),
        "lognormal": (lognormal, 1800),
        "friedman": (friedman, 1800),
    }

    def measured(X: Any, y: Any, X_new: Any, y_new: Any, seed: int) -> list[float]:
        """Return the shares of new rows below the quantiles, inside the interval, and the CRPS."""
        model = LGBMRegressor(n_estimators=options.trees, verbose=-1, n_jobs=1, random_state=0)
        u = IBUGRegressor(model, cv=options.cv, conformal=options.conformal, n_jobs=1, random_state=seed).fit(X, y)
        found = u.predict_dist(X_new)
        below = (y_new[:, None] <= found.ppf(LEVELS[None, :])).mean(axis=0)
        lower, upper = found.interval(0.9)
        return [np.mean((y_new >= lower) & (y_new <= upper)), *below, crps(y_new, found)]

    def show(name: str, found: list[list[float]]) -> None:
        mean, error = np.mean(found, axis=0), np.std(np.array(found)[:, 0]) / np.sqrt(len(found))
        shares = " ".join(f"{share:6.1%}" for share in mean[1:-1])
        print(f"{name:16s} {mean[0]:7.2%} ± {error:6.2%}  {shares}  {mean[-1]:10.5g}", flush=True)

    parser = parser_of(__doc__)
    add_datasets(parser, 4000)
    parser.add_argument("--real", action="store_true", help="datasets in place of generators")
    parser.add_argument("--only", help="generators, with commas; default: all")
    parser.add_argument("--seeds", type=int, default=32, help="seeds, or folds (3 at most) with --real")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--cv", type=int)
    parser.add_argument("--conformal", choices=["scale", "distribution"])
    options = parser.parse_args()
    for warning in (LikelyMistakeWarning, NarrowWarning):  # the datasets have what is warned of
        warnings.simplefilter("ignore", warning)
    print(f"{'':16s} {'inside 90 %':>16s}  {'below the quantiles for 5 … 95 %':>34s}  {'CRPS':>10s}")
    if options.real:
        for name, X, y in each_dataset(options):
            if name == "bike":
                X = X.drop(columns=["casual", "registered"])  # their sum is the target
            if name == "superconductor":
                X = X.drop(columns=["critical_temp"], errors="ignore")  # which is the target
            X, found = as_numbers(X), []
            for fold in range(min(options.seeds, 3)):
                train, new = fold_of(len(y), fold, 3)
                found.append(measured(X.iloc[train], y[train], X.iloc[new], y[new], fold))
            show(name, found)
    else:
        for name in options.only.split(",") if options.only else GENERATORS:
            generator, n = GENERATORS[name]
            found = []
            for seed in range(options.seeds):
                r = np.random.default_rng(seed)
                found.append(measured(*generator(r, n), *generator(r, 4000), seed))
            show(name, found)
