"""Cases: rows in blocks whose totals are asked for; real ones from a folder, and made ones with known correlations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common.data import Floats, load

#: Airlines whose flights are taken: two of middle size, which fly from all three airports.
AIRLINES = ("AA", "US")
#: Made cases, and the known correlation of each kind of blocks.
KNOWN: dict[str, dict[str, float]] = {
    "made-one": {"day": 0.2},
    "made-nested": {"week": 0.1, "day": 0.15},
    "made-none": {"day": 0.0},
}
#: Parts of the units; each is once for testing, once for validation, and three times for training.
PARTS = 5


@dataclass(frozen=True)
class Case:
    """Rows with their features and targets, what they are split by, their blocks, and the groups of totals."""

    X: pd.DataFrame
    y: Floats
    units: NDArray[Any]  # (n_rows,) a unit is never divided between training, validation and test rows
    blocks: pd.DataFrame  # (n_rows, n_kinds)
    groups: NDArray[Any]  # (n_rows,)

    def of(self, rows: NDArray[np.intp]) -> Case:
        """Return some of the rows, in order."""
        X, blocks = (frame.iloc[rows].reset_index(drop=True) for frame in (self.X, self.blocks))
        return Case(X, self.y[rows], self.units[rows], blocks, self.groups[rows])


def names(folder: Path | None) -> list[str]:
    """Return the cases at hand; without a folder the made ones."""
    return [*(() if folder is None else _REAL), *KNOWN]


def load_case(name: str, split: int, folder: Path | None, max_units: int | None = None) -> Case:
    """Return a case; made ones are drawn anew for each split. With `max_units`, only the first units."""
    if name in KNOWN:
        case = made(name, split)
    elif folder is None:
        raise SystemExit(f"{name} is not at hand: set IBUG_DATA to the folder that has its table.")
    else:
        case = _REAL[name](folder)
    if max_units is None:
        return case
    return case.of(np.flatnonzero(np.isin(case.units, np.unique(case.units)[:max_units])))


def divided(case: Case, split: int) -> tuple[Case, Case, Case]:
    """Return training, validation and test rows, 60, 20 and 20 per cent of the units.

    Five splits in a row test each unit once; the next five have another order.
    """
    units = np.random.default_rng(split // PARTS).permutation(np.unique(case.units))
    parts = np.array_split(units, PARTS)
    test, valid = parts[split % PARTS], parts[(split + 1) % PARTS]
    for_test, for_valid = np.isin(case.units, test), np.isin(case.units, valid)
    masks = (~for_test & ~for_valid, for_valid, for_test)
    train, valid_rows, test_rows = (case.of(np.flatnonzero(mask)) for mask in masks)
    return train, valid_rows, test_rows


def bike(folder: Path, by: str) -> Case:
    """Return rentals hour by hour; rows are in the order of time, and a day ends where the hour falls."""
    X, y = load("bike", folder)
    X = X.drop(columns=["casual", "registered"])  # they add up to the target
    X["hr"] = X["hr"].astype(np.float64)
    day = np.r_[0, np.cumsum(np.diff(X["hr"]) < 0)]
    if by == "day":
        return Case(X, y, day, pd.DataFrame({"day": day}), day)
    week = day // 7
    return Case(X, y, week, pd.DataFrame({"week": week, "day": day}), week)


def flights(folder: Path, by: str) -> Case:
    """Return arrival delays of two airlines, sorted by day, airport and scheduled time."""
    X, y = load("large/flights_delay", folder)
    chosen = X.assign(target=y)[X["carrier"].isin(AIRLINES).to_numpy()]
    chosen = chosen.sort_values(["month", "day", "origin", "sched_dep_time"], kind="stable").reset_index(drop=True)
    X, y = chosen.drop(columns="target"), chosen["target"].to_numpy(np.float64)
    day = (100 * X["month"] + X["day"]).to_numpy(np.int64)
    if by == "day":
        return Case(X, y, day, pd.DataFrame({"day": day}), day)
    place = 10 * day + X["origin"].cat.codes.to_numpy(np.int64)
    return Case(X, y, day, pd.DataFrame({"day": day, "day_origin": place}), place)


def obesity(folder: Path, by: str) -> Case:
    """Return survey shares by question and group of people.

    By state, whole states are unseen, so that the state is no feature; by state and year, years of states are unseen.
    """
    X, y = load("obesity", folder)
    state = X["LocationAbbr"].cat.codes.to_numpy(np.int64)
    if by == "state":
        return Case(X.drop(columns="LocationAbbr"), y, state, pd.DataFrame({"state": state}), state)
    cell = 10_000 * state + X["YearStart"].to_numpy(np.int64)
    return Case(X, y, cell, pd.DataFrame({"state_year": cell}), cell)


def made(name: str, seed: int) -> Case:
    """Return made rows: errors depend on the features, and share a factor for each block as `KNOWN` says."""
    rng = np.random.default_rng([11, seed])
    weeks, days, hours = (300, 7, 6) if name == "made-nested" else (500, 1, 24)
    n = weeks * days * hours
    week, day = np.arange(n) // (days * hours), np.arange(n) // hours
    x = rng.uniform(-2, 2, size=(n, 5))
    codes = {"week": week, "day": day}
    error = np.sqrt(1 - sum(KNOWN[name].values())) * rng.normal(size=n)
    for kind, correlation in KNOWN[name].items():
        error += np.sqrt(correlation) * rng.normal(size=n)[codes[kind]]
    y = np.sin(2 * x[:, 0]) + x[:, 1] + (0.5 + 0.3 * np.abs(x[:, 2])) * error
    blocks = pd.DataFrame({kind: codes[kind] for kind in KNOWN[name]})
    return Case(pd.DataFrame(x, columns=[f"x{i}" for i in range(5)]), y, week, blocks, week)


_REAL: dict[str, Callable[[Path], Case]] = {
    "bike-day": lambda folder: bike(folder, "day"),
    "bike-week": lambda folder: bike(folder, "week"),
    "flights-day": lambda folder: flights(folder, "day"),
    "flights-origin": lambda folder: flights(folder, "origin"),
    "obesity-state": lambda folder: obesity(folder, "state"),
    "obesity-year": lambda folder: obesity(folder, "year"),
}
