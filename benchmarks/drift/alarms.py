"""False alarms of `monitor` where nothing has drifted, and its power: an independent fit for each seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor
from xgboost import XGBRegressor

from benchmarks.common.bars import Bar
from ibug import IBUGRegressor

#: Settings with too few validation rows for a power of 90 %.
FEW = ("prefit, 40 ", "prefit, 60 ")
ALPHA, N_TRAIN, N_NEW, N_SHIFTED, SHIFT = 0.01, 600, 2000, 1000, 0.5
Floats = NDArray[np.float64]
Rows = tuple[Floats, Floats]

#: One value per fit: whether it was an alarm, by setting, kind of rows ("same", "shifted") and targets known.
Alarms = dict[tuple[str, str, bool], bool]


def additive(X: Floats, rng: np.random.Generator) -> Floats:
    noise = 0.3 + 0.5 * (X[:, 3] > 0)
    return 2 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + noise * rng.normal(size=len(X))


def skewed(X: Floats, rng: np.random.Generator) -> Floats:
    return X[:, 0] + np.abs(X[:, 1]) + (0.3 + 0.3 * (X[:, 2] > 0)) * (rng.gamma(2, size=len(X)) - 2)


def heavy(X: Floats, rng: np.random.Generator) -> Floats:
    return 3 * np.sin(X[:, 0]) + rng.standard_t(4, size=len(X))


GENERATORS = (additive, skewed, heavy)


def booster(number: int) -> Any:
    return (
        LGBMRegressor(n_estimators=50, n_jobs=1, verbose=-1),
        GradientBoostingRegressor(n_estimators=50, random_state=0),
        XGBRegressor(n_estimators=40, n_jobs=1),
    )[number]


def one_seed(seed: int) -> Alarms:
    """Return the alarms of one fit of each setting; boosters and generators take turns."""
    rng, target = np.random.default_rng(seed), GENERATORS[seed // 3 % 3]

    def rows(n: int, shift: float = 0.0) -> Rows:
        X = rng.normal(size=(n, 5))
        X[:, 0] += shift
        return X, target(X, rng)

    train, same, shifted = rows(N_TRAIN), rows(N_NEW), rows(N_SHIFTED, SHIFT)
    alarms: Alarms = {}

    def ask(setting: str, u: IBUGRegressor) -> None:
        for kind, (X, y) in (("same", same), ("shifted", shifted)):
            alarms[setting, kind, False] = u.monitor(X, alpha=ALPHA).drifted
            alarms[setting, kind, True] = u.monitor(X, y, alpha=ALPHA).drifted

    model = booster(seed % 3).fit(*train)
    for n, conformal in ((40, None), (60, None), (60, "scale"), (400, "scale"), (400, None)):
        X_val, y_val = rows(n)
        u = IBUGRegressor(model, prefit=True, conformal=conformal, random_state=seed)
        u.fit(*train, X_val=X_val, y_val=y_val)
        ask(f"prefit, {n} validation rows" + (", conformal" if conformal else ""), u)
    ask("  after update with 200 rows", u.update(*rows(200)))
    ask("  and recalibrate with 400", u.recalibrate(*rows(400)))
    ask("trained here", IBUGRegressor(booster(seed % 3), random_state=seed).fit(*train))
    return alarms


def measured(n_seeds: int, n_jobs: int = 1) -> str:
    """Return the table of alarms, as shares of the fits."""
    return table(Parallel(n_jobs=n_jobs)(delayed(one_seed)(seed) for seed in range(n_seeds)))


def table(found: Sequence[Alarms]) -> str:
    """Return the table of the alarms of all seeds."""
    shares: dict[str, dict[tuple[str, bool], float]] = defaultdict(dict)
    for setting, kind, labelled in found[0]:
        shares[setting][kind, labelled] = float(np.mean([one[setting, kind, labelled] for one in found]))
    columns = [(kind, labelled) for kind in ("same", "shifted") for labelled in (False, True)]
    lines = [
        f"{f'alarms at {ALPHA:g}, {len(found)} fits each':36}{f'{N_NEW:,} rows as before':>26}"
        f"{f'{N_SHIFTED:,} rows, shifted':>26}",
        f"{'':36}" + "".join(f"{'with y' if labelled else 'X alone':>13}" for _, labelled in columns),
        *(f"{name:36}" + "".join(f"{each[one]:13.1%}" for one in columns) for name, each in shares.items()),
    ]
    most = max(each["same", labelled] for each in shares.values() for labelled in (False, True))
    least = min(each["shifted", True] for name, each in shares.items() if not name.startswith(FEW))
    bars = [
        Bar("the highest share of false alarms is 1.5 % at most", f"{most:.1%}", most <= 0.015),
        Bar(
            "the shift is found in 90 % at least, with y, where more than 60 rows were held out",
            f"{least:.1%}",
            least >= 0.9,
        ),
    ]
    return "\n".join([*lines, "", *(bar.line() for bar in bars)])
