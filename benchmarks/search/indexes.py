"""Indexes that searches are compared on."""

from __future__ import annotations

from typing import Any

from ibug import LeafIndex
from ibug.leaves import LeafReader, reader_of

LIBRARIES = ("LightGBM", "CatBoost")


def without_bounds(index: LeafIndex) -> LeafIndex:
    """Return the same index without what lets it skip rows: every query looks at all of them."""
    return LeafIndex.from_arrays({name: a for name, a in index.arrays().items() if name in LeafIndex.REQUIRED_ARRAYS})


def trained_reader(library: str, X: Any, y: Any, n_trees: int) -> LeafReader:
    """Return the leaf reader of a model that is trained on these rows."""
    if library == "LightGBM":
        from lightgbm import LGBMRegressor

        model = LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1).fit(X, y)
    else:
        from catboost import CatBoostRegressor

        model = CatBoostRegressor(n_estimators=n_trees, thread_count=1, verbose=0, allow_writing_files=False).fit(X, y)
    reader = reader_of(model)
    reader.prepare(X)
    return reader
