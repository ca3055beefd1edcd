"""Sizes and times of saved files, beside joblib's: ``python benchmarks/persistence.py [rows] [trees]``.

An index has one byte per row and tree up to 256 leaves: 1,000,000 rows and 1,000 trees make a gigabyte.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from lightgbm import LGBMRegressor

import ibug
from benchmarks.common.arguments import parser_of
from ibug import IBUGRegressor


def measured(action: Callable[[], Any]) -> str:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return f"{time.perf_counter() - wall:8.3f} s, {time.process_time() - cpu:8.3f} s of processors"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=200_000)
    parser.add_argument("trees", type=int, nargs="?", default=100)
    options = parser.parse_args()
    measure(options.rows, options.trees)


def measure(n_rows: int, n_trees: int) -> None:
    """Print what each way of saving and loading needs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 8)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=n_rows)
    model = LGBMRegressor(n_estimators=n_trees, verbose=-1).fit(X, y)
    u = IBUGRegressor(model, prefit=True, k=50, calibrate=False).fit(X, y)
    print(f"index of {n_rows} rows and {n_trees} trees: {u.source_.index.nbytes / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writers: dict[str, Callable[[Path], Any]] = {
            "save, compressed": lambda path: u.save(path),
            "save, mappable": lambda path: u.save(path, compress=False),
            "joblib": lambda path: joblib.dump(u, path),
            "joblib, compress=3": lambda path: joblib.dump(u, path, compress=3),
        }
        for title, write in writers.items():
            spent = measured(lambda write=write, title=title: write(folder / title))
            print(f"{title:24} {(folder / title).stat().st_size / 1e6:10.1f} MB {spent}")
        readers: dict[str, Callable[[], Any]] = {
            "load, compressed": lambda: ibug.load(folder / "save, compressed"),
            "load, mapped": lambda: ibug.load(folder / "save, mappable"),
            "load, mapped, unverified": lambda: ibug.load(folder / "save, mappable", verify=False),
            "load, mappable, copied": lambda: ibug.load(folder / "save, mappable", mmap=False),
            "joblib.load": lambda: joblib.load(folder / "joblib"),
        }
        for title, read in readers.items():
            print(f"{title:24} {measured(read)}")
