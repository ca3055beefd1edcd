"""Rows in groups: by an array, a column, or a function of the rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats, Integers
from ibug.exceptions import InvalidInputError
from ibug.metrics._coverage import coverage
from ibug.metrics._mean_width import mean_width

Table = dict[str, NDArray[Any]]

_MOST_GROUPS = 100
_MOST_NUMBERS = 20  # more different numbers than these are divided into ranges
_RANGES = 5


def group_table(y: Floats, distribution: Any, levels: Floats, groups: Any, X: Any) -> Table:
    """Return number of rows, coverage and mean width of intervals for each group, as columns.

    Shapes: y (n,); levels (n_levels,).
    """
    names, codes = grouped(groups, X, len(y))
    members = [codes == code for code in range(len(names))]
    table: Table = {"group": np.array(names, str), "rows": np.array([each.sum() for each in members], np.int64)}
    for level in levels:
        percent = f"{100 * level:g}"
        for kind, metric in (("coverage", coverage), ("width", mean_width)):
            values = metric(y, distribution, float(level), reduce=None)
            with np.errstate(invalid="ignore"):  # means of infinite widths
                table[f"{kind}_{percent}"] = np.array([np.mean(values[each]) for each in members])
    return table


def grouped(groups: Any, X: Any, n: int) -> tuple[list[str], Integers]:
    """Return the names of the groups, in their order, and the group of each row, (n,)."""
    values = _column(groups, X)
    array = np.asarray(values)
    if array.shape == (n, 1):
        array = array[:, 0]
    if array.shape != (n,):
        raise InvalidInputError(
            f"groups must have one entry for each of the {n} rows, or be the name of a column or a function of X that "
            f"returns such an array; got shape {array.shape}."
        )
    missing = _missing(array)
    places = np.full(n, -1, np.int64)
    names, places[~missing] = _places(array[~missing], getattr(getattr(values, "dtype", None), "categories", None))
    used = np.unique(places[places >= 0])
    names, places = [names[place] for place in used], np.where(missing, len(used), np.searchsorted(used, places))
    return [*names, *(["missing"] if missing.any() else [])], places


def _column(groups: Any, X: Any) -> Any:
    if callable(groups):
        return groups(X)
    if not isinstance(groups, str):
        return groups
    names = [str(name) for name in getattr(X, "columns", ())]
    if groups not in names:
        known = (
            f"the columns are {names}" if names else "X has no names of columns: give an array with one entry per row"
        )
        raise InvalidInputError(f"There is no column {groups!r} to group by; {known}.")
    return X[X.columns[names.index(groups)]]


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or type(value).__name__ == "NAType" or value != value for value in values], bool)
    return np.asarray(values != values)


def _places(values: NDArray[Any], categories: Any) -> tuple[list[str], Integers]:
    """Return names of groups in their order, and the place of each value among them."""
    if categories is not None:
        texts = [_text(category) for category in categories]
        return texts, _lookup([_text(value) for value in values], texts)
    if values.dtype.kind == "O" and all(isinstance(value, (bool, int, float, np.number)) for value in values):
        values = values.astype(np.float64)  # a column of integers with gaps
    if values.dtype.kind in "OU":
        texts = sorted({_text(value) for value in values})
        return _few(texts), _lookup([_text(value) for value in values], texts)
    different = np.unique(values)
    if len(different) > _MOST_NUMBERS and values.dtype.kind in "iufM":
        return _ranges(values)
    return _few([_text(value) for value in different]), np.searchsorted(different, values).astype(np.int64)


def _ranges(values: NDArray[Any]) -> tuple[list[str], Integers]:
    """Divide numbers or dates into ranges with about as many rows each."""
    ordered = np.sort(values)
    edges = np.unique(ordered[[len(ordered) * i // _RANGES for i in range(1, _RANGES)]])
    edges = edges[edges > ordered[0]]
    if not len(edges):  # almost all values are the smallest one
        edges = ordered[ordered > ordered[0]][:1]
    texts = [_text(edge) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(texts)]
    names = [f"below {texts[0]}", *between, f"{texts[-1]} and more"]
    return names, np.searchsorted(edges, values, side="right").astype(np.int64)


def _lookup(texts: list[str], names: list[str]) -> Integers:
    place = {name: i for i, name in reversed(list(enumerate(names)))}
    return np.array([place[text] for text in texts], np.int64)


def _few(names: list[str]) -> list[str]:
    if len(names) > _MOST_GROUPS:
        raise InvalidInputError(
            f"These are {len(names)} groups ({names[0]!r}, {names[1]!r}, …); {_MOST_GROUPS} at most can be told apart. "
            "Put them together first: give an array, or a function of X, with one name of a larger group per row."
        )
    return names


def _text(value: Any) -> str:
    is_number = isinstance(value, (float, np.floating))
    return f"{value:.6g}" if is_number else str(value)
