"""The results of the accuracy benchmark, one JSON object a line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import lines
from benchmarks.common.lines import Row

# Results of before there were several ways and experiments, and the names that methods had then.
_BEFORE = {"folds": 5, "max_rows": 20_000, "max_trees": 500, "status": "ok"}
_RENAMED = {"auto": "normal", "auto+cbu": "normal+cbu"}


@dataclass(frozen=True)
class Experiment:
    """What results must have in common to be compared."""

    folds: int
    max_rows: int | None
    max_trees: int

    def as_row(self) -> Row:
        """Return the columns that name it."""
        return asdict(self)


def read(path: Path, experiment: Experiment) -> list[Row]:
    """Return the latest row of everything that was measured in an experiment."""
    rows = [_of_today(row) for row in lines.read(path)]
    wanted = experiment.as_row().items()
    return list({key(row): row for row in rows if wanted <= row.items()}.values())


def key(row: Row) -> tuple[Any, ...]:
    """Return what a row is the result of."""
    return row["dataset"], row["fold"], row["method"], row["base"], row["way"], row["scoring"]


def _of_today(row: Row) -> Row:
    if "way" in row:
        return row
    peer = row["method"] == "cbu"
    names = {"method": _RENAMED.get(row["method"], row["method"]), "way": "" if peer else "trained"}
    return {**_BEFORE, **row, **names, "base": "" if peer else row["base"], "rmse_mean": row["rmse"]}
