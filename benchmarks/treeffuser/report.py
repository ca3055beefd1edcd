"""Treeffuser beside the default of ibug, on the same rows: CRPS, the t-test, and the time for a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.common.bars import Bar
from benchmarks.common.lines import Row
from benchmarks.common.statistics import Folds, compare, geometric_mean

LEAST_BETTER = 0.8  # of the datasets, by the mean CRPS
MOST_LOSSES = 1  # by the t-test
LEAST_SPEEDUP = 5000.0
METHODS = ("default", "normal")


@dataclass(frozen=True)
class Comparison:
    """One dataset: the scores of Treeffuser and of a variant of ibug by fold, and milliseconds for a row."""

    theirs: Folds
    ours: Folds
    their_time: float
    our_time: float

    @property
    def ratio(self) -> float:
        """Our mean CRPS over theirs."""
        return float(np.mean(list(self.ours.values())) / np.mean(list(self.theirs.values())))

    @property
    def outcome(self) -> int:
        """1 for a win of ours, −1 for a loss, by the t-test."""
        return compare(self.ours, self.theirs)


def compared(theirs: Iterable[Row], ours: Iterable[Row], method: str, base: str) -> dict[str, Comparison]:
    """Return the comparison of each dataset that both have, over the folds that both have."""
    mine: dict[str, dict[int, Row]] = {}
    for row in ours:
        place = (row["method"], row["base"], row["way"], row["scoring"], row["status"])
        if place == (method, base, "trained", "crps", "ok"):
            mine.setdefault(row["dataset"], {})[row["fold"]] = row
    other: dict[str, dict[int, Row]] = {}
    for row in theirs:
        other.setdefault(row["dataset"], {})[row["fold"]] = row
    found = {}
    for dataset in sorted(mine.keys() & other.keys()):
        common = sorted(mine[dataset].keys() & other[dataset].keys())
        if common:
            pair = [[rows[dataset][fold] for fold in common] for rows in (other, mine)]
            folds = [{row["fold"]: float(row["crps"]) for row in rows} for rows in pair]
            times = [1e3 * sum(r["predict_seconds"] for r in rows) / sum(r["n_test"] for r in rows) for rows in pair]
            found[dataset] = Comparison(*folds, *times)
    return found


def text(theirs: list[Row], ours: list[Row], base: str) -> str:
    """Return the tables and the bars."""
    tables = {method: compared(theirs, ours, method, base) for method in METHODS}
    parts = [table(method, found, base) for method, found in tables.items() if found]
    if not parts:
        return "There are no results of both: run benchmarks/accuracy.py with the same --folds and --max-rows."
    return "\n\n".join([*parts, "\n".join(["Bars", *bars(tables["default"])])])


def table(method: str, found: dict[str, Comparison], base: str) -> str:
    """Return the table of one variant."""
    lines = [
        f"{method}, {base}, trained here",
        f"  {'':16}{'CRPS: ibug':>12}{'Treeffuser':>12}{'ratio':>8}  {'t-test':6}{'ms a row: ibug':>16}"
        f"{'Treeffuser':>12}{'times':>10}   folds",
    ]
    for dataset, each in found.items():
        ours, theirs = (np.mean(list(folds.values())) for folds in (each.ours, each.theirs))
        word = {1: "won", 0: "tie", -1: "lost"}[each.outcome]
        lines.append(
            f"  {dataset:16}{ours:12.4g}{theirs:12.4g}{each.ratio:8.3f}  {word:6}{each.our_time:16.4f}"
            f"{each.their_time:12.1f}{each.their_time / each.our_time:9,.0f}x   {len(each.ours)}"
        )
    lines.append(f"  {'geometric mean':16}{'':24}{geometric_mean(each.ratio for each in found.values()):8.3f}")
    return "\n".join(lines)


def bars(found: dict[str, Comparison]) -> list[str]:
    """Return whether the default reaches what it has to."""
    if not found:
        return ["  The default has no results."]
    better = sum(each.ratio < 1 for each in found.values())
    losses = sum(each.outcome < 0 for each in found.values())
    slowest = min(each.their_time / each.our_time for each in found.values())
    judged = (
        Bar(
            f"better mean CRPS on {LEAST_BETTER:.0%}", f"{better} of {len(found)}", better >= LEAST_BETTER * len(found)
        ),
        Bar(f"at most {MOST_LOSSES} loss by the t-test", f"{losses}", losses <= MOST_LOSSES),
        Bar(f"{LEAST_SPEEDUP:,.0f} x faster on every dataset", f"{slowest:,.0f} x", slowest >= LEAST_SPEEDUP),
    )
    return [bar.line(width=10) for bar in judged]
