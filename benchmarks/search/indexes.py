"""Rows and models that searches are compared on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1

from benchmarks.common import data
from benchmarks.common.paths import data_folder
from ibug.leaves import LeafReader, reader_of

Floats = NDArray[np.float64]
MADE, MADE_ROWS = "made", 30_000  # a dataset that needs no file


def table(name: str, folder: Path | None) -> tuple[Floats, Floats]:
    """Return features as numbers, (n_rows, n_features), and targets of a dataset, in an order that is always the same.

    Large datasets are in the folder ``large`` of the others.
    """
    if name == MADE:
        made: tuple[Floats, Floats] = make_friedman1(MADE_ROWS, noise=1.0, random_state=0)
        return made
    folder = data_folder(folder)
    if folder is not None and (folder / "large" / f"{name}.parquet").exists():
        folder = folder / "large"
    X, y = data.load(name, folder)
    order = np.random.default_rng(0).permutation(len(y))
    return np.ascontiguousarray(data.as_numbers(X).to_numpy(np.float64)[order]), y[order]


def trained_model(X: Any, y: Any, n_trees: int, kept: Path | None = None) -> Any:
    """Return LightGBM's model of 63 leaves a tree; with `kept`, the one of this file, which is written if it is not."""
    from lightgbm import Booster, LGBMRegressor

    if kept is not None and kept.exists():
        return Booster(model_file=kept)
    model = LGBMRegressor(n_estimators=n_trees, num_leaves=63, learning_rate=0.05, n_jobs=1, verbose=-1).fit(X, y)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        model.booster_.save_model(kept)
    return model.booster_


def trained_reader(X: Any, y: Any, n_trees: int) -> LeafReader:
    """Return the leaf reader of a LightGBM model that is trained on these rows with its defaults."""
    from lightgbm import LGBMRegressor

    reader = reader_of(LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1).fit(X, y))
    reader.prepare(X)
    return reader
