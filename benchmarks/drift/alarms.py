"""False alarms of `monitor` and `DriftMonitor` where nothing has drifted, and their power: a fit for each seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from catboost import CatBoostRegressor
from joblib import Parallel, delayed
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits
from xgboost import XGBRegressor

from benchmarks.common.bars import Bar
from ibug import IBUGRegressor
from ibug.metrics import Drift
from ibug.online import DriftMonitor

#: Settings with too few validation rows for a power of 90 %.
FEW = ("prefit, 40 ", "prefit, 60 ")
CONFORMAL = (None, "scale", "distribution")
ALPHA, N_TRAIN, N_NEW, N_SHIFTED, SHIFT = 0.01, 600, 2000, 1000, 0.5
#: Nights without data drift, and rows of each; then nights of shifted rows.
N_NIGHTS, N_ROWS, N_LATER, N_LATER_ROWS = 100, 50, 5, 200
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


BOOSTERS = {
    "LightGBM": LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1),
    "XGBoost": XGBRegressor(n_estimators=30, n_jobs=1),
    "HistGradientBoosting": HistGradientBoostingRegressor(max_iter=30, random_state=0),
    "CatBoost": CatBoostRegressor(
        iterations=60, learning_rate=0.2, thread_count=1, verbose=0, allow_writing_files=False
    ),
}


def booster(seed: int) -> str:
    """Return the name of the booster of a seed: they take turns."""
    return list(BOOSTERS)[seed % len(BOOSTERS)]


def without_targets(drift: Drift) -> bool:
    """Return whether these rows without their observed values are an alarm: the same tests, but fewer."""
    p_values = [drift[name].p_value for name in ("similarity", "prediction") if name in {test.name for test in drift}]
    return len(p_values) * min(p_values) < drift.alpha


def rows_of(seed: int) -> Callable[..., Rows]:
    """Return a function that draws n rows, shifted or not; generators take turns."""
    rng, target = np.random.default_rng(seed), GENERATORS[seed // len(BOOSTERS) % len(GENERATORS)]

    def rows(n: int, shift: float = 0.0) -> Rows:
        X = rng.normal(size=(n, 5))
        X[:, 0] += shift
        return X, target(X, rng)

    return rows


def one_seed(seed: int) -> Alarms:
    """Return the alarms of one fit of each setting; boosters and generators take turns."""
    rows = rows_of(seed)
    train, same, shifted = rows(N_TRAIN), rows(N_NEW), rows(N_SHIFTED, SHIFT)
    alarms: Alarms = {}

    def ask(setting: str, u: IBUGRegressor) -> None:
        for kind, (X, y) in (("same", same), ("shifted", shifted)):
            drift = u.monitor(X, y, alpha=ALPHA)
            alarms[setting, kind, False], alarms[setting, kind, True] = without_targets(drift), drift.drifted

    with threadpool_limits(1):
        model = clone(BOOSTERS[booster(seed)])
        trained = clone(model).fit(*train)
        for n in (40, 60, 400):
            X_val, y_val = rows(n)
            for conformal in CONFORMAL:
                u = IBUGRegressor(trained, prefit=True, conformal=conformal, random_state=seed, n_jobs=1)
                u.fit(*train, X_val=X_val, y_val=y_val)
                ask(f"prefit, {n} validation rows" + (f", {conformal}" if conformal else ""), u)
        for conformal in (None, "scale"):
            also = f", {conformal}" if conformal else ""
            u = IBUGRegressor(trained, prefit=True, conformal=conformal, random_state=seed, n_jobs=1)
            u.fit(*train, X_val=X_val, y_val=y_val)
            ask(f"400, after update with 200{also}", u.update(*rows(200)))
            ask(f"  and recalibrate with 400{also}", u.recalibrate(*rows(400)))
            ask(
                f"trained here{also}",
                IBUGRegressor(model, conformal=conformal, random_state=seed, n_jobs=1).fit(*train),
            )
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
        f"{f'alarms at {ALPHA:g}, {len(found)} fits each':42}{f'{N_NEW:,} rows as before':>26}"
        f"{f'{N_SHIFTED:,} rows, shifted':>26}",
        f"{'':42}" + "".join(f"{'with y' if labelled else 'X alone':>13}" for _, labelled in columns),
        *(f"{name:42}" + "".join(f"{each[one]:13.1%}" for one in columns) for name, each in shares.items()),
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


def nights_of_one_seed(seed: int) -> dict[str, tuple[bool, int]]:
    """Return by setting: whether `DriftMonitor` was ever alarmed without drift, and the night of drift it was found."""
    rows, found = rows_of(seed), {}
    with threadpool_limits(1):
        train, model = rows(N_TRAIN), clone(BOOSTERS[booster(seed)])
        trained = clone(model).fit(*train)
        fits: dict[str, IBUGRegressor] = {}
        for n, conformal in ((40, None), (400, None), (400, "scale")):
            X_val, y_val = rows(n)
            u = IBUGRegressor(trained, prefit=True, conformal=conformal, random_state=seed, n_jobs=1)
            u.fit(*train, X_val=X_val, y_val=y_val)
            fits[f"prefit, {n} validation rows" + (f", {conformal}" if conformal else "")] = u
        fits["trained here"] = IBUGRegressor(model, random_state=seed, n_jobs=1).fit(*train)
        for setting, u in fits.items():
            nights, later = DriftMonitor(u), 0
            for _ in range(N_NIGHTS):
                nights.observe(*rows(N_ROWS))
            alarm = nights.drifted(ALPHA)
            while not nights.drifted(ALPHA) and later < N_LATER:
                nights.observe(*rows(N_LATER_ROWS, SHIFT))
                later += 1
            found[setting] = alarm, later if nights.drifted(ALPHA) else N_LATER + 1
    return found


def nights(n_seeds: int, n_jobs: int = 1) -> str:
    """Return the table of alarms in a hundred nights."""
    return nights_table(Parallel(n_jobs=n_jobs)(delayed(nights_of_one_seed)(seed) for seed in range(n_seeds)))


def nights_table(found: Sequence[dict[str, tuple[bool, int]]]) -> str:
    """Return the table of all seeds."""
    lines = [
        f"{f'alarms at {ALPHA:g}, {len(found)} fits each':42}{f'ever in {N_NIGHTS} nights,':>26}"
        f"{f'{N_LATER_ROWS} a night, shifted, found':>32}",
        f"{'':42}{f'{N_ROWS} rows each as before':>26}{'in 1 night':>16}{f'in {N_LATER} nights':>16}",
    ]
    most, least = 0.0, 1.0
    for setting in found[0]:
        alarm, later = np.array([one[setting] for one in found]).T
        after = later[alarm == 0]
        shares = float(alarm.mean()), float(np.mean(after <= 1)), float(np.mean(after <= N_LATER))
        lines.append(f"{setting:42}{shares[0]:26.1%}{shares[1]:16.1%}{shares[2]:16.1%}")
        most, least = max(most, shares[0]), min(least, shares[2])
    bars = [
        Bar("DriftMonitor: the highest share of false alarms is 1.5 % at most", f"{most:.1%}", most <= 0.015),
        Bar(f"the shift is found within {N_LATER} nights in 90 % at least", f"{least:.1%}", least >= 0.9),
    ]
    return "\n".join([*lines, "", *(bar.line() for bar in bars)])
