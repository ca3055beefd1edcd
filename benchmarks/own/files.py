"""Parquet files of somebody who has never seen this benchmark: what is in them, and whether it can be measured."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.common.data import load, read_table
from benchmarks.study.datasets import DatasetError

LEAST_ROWS = 200


class Table(NamedTuple):
    """A file that can be measured."""

    name: str
    n_rows: int
    n_features: int
    target: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        about = f"{self.name}: {self.n_rows:,} rows, {self.n_features} features, the target is {self.target!r}"
        return "\n".join([about, *(f"    {note}" for note in self.notes)])


def examine(folder: Path) -> tuple[list[Table], list[str]]:
    """Look at all Parquet files of a folder; return those that can be measured, and why others cannot."""
    if not folder.is_dir():
        raise DatasetError(f"{folder} is no folder. Give the one with your Parquet files: --data FOLDER.")
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        raise DatasetError(
            f"{folder} has no Parquet file, a name that ends with .parquet. pandas writes one: frame.to_parquet(path). "
            "The last column is the target."
        )
    tables, problems = [], []
    for path in paths:
        try:
            tables.append(_described(path))
        except (ValueError, OSError) as error:
            problems.append(f"{path.name} is left out: {str(error).splitlines()[0]}")
    return tables, problems


def _described(path: Path) -> Table:
    frame = read_table(path.stem, path.parent)
    if frame.shape[1] < 2:
        raise ValueError(f"it has {frame.shape[1]} column; features and, as the last column, the target are needed")
    target = str(frame.columns[-1])
    if not pd.api.types.is_numeric_dtype(frame[frame.columns[-1]]):
        raise ValueError(f"its last column, {target!r}, is not numeric, and the last column is the target")
    X, y = load(path.stem, path.parent)
    if len(y) < LEAST_ROWS:
        raise ValueError(f"it has {len(y)} rows with a target; {LEAST_ROWS} at least tell something")
    if not np.all(np.isfinite(y)):
        raise ValueError(f"its target, {target!r}, has infinite values")
    if np.ptp(y) == 0:
        raise ValueError(f"its target, {target!r}, is {y[0]:g} everywhere")
    notes = []
    if len(y) < len(frame):
        notes.append(f"{len(frame) - len(y):,} rows have no target and are left out")
    ids = [str(column) for column in X if str(X[column].dtype) == "category" and X[column].nunique() > len(X) / 2]
    if ids:
        notes.append(f"{', '.join(ids[:5])}: more than half of the texts differ; if these are ids, leave them out")
    return Table(path.stem, len(y), X.shape[1], target, tuple(notes))
