"""Results side by side, and as data frames for those who ask: columns with names, and the index of the rows given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError, MissingDependencyError

Columns = Mapping[str, NDArray[Any]]


def check_output(output: Any) -> None:
    """Raise InvalidInputError for a kind of result that there is not; before anything is computed."""
    if output is not None and not (isinstance(output, str) and output in _MAKERS):
        raise InvalidInputError(f'output must be "pandas", "polars" or None (arrays of NumPy); got {output!r}.')


def index_of(rows: Any) -> Any:
    """Return the index of a pandas frame; None for all other rows, which have none."""
    index = getattr(rows, "index", None)
    return None if index is None or callable(index) else index  # lists have a method of this name


def frame(columns: Columns, output: str, index: Any = None) -> Any:
    """Return columns as a data frame. Shapes: columns (n_rows,); index (n_rows,)."""
    check_output(output)
    return _MAKERS[output](columns, index)


def interval_columns(ends: Floats, coverage: ArrayLike) -> dict[str, Floats]:
    """Return ends of intervals as columns: ``lower`` and ``upper``, or ``lower_90``, … where there are several.

    Shapes: ends (n_rows, 2); coverage (n_coverages,).
    """
    if np.ndim(coverage) == 0:
        return {"lower": ends[:, 0], "upper": ends[:, 1]}
    levels = _unlike([f"{100 * level:g}" for level in np.asarray(coverage, np.float64)], "coverage")
    return {f"{side}_{level}": ends[:, end, i] for i, level in enumerate(levels) for end, side in enumerate(_SIDES)}


def quantile_columns(quantiles: Floats, alpha: ArrayLike) -> dict[str, Floats]:
    """Return quantiles as columns: ``q0.05``, ``q0.5`` and so on.

    Shapes: quantiles (n_rows, n_alpha); alpha (n_alpha,).
    """
    return {name: quantiles[:, i] for i, name in enumerate(quantile_names(alpha))}


def columns_of_targets(
    make: Callable[[NDArray[Any]], Mapping[str, NDArray[Any]]], values: NDArray[Any], names: Sequence[str] | None
) -> dict[str, NDArray[Any]]:
    """Return the columns of several targets, one after the other: ``a_lower``, ``a_upper``, ``b_lower`` and so on.

    Shapes: values (n_rows, ...).
    """
    if names is None:
        return dict(make(values))
    return {f"{name}_{key}": one for j, name in enumerate(names) for key, one in make(values[:, j]).items()}


def quantile_names(alpha: ArrayLike) -> list[str]:
    """Return the names of the columns of quantiles: ``q0.05``, ``q0.5`` and so on. Shapes: alpha (n_alpha,)."""
    return _unlike([f"q{level:g}" for level in np.atleast_1d(np.asarray(alpha, np.float64))], "alpha")


def neighbor_frames(affinities: NDArray[Any], indices: NDArray[Any], output: str | None, rows: Any) -> tuple[Any, Any]:
    """Return what a search has found as two frames, or as it is. Shapes: affinities, indices (n_rows, k)."""
    if output is None:
        return affinities, indices
    both = {"affinity": affinities, "neighbor": indices}
    found = [{f"{name}_{i}": one for i, one in enumerate(table.T, 1)} for name, table in both.items()]
    return frame(found[0], output, index_of(rows)), frame(found[1], output, index_of(rows))


def _unlike(names: list[str], option: str) -> list[str]:
    """Return names of columns that are all different, or say which option is to blame."""
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{option} has a number twice, which would be two columns of one name: {names}.")
    return names


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f'output="{name}" needs {name}, which cannot be imported ({error}). Install it: pip install {name}.'
        ) from error


def _of_pandas(columns: Columns, index: Any) -> Any:
    return _library("pandas").DataFrame(dict(columns), index=index)


def _of_polars(columns: Columns, index: Any) -> Any:
    # polars has no index: lines are in the order of the rows.
    return _library("polars").DataFrame({name: np.ascontiguousarray(column) for name, column in columns.items()})


_SIDES = ("lower", "upper")
_MAKERS: dict[str, Callable[[Columns, Any], Any]] = {"pandas": _of_pandas, "polars": _of_polars}


def side_by_side(lower: Floats, upper: Floats) -> Floats:
    """Return what ``np.stack((lower, upper), axis=1)`` does, sooner: (n_rows, 2) or (n_rows, 2, n_coverages)."""
    ends = np.empty((len(lower), 2, *lower.shape[1:]))
    ends[:, 0], ends[:, 1] = lower, upper
    return ends
