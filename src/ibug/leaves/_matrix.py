"""Rows as the plain matrix of numbers that a library would make of them, where that is certain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples


def array_as_floats(X: Any, integers: type[np.floating[Any]]) -> NDArray[Any] | None:
    """Return a NumPy array as contiguous floats of single or double precision."""
    if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2:
        return None
    if X.dtype == np.float64 or X.dtype == np.float32:
        return np.ascontiguousarray(X)
    return X.astype(integers, order="C") if X.dtype.kind in "biu" or X.dtype == np.float16 else None


def is_pandas(X: Any) -> bool:
    """Return whether X is a pandas data frame, without importing pandas."""
    if type(X) is np.ndarray:
        return False
    return any(cls.__name__ == "DataFrame" and cls.__module__.partition(".")[0] == "pandas" for cls in type(X).__mro__)


def sample_rows(X: Any, n: int) -> Any:
    """Return about n rows from all over X, and the first one of each category of a pandas frame: none is too rare."""
    chosen = [np.linspace(0, _num_samples(X) - 1, n).astype(np.intp)]
    if is_pandas(X):
        chosen += [np.unique(X.iloc[:, i].cat.codes, return_index=True)[1] for i, _ in categories_of(X)]
    return _safe_indexing(X, np.unique(np.concatenate(chosen)))


def categories_of(X: Any) -> list[tuple[int, list[Any]]]:
    """Return the place and the categories of each categorical column of a pandas frame."""
    places = [i for i, dtype in enumerate(X.dtypes.tolist()) if getattr(dtype, "name", "") == "category"]
    return [(i, X.dtypes.iloc[i].categories.tolist()) for i in places]


def frame_with_codes(
    X: Any, floats: type[np.floating[Any]], categories: list[list[Any]], *, recode: bool
) -> NDArray[Any] | None:
    """Return a pandas frame with categorical columns as contiguous floats: the codes of categories, NaN for missing."""
    found = categories_of(X)
    if len(found) != len(categories):
        return None
    if not recode and [given for _, given in found] != categories:
        return None
    places = [i for i, _ in found]
    others = [i for i in range(X.shape[1]) if i not in places]
    numbers = frame_as_floats(X.iloc[:, others], floats)
    if numbers is None:
        return None
    matrix = np.empty(X.shape, floats)
    matrix[:, others] = numbers
    for (i, given), known in zip(found, categories, strict=True):
        column = X.iloc[:, i].cat
        codes = (column if given == list(known) else column.set_categories(known).cat).codes.to_numpy()
        matrix[:, i] = np.where(codes < 0, np.nan, codes)
    return matrix


def names_of(X: Any) -> list[str]:
    """Return the names of a pandas frame's columns."""
    return [str(name) for name in X.columns.tolist()]


def frame_as_floats(X: Any, floats: type[np.floating[Any]], kinds: str = "biuf") -> NDArray[Any] | None:
    """Return a pandas frame of plain numeric columns as contiguous floats; ``None`` for any other frame."""
    if not all(isinstance(dtype, np.dtype) and dtype.kind in kinds for dtype in X.dtypes.tolist()):
        return None
    return np.ascontiguousarray(X.to_numpy(dtype=floats))
