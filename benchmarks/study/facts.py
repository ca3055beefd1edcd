"""What the paper printed: its tables as numbers, from benchmarks/paper/."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from benchmarks.common.statistics import Record

FOLDER = Path(__file__).parent.parent / "paper"


@cache
def values() -> dict[tuple[str, str, str], float]:
    """Return the means, by table, dataset and method as the paper names them."""
    with (FOLDER / "tables.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["value"]]
    return {(row["metric"], row["dataset"], row["method"]): float(row["value"]) for row in rows}


@cache
def selected() -> dict[tuple[str, str], dict[str, float]]:
    """Return the hyperparameters that the paper selected, tuned for the CRPS, by dataset and method as it names them.

    Of these: ``T``, the number of trees; ``eta``, the learning rate; ``d``, the depth, -1 for the library's own; ``h``,
    the leaves of a tree; ``min_leaf``, the fewest rows of a leaf.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    with (FOLDER / "hyperparameters.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["optimized"] == "crps" and row["parameter"] in ("T", "eta", "d", "h", "min_leaf"):
                found.setdefault((row["dataset"], row["method"]), {})[row["parameter"]] = float(row["value"])
    return found


@cache
def wins() -> dict[tuple[str, str, str], Record]:
    """Return wins, ties and losses over the paper's 22 datasets, by table, method and the one it is compared with."""
    with (FOLDER / "wins.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["table"], row["method"], row["against"]): Record(int(row["wins"]), int(row["ties"]), int(row["losses"]))
        for row in rows
    }
