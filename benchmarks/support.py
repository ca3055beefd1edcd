"""What support="auto" is worth: ``python benchmarks/support.py``, with IBUG_DATA set or --data.

A trained LightGBM model is wrapped with support="auto" and with support=None, for each fold of each dataset. The table
has the mean and the largest ratio of their CRPS, and the coverage and the share of negative lower ends of 90 %
intervals, without and with bounds.
"""

import sys
import warnings
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # the checkout: benchmarks/__init__.py says why
    import numpy as np
    from lightgbm import LGBMRegressor
    from sklearn.model_selection import train_test_split

    from benchmarks.common.arguments import add_datasets, each_dataset, parser_of
    from benchmarks.common.data import as_numbers
    from benchmarks.common.folds import fold_of
    from ibug import IBUGRegressor
    from ibug.exceptions import LikelyMistakeWarning, NarrowWarning
    from ibug.metrics import coverage, crps

    parser = parser_of(__doc__)
    add_datasets(parser, 5000)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--objective", default="regression", help="LightGBM's loss, poisson say")
    parser.add_argument("--conformal", choices=["scale", "distribution"])
    options = parser.parse_args()
    for warning in (LikelyMistakeWarning, NarrowWarning):  # the datasets have what is warned of
        warnings.simplefilter("ignore", warning)
    print(f"{'':15s}{'support':>12s}{'CRPS ratio':>12s}{'largest':>10s}{'inside 90 %':>18s}{'negative ends':>18s}")
    for name, X, y in each_dataset(options):
        if name == "bike":
            X = X.drop(columns=["casual", "registered"])  # their sum is the target
        X, found = as_numbers(X), []
        for number in range(options.folds):
            every, test = fold_of(len(y), number, 3)
            train, val = train_test_split(every, test_size=0.25, random_state=number)
            model = LGBMRegressor(n_estimators=200, objective=options.objective, verbose=-1, n_jobs=1, random_state=0)
            model.fit(X.iloc[train], y[train])
            for support in (None, "auto"):
                u = IBUGRegressor(
                    model, prefit=True, support=support, conformal=options.conformal, n_jobs=1, random_state=0
                )
                u.fit(X.iloc[train], y[train], X_val=X.iloc[val], y_val=y[val])
                ends = u.predict_interval(X.iloc[test])
                score = crps(y[test], u.predict_dist(X.iloc[test]))
                found.append((score, coverage(y[test], ends), np.mean(ends[:, 0] < 0)))
        free, bounded = np.array(found[::2]).T, np.array(found[1::2]).T
        ratio, bounds = bounded[0] / free[0], f"{u.support_[0]:g}, {u.support_[1]:g}"
        inside, negative = (f"{free[i].mean():8.1%} {bounded[i].mean():8.1%}" for i in (1, 2))
        print(f"{name:15s}{bounds:>12s}{ratio.mean():12.5f}{ratio.max():10.5f} {inside} {negative}", flush=True)
