"""How soon a large model is ready: `ibug.load` with memory mapping, and the first prediction after it.

It prints one line of JSON: python -m benchmarks.speed.loading LightGBM 500000 2000

The file was written just before, so it is in the memory of the system, as it is where a service starts again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ibug
from benchmarks.common.progress import say
from benchmarks.speed.models import MODELS
from benchmarks.speed.rows import synthetic_rows
from ibug import IBUGRegressor

TRAINED = 40_000  # rows of the model; the index may have more
WAYS: dict[str, dict[str, bool]] = {
    "mapped, checksums verified": {},
    "mapped, unverified": {"verify": False},
    "read into memory": {"mmap": False},
}


def measure(library: str, n_rows: int, n_trees: int, n_rounds: int) -> dict[str, Any]:
    """Save a model with a large index, load it, and return seconds: for loading, and for the calls after it."""
    X, y = synthetic_rows(n_rows)
    say(f"... {library}, {n_rows:,} rows, {n_trees:,} trees: training, indexing and saving")
    model = MODELS[library](n_trees).fit(X[:TRAINED], y[:TRAINED])
    paper: dict[str, Any] = {"distribution": "normal", "spread": "targets", "calibrate": False}
    u = IBUGRegressor(model, prefit=True, k=min(50, n_rows), **paper, n_jobs=1).fit(X, y)
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory(prefix="ibug-") as folder:
        path = Path(folder) / "model.ibug"
        u.save(path, compress=False)
        n_bytes = u.source_.index.nbytes
        ibug.load(path)  # which imports what loading needs
        for way, options in WAYS.items():
            say(f"... {way}")
            rounds = [_one(path, X, options) for _ in range(n_rounds)]
            found[way] = {name: float(np.min([one[name] for one in rounds])) for name in rounds[0]}
    return {"library": library, "n_rows": n_rows, "n_trees": n_trees, "index_bytes": n_bytes, "seconds": found}


def _one(path: Path, X: Any, options: dict[str, bool]) -> dict[str, float]:
    start = time.perf_counter()
    loaded: Any = ibug.load(path, **options)
    times = {"load": time.perf_counter() - start}
    for call in range(10):
        start = time.perf_counter()
        loaded.predict_interval(X[call : call + 1])
        if call in (0, 9):
            times["first call" if call == 0 else "tenth call"] = time.perf_counter() - start
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=MODELS)
    parser.add_argument("rows", type=int)
    parser.add_argument("trees", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(measure(options.library, options.rows, options.trees, options.rounds)))


if __name__ == "__main__":
    main()
