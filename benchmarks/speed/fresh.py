"""A fit in a process of its own, whose memory nothing else has touched; and the first predictions after loading.

It prints one line of JSON: python -m benchmarks.speed.fresh model.pickle, a file with a setting and its trained model,
as ``benchmarks.speed.measure`` writes it.
"""

from __future__ import annotations

import json
import pickle
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common.timing import peak_memory, seconds, single_rows
from benchmarks.speed.models import VALIDATION, rows_of
from ibug import IBUGRegressor

LOADED = 5  # copies of the fitted regressor whose first calls are timed
CACHE_BYTES = 2**27  # more than any cache of today
WARM = 64  # rows of a first fit, so that code and libraries are loaded before memory is measured


def main() -> None:
    setting, model = pickle.loads(Path(sys.argv[1]).read_bytes())
    rows = rows_of(setting)
    validation = {"X_val": rows.X_val, "y_val": rows.y_val}
    IBUGRegressor(model, prefit=True, n_jobs=1).fit(rows.X[:WARM], rows.y[:WARM], **validation)
    before = peak_memory()
    regressor = IBUGRegressor(model, prefit=True, n_jobs=1).fit(rows.X, rows.y, **validation)
    growth = peak_memory() - before
    first, later = first_calls(regressor, single_rows(rows.queries))
    figures = {"peak_growth": growth, "index_bytes": regressor.source_.index.nbytes, "n_validation": VALIDATION}
    print(json.dumps({**figures, "first_call": first, "tenth_call": later}))


def first_calls(regressor: IBUGRegressor, rows: list[np.ndarray]) -> tuple[float, float]:
    """Return the time of the first prediction after loading and of the tenth, in seconds: medians over some copies.

    Loading leaves the processor's caches cold, whoever is called next. They are cooled before each call alike, so that
    the first one is slower only if something is made that later ones find ready.
    """
    stored = pickle.dumps(regressor)
    filler = np.ones(CACHE_BYTES // 8)
    times = np.empty((LOADED, 10))
    for copy in range(LOADED):
        loaded = pickle.loads(stored)
        for call in range(10):
            filler += 1
            times[copy, call] = seconds(partial(loaded.predict_dist, rows[call]))
    medians = np.median(times, axis=0)
    return float(medians[0]), float(medians[9])


if __name__ == "__main__":
    main()
