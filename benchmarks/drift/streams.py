"""Long-run coverage on streams of rows that move."""

from __future__ import annotations

import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray

from benchmarks.common.bars import Bar
from ibug import AdaptiveIntervals, IBUGRegressor

KINDS = ("sudden", "slow", "seasonal")
N_TRAIN, N_VALIDATION, N_STREAM, BATCH = 2000, 1000, 3000, 10
LEVEL, EVERY, LATEST = 0.9, 250, 500

Floats = NDArray[np.float64]


def rows(kind: str, seed: int) -> tuple[Floats, Floats]:
    """Return rows in the order of time: from the stream on, the level or the noise of the target moves."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_VALIDATION + N_STREAM
    X = rng.uniform(size=(n, 4))
    t = np.maximum(np.arange(n) - N_TRAIN - N_VALIDATION, 0) / N_STREAM
    noise, level = np.ones(n), np.zeros(n)
    if kind == "sudden":  # from the first third of the stream on, twice the noise, and higher
        noise, level = np.where(t > 1 / 3, 2.0, 1.0), np.where(t > 1 / 3, 1.5, 0.0)
    elif kind == "slow":
        noise = 1 + 3 * t
    else:
        level = 2.5 * np.sin(2 * np.pi * 4 * t)
    return X, 6 * X[:, 0] + level + noise * (0.3 + X[:, 1]) * rng.normal(size=n)


def walk(kind: str, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Return for each way whether the interval of each row of the stream held the truth."""
    X, y = rows(kind, seed)
    train, start = slice(N_TRAIN), N_TRAIN + N_VALIDATION
    model = LGBMRegressor(n_estimators=60, verbose=-1, n_jobs=1, random_state=0).fit(X[train], y[train])

    def fitted() -> IBUGRegressor:
        u = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0)
        return u.fit(X[train], y[train], X_val=X[N_TRAIN:start], y_val=y[N_TRAIN:start])

    fixed, again = fitted(), fitted()
    stream = AdaptiveIntervals(fixed, LEVEL)
    inside: dict[str, list[NDArray[np.bool_]]] = {"fixed": [], "recalibrated": [], "adaptive": []}
    for first in range(start, len(y), BATCH):
        now = slice(first, first + BATCH)
        if first > start and (first - start) % EVERY == 0:
            again.recalibrate(X[first - LATEST : first], y[first - LATEST : first])
        ends = {
            "fixed": fixed.predict_interval(X[now], LEVEL),
            "recalibrated": again.predict_interval(X[now], LEVEL),
            "adaptive": stream.predict_interval(X[now]),
        }
        for name, (lower, upper) in ((name, found.T) for name, found in ends.items()):
            inside[name].append((lower <= y[now]) & (y[now] <= upper))
        stream.observe(X[now], y[now])
    return {name: np.concatenate(parts) for name, parts in inside.items()}


def measured(n_seeds: int) -> str:
    """Return the table of all kinds, with bars."""
    lines = [f"{'stream':10}{'seed':>6}{'fixed':>10}{'recalibrated':>14}{'adaptive':>10}{'worst 250 rows':>32}"]
    lines.append(f"{'':10}{'':6}{'':10}{'':14}{'':10}{'fixed':>12}{'recal.':>10}{'adaptive':>10}")
    fixed, adaptive = [], []
    for kind in KINDS:
        for seed in range(n_seeds):
            found = walk(kind, seed)
            shares = {name: values.mean() for name, values in found.items()}
            worst = [np.convolve(values, np.ones(250) / 250, "valid").min() for values in found.values()]
            fixed.append(shares["fixed"])
            adaptive.append(shares["adaptive"])
            lines.append(
                f"{kind:10}{seed:6}{shares['fixed']:10.1%}{shares['recalibrated']:14.1%}{shares['adaptive']:10.1%}"
                f"{worst[0]:12.1%}{worst[1]:10.1%}{worst[2]:10.1%}"
            )
    low, high = min(adaptive), max(adaptive)
    bars = [
        Bar("the highest coverage of fixed intervals is below 80 %", f"{max(fixed):.1%}", max(fixed) < 0.8),
        Bar("the lowest coverage of adaptive intervals is 89 % at least", f"{low:.1%}", low >= 0.89),
        Bar("the highest is 91 % at most", f"{high:.1%}", high <= 0.91),
    ]
    return "\n".join([*lines, "", *(bar.line() for bar in bars)])
