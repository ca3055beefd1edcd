"""Real datasets for benchmarks, looked up in a folder; none is part of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

Floats = NDArray[np.float64]

# Columns that are the target itself. The files have them because the paper's do.
_TARGET_AGAIN = {"superconductor": ["critical_temp"]}


def names(folder: Path | None) -> list[str]:
    """Return the names of the datasets at hand; without a folder scikit-learn's bundled diabetes data."""
    return ["diabetes"] if folder is None else sorted(path.stem for path in folder.glob("*.parquet"))


def load(name: str, folder: Path | None, max_rows: int | None = None) -> tuple[Any, Floats]:
    """Return a frame of features, texts as categories and dates as days, and the targets: the last column.

    Rows without a target are left out. Where there are more than `max_rows` rows, a random sample is taken, always the
    same one.
    """
    frame = read_table(name, folder)
    target = frame.columns[-1]
    if frame[target].isna().any():
        frame = frame[frame[target].notna()]
    if max_rows is not None and len(frame) > max_rows:
        frame = frame.sample(max_rows, random_state=0)
    X = frame.drop(columns=[target, *_TARGET_AGAIN.get(name, [])]).reset_index(drop=True)
    for column in X:
        if pd.api.types.is_datetime64_any_dtype(X[column]):
            X[column] = (X[column] - X[column].min()) / pd.Timedelta(days=1)
    texts = [column for column in X if not pd.api.types.is_numeric_dtype(X[column])]
    return X.astype(dict.fromkeys(texts, "category")), frame[target].to_numpy(np.float64)


def read_table(name: str, folder: Path | None) -> pd.DataFrame:
    """Return a dataset as it is in its file."""
    if folder is None:
        if name != "diabetes":
            raise SystemExit(f"{name} is not at hand: set IBUG_DATA to the folder that has {name}.parquet.")
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        return X.assign(target=y)
    path = folder / f"{name}.parquet"
    if not path.exists():
        raise SystemExit(f"{path} does not exist. The folder has: {', '.join(names(folder))}.")
    return pd.read_parquet(path)


def categories(X: Any) -> list[str]:
    """Return the columns that are categories."""
    return [column for column in X if str(X[column].dtype) == "category"]


def without_missing_categories(X: Any) -> Any:
    """Return the rows with missing categories as a category of their own: CatBoost takes no missing ones."""
    X = X.reset_index(drop=True)
    for column in categories(X):
        filled = X[column].astype(object).where(X[column].notna(), "missing")
        X[column] = filled.astype(str).astype("category")
    return X


def as_numbers(X: Any) -> Any:
    """Return the rows with categories as their numbers: every library takes these alike."""
    return X.assign(**{column: X[column].cat.codes for column in categories(X)})
