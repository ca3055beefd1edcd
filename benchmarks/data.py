"""Real datasets for benchmarks, looked up in a folder; none is part of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes


def data_folder(given: Path | None = None) -> Path | None:
    """Return the folder with the Parquet files: the given one, or the one that IBUG_DATA names."""
    if given is not None:
        return given
    return Path(os.environ["IBUG_DATA"]) if "IBUG_DATA" in os.environ else None


def names(folder: Path | None) -> list[str]:
    """Return the names of the datasets at hand; without a folder scikit-learn's bundled diabetes data."""
    return ["diabetes"] if folder is None else sorted(path.stem for path in folder.glob("*.parquet"))


def load(name: str, folder: Path | None, max_rows: int | None = None) -> tuple[Any, NDArray[np.float64]]:
    """Return a frame of features, strings as categories, and the targets: of a random sample if there are more rows."""
    if folder is None:
        if name != "diabetes":
            raise SystemExit(f"{name} is not at hand: set IBUG_DATA to the folder that has {name}.parquet.")
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        frame = X.assign(target=y)
    else:
        path = folder / f"{name}.parquet"
        if not path.exists():
            raise SystemExit(f"{path} does not exist. The folder has: {', '.join(names(folder))}.")
        frame = pd.read_parquet(path)
    if max_rows is not None and len(frame) > max_rows:
        frame = frame.sample(max_rows, random_state=0)
    X = frame.drop(columns="target").reset_index(drop=True)
    texts = [column for column in X if not pd.api.types.is_numeric_dtype(X[column])]
    return X.astype(dict.fromkeys(texts, "category")), frame["target"].to_numpy(np.float64)
