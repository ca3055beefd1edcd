"""Draw daily totals of the bike data with their intervals: ``IBUG_DATA=folder python docs/draw_totals.py``.

The model is trained on 60 % of the days, 20 % are for validation, and 20 % are new. ``--out`` is the folder of the
picture, by default ``docs/images``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ibug import IBUGRegressor
from ibug.totals import group_sums

DAYS = 45  # that are drawn
STYLES = {"independent rows": "#E69F00", "a common factor of each day": "#0072B2"}


def load() -> tuple[pd.DataFrame, Any]:
    """Return the rows with their days, and their targets; rows are in the order of time."""
    rows = pd.read_parquet(Path(os.environ["IBUG_DATA"]) / "bike.parquet")
    X = rows.drop(columns=["target", "casual", "registered"])  # the last two add up to the target
    X["hr"] = X["hr"].astype(float)
    X["day"] = np.r_[0, np.cumsum(np.diff(X["hr"]) < 0)]
    return X, rows["target"].to_numpy(float)


def predict(X: pd.DataFrame, y: Any) -> tuple[Any, dict[str, Any]]:
    """Return the observed totals of new days, and their distributions: of independent rows, and by the factor."""
    from lightgbm import LGBMRegressor

    days = np.random.default_rng(0).permutation(X["day"].unique())
    train, val, new = (X["day"].isin(part) for part in np.split(days, [len(days) * 3 // 5, len(days) * 4 // 5]))
    day, X = X["day"].to_numpy(), X.drop(columns="day")
    model = LGBMRegressor(n_estimators=300, learning_rate=0.05, verbose=-1, random_state=0).fit(X[train], y[train])
    u = IBUGRegressor(model, prefit=True, random_state=0)
    u.fit(X[train], y[train], X_val=X[val], y_val=y[val], blocks_val=day[val])
    print(u.dependence_)
    found = (u.total_dist(X[new], by=day[new], blocks=blocks) for blocks in (False, day[new]))
    return group_sums(y[new], by=day[new]), dict(zip(STYLES, found, strict=True))


def draw(observed: Any, totals: dict[str, Any], path: Path) -> None:
    """Draw the intervals of the first days, and the observed totals."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    place = np.arange(min(DAYS, len(observed)))
    for (name, color), width in zip(reversed(STYLES.items()), (6.0, 2.5), strict=True):
        lower, upper = totals[name][place].interval(0.9)
        ax.vlines(place, lower, upper, color=color, linewidth=width, alpha=0.55 if width > 5 else 1.0, label=name)
    ax.plot(place, observed[place], "o", color="black", markersize=3.5, label="observed")
    ax.set(xlabel="New days, in the order of time", ylabel="Rentals of a day", xlim=(-1, len(place)))
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#D9D9D9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    ax.figure.savefig(path, dpi=120)


def main() -> None:
    """Predict the totals of new days, print what their intervals hold, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    out = parser.parse_args().out
    observed, totals = predict(*load())
    for name, found in totals.items():
        lower, upper = found.interval(0.9)
        inside, width = np.mean((lower <= observed) & (observed <= upper)), np.mean(upper - lower)
        print(f"{name:28} {inside:6.1%} inside, mean width {width:6.0f}, mean CRPS {found.crps(observed).mean():5.0f}")
    draw(observed, totals, out / "totals.png")


if __name__ == "__main__":
    main()
