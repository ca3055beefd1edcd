"""Write the results on every dataset with a fixed seed to a file, or compare two such files.

A change of the structure must not change them.

IBUG_DATA=… python tools/same_results.py write before.npz
python tools/same_results.py compare before.npz after.npz
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np


def models(seed: int):
    """Return one small estimator of each library."""
    from catboost import CatBoostRegressor
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor
    from xgboost import XGBRegressor

    few = {"n_estimators": 60, "random_state": seed}
    return {
        "lightgbm": LGBMRegressor(**few, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True),
        "xgboost": XGBRegressor(**few, n_jobs=1, tree_method="hist"),
        "catboost": CatBoostRegressor(
            n_estimators=60, random_seed=seed, verbose=0, thread_count=1, allow_writing_files=False
        ),
        "hgb": HistGradientBoostingRegressor(max_iter=60, random_state=seed),
        "gbr": GradientBoostingRegressor(n_estimators=40, random_state=seed),
        "forest": ExtraTreesRegressor(
            n_estimators=20, min_samples_leaf=3, bootstrap=True, oob_score=True, random_state=seed
        ),
    }


def tables(folder: Path):
    """Yield name, rows and targets of each dataset."""
    import pandas as pd

    from ibug import IBUGRegressor  # noqa: F401 # the library under test is there before any table is read

    for path in [*sorted(folder.glob("*.parquet")), *sorted((folder / "several").glob("*.parquet"))]:
        frame = pd.read_parquet(path)
        several = path.parent.name == "several"
        targets = [name for name in frame.columns if str(name).startswith("target")] if several else ["target"]
        if several and not targets:
            targets = list(frame.columns[-2:])
        frame = frame.dropna(subset=targets).sample(frac=1, random_state=0)[:1200].reset_index(drop=True)
        X = frame.drop(columns=targets)
        for name in X.columns:
            if not pd.api.types.is_numeric_dtype(X[name]):
                X[name] = X[name].astype("category").cat.codes
        X = X.astype(float).fillna(-1.0)
        y = frame[targets].to_numpy(float)
        yield f"{path.parent.name}/{path.stem}" if several else path.stem, X.to_numpy(), y if several else y[:, 0]


OPTIONS = {
    "default": {},
    "conformal": {"conformal": "distribution"},
    "scale": {"conformal": "scale", "distribution": "normal"},
    "paper": {"distribution": "normal", "spread": "targets", "k": 40},
    "tune": {"distribution": "tune"},
    "nll": {"scoring": "nll"},
}


def results(folder: Path):
    """Yield the arrays to compare, each with its name."""
    from sklearn.base import clone
    from sklearn.multioutput import MultiOutputRegressor

    from ibug import IBUGRegressor

    levels = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    for number, (name, X, y) in enumerate(tables(folder)):
        n = len(X)
        train, val, test = slice(0, n // 2), slice(n // 2, 3 * n // 4), slice(3 * n // 4, n)
        for which, estimator in models(0).items():
            if y.ndim > 1:
                estimator = MultiOutputRegressor(estimator)
            choices = list(OPTIONS) if which == "lightgbm" else ["default", list(OPTIONS)[1 + number % 5]]
            model = clone(estimator).fit(X[train], y[train])
            for option in choices:
                if y.ndim > 1 and option in ("scale", "paper", "tune"):
                    continue
                for way in (
                    ("prefit", "trained") if which in ("lightgbm", "hgb") and option == "default" else ("prefit",)
                ):
                    key = f"{name}|{which}|{option}|{way}"
                    try:
                        if way == "prefit":
                            u = IBUGRegressor(
                                model, prefit=True, random_state=0, n_jobs=1 + number % 2, **OPTIONS[option]
                            )
                            u.fit(X[train], y[train], X_val=X[val], y_val=y[val])
                        else:
                            u = IBUGRegressor(estimator, random_state=0, **OPTIONS[option]).fit(
                                X[: n // 2 + n // 4], y[: n // 2 + n // 4]
                            )
                        yield f"{key}|quantiles", u.predict_quantiles(X[test], levels)
                        d = u.predict_dist(X[test])
                        yield f"{key}|mean", np.asarray(d.mean())
                        yield f"{key}|logpdf", np.asarray(d.logpdf(y[test]))
                        yield f"{key}|neighbors", np.asarray(u.kneighbors(X[test][:50], 9)[1])
                    except Exception as error:  # what is refused must be refused afterwards, too
                        yield f"{key}|error", np.array([type(error).__name__])
        print(name, flush=True)


def compare(before: Path, after: Path) -> int:
    """Print what differs, and return whether anything does."""
    old, new = (np.load(path, allow_pickle=False) for path in (before, after))
    worst, wrong = 0.0, []
    for key in old.files:
        if key not in new.files:
            wrong.append(f"{key}: not there any more")
            continue
        a, b = old[key], new[key]
        if a.dtype.kind in "US" or a.shape != b.shape:
            same = a.shape == b.shape and bool(np.all(a == b))
            wrong += (
                [] if same else [f"{key}: {a.shape} and {b.shape}" if a.shape != b.shape else f"{key}: {a} and {b}"]
            )
            continue
        scale = max(1.0, float(np.nanmax(np.abs(a[np.isfinite(a)]), initial=0.0)))
        difference = float(np.max(np.abs(np.where(np.isfinite(a) & np.isfinite(b), a - b, 0.0)), initial=0.0)) / scale
        same_kind = bool(np.all(np.isfinite(a) == np.isfinite(b)))
        worst = max(worst, difference)
        if difference > 1e-12 or not same_kind:
            wrong.append(f"{key}: differs by {difference:.2g} of its largest value")
    print(f"{len(old.files)} arrays compared, the largest relative difference is {worst:.2g}; {len(wrong)} differ")
    print("\n".join(wrong[:40]))
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "compare":
        raise SystemExit(compare(*arguments.files))
    import os

    warnings.simplefilter("ignore")
    np.savez_compressed(arguments.files[0], **dict(results(arguments.data or Path(os.environ["IBUG_DATA"]))))
