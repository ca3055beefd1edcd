"""Draw coverage over time on the bike data, hour by hour: ``IBUG_DATA=folder python docs/draw_time.py``.

The model is trained on the first ten months of the first year, validated on the last two, and then walks through the
second year, one day at a time. ``--out`` is the folder of the picture, by default ``docs/images``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ibug import AdaptiveIntervals, IBUGRegressor

LAGS = (24, 48, 168)  # hours: what is known a day ahead
DAY, AGAIN, LATEST, WINDOW = 24, 28 * 24, 56 * 24, 14 * 24
STYLES = {"fixed": ("#8A8A8A", ":"), "recalibrated": ("#E69F00", "--"), "adaptive": ("#0072B2", "-")}


def load() -> tuple[pd.DataFrame, pd.Series]:
    """Return features, with targets of a day, two days and a week ago, and targets, in the order of time."""
    rows = pd.read_parquet(Path(os.environ["IBUG_DATA"]) / "bike.parquet")
    X = rows.drop(columns=["target", "casual", "registered"])  # the last two add up to the target
    X["hr"] = X["hr"].astype(int)
    for lag in LAGS:
        X[f"count_{lag}_hours_ago"] = rows["target"].shift(lag)
    return X[max(LAGS) :].reset_index(drop=True), rows["target"][max(LAGS) :].astype(float).reset_index(drop=True)


def walk(X: pd.DataFrame, y: pd.Series) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return for each way, over the second year, whether the truth was inside its 90 % interval, and the width."""
    from lightgbm import LGBMRegressor

    first = X["yr"] == 0
    train, val = (np.flatnonzero(first & part) for part in (X["mnth"] <= 10, X["mnth"] > 10))
    later = np.flatnonzero(~first)
    X = X.drop(columns="yr")
    model = LGBMRegressor(n_estimators=300, learning_rate=0.05, verbose=-1, random_state=0)
    model.fit(X.iloc[train], y[train])

    def fitted() -> IBUGRegressor:
        u = IBUGRegressor(model, prefit=True, conformal="scale", support=(0, np.inf), random_state=0)
        return u.fit(X.iloc[train], y[train], X_val=X.iloc[val], y_val=y[val])

    fixed, again = fitted(), fitted()
    stream = AdaptiveIntervals(fixed, coverage=0.9)
    inside: dict[str, list[Any]] = {name: [] for name in STYLES}
    width: dict[str, list[Any]] = {name: [] for name in STYLES}
    for start in range(later[0], len(y), DAY):
        day = slice(start, start + DAY)
        if start > later[0] and (start - later[0]) % AGAIN == 0:
            again.recalibrate(X[start - LATEST : start], y[start - LATEST : start])
        ends = {
            "fixed": fixed.predict_interval(X[day], 0.9),
            "recalibrated": again.predict_interval(X[day], 0.9),
            "adaptive": stream.predict_interval(X[day]),
        }
        truth = y[day].to_numpy()
        for name, (lower, upper) in ((name, found.T) for name, found in ends.items()):
            inside[name].append((lower <= truth) & (truth <= upper))
            width[name].append(upper - lower)
        stream.observe(X[day], truth)
    return tuple({name: np.concatenate(each[name]) for name in STYLES} for each in (inside, width))  # type: ignore[return-value]  # two of them


def draw(inside: dict[str, Any], path: Path) -> None:
    """Draw the share of the last 14 days that was inside, over the year."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    ax.axhline(0.9, color="black", linewidth=0.8)
    for name, (color, dashes) in STYLES.items():
        share = np.convolve(inside[name], np.ones(WINDOW) / WINDOW, "valid")
        days = (np.arange(len(share)) + WINDOW) / 24
        ax.plot(days, share, color=color, linestyle=dashes, label=f"{name}: {inside[name].mean():.0%}")
    ax.set(
        xlabel="Day of the second year", ylabel="Inside 90 % intervals,\nlast 14 days", ylim=(0.4, 1.0), xlim=(14, 366)
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#D9D9D9", linewidth=0.6)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    ax.figure.savefig(path, dpi=120)


def main() -> None:
    """Walk through the second year, print what was inside, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    out = parser.parse_args().out
    inside, width = walk(*load())
    for name in STYLES:
        print(f"{name:13} {inside[name].mean():6.1%} inside, mean width {width[name].mean():6.1f}")
    draw(inside, out / "time.png")


if __name__ == "__main__":
    main()
