"""Data frames: results as frames for those who ask, and what the columns of the training rows were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._typing import Floats
from ibug._warnings import warn_user
from ibug.exceptions import InvalidInputError, MissingDependencyError, UnknownCategoryWarning

Columns = Mapping[str, NDArray[Any]]


def check_output(output: Any) -> None:
    """Raise InvalidInputError for a kind of result that there is not; before anything is computed."""
    if output is not None and not (isinstance(output, str) and output in ("pandas", "polars")):
        raise InvalidInputError(f'output must be "pandas", "polars" or None (arrays of NumPy); got {output!r}.')


def index_of(rows: Any) -> Any:
    """Return the index of a pandas frame; None for all other rows, which have none."""
    index = getattr(rows, "index", None)
    return None if index is None or callable(index) else index  # lists have a method of this name


def frame(columns: Columns, output: str, index: Any = None) -> Any:
    """Return columns as a data frame. Shapes: columns (n_rows,); index (n_rows,)."""
    check_output(output)
    try:
        library = import_module(output)
    except ImportError as error:
        raise MissingDependencyError(
            f'output="{output}" needs {output}, which cannot be imported ({error}). Install it: pip install {output}.'
        ) from error
    if output == "pandas":
        return library.DataFrame(dict(columns), index=index)
    # polars has no index: lines are in the order of the rows.
    return library.DataFrame({name: np.ascontiguousarray(column) for name, column in columns.items()})


def interval_columns(ends: Floats, coverage: ArrayLike) -> dict[str, Floats]:
    """Return ends of intervals as columns: ``lower`` and ``upper``, or ``lower_90``, … where there are several.

    Shapes: ends (n_rows, 2); coverage (n_coverages,).
    """
    if np.ndim(coverage) == 0:
        return {"lower": ends[:, 0], "upper": ends[:, 1]}
    levels = _distinct([f"{100 * level:g}" for level in np.asarray(coverage, np.float64)], "coverage")
    return {
        f"{side}_{level}": ends[:, end, i]
        for i, level in enumerate(levels)
        for end, side in enumerate(("lower", "upper"))
    }


def side_by_side(lower: Floats, upper: Floats) -> Floats:
    """Return what ``np.stack((lower, upper), axis=1)`` does, sooner: (n_rows, 2) or (n_rows, 2, n_coverages)."""
    ends = np.empty((len(lower), 2, *lower.shape[1:]))
    ends[:, 0], ends[:, 1] = lower, upper
    return ends


def totals_frame(
    totals: Sequence[Any], ends: Sequence[Floats], coverage: ArrayLike, names: Sequence[str] | None, output: str
) -> Any:
    """Return totals of one target or several as a data frame. Shapes: ends, each (n_groups, 2)."""
    columns: dict[str, NDArray[Any]] = {"group": totals[0].groups, "n_rows": totals[0].n_rows}
    for j, (total, own) in enumerate(zip(totals, ends, strict=True)):
        values = {"mean": total.mean(), "median": total.median(), **interval_columns(own, coverage)}
        columns |= {name if names is None else f"{names[j]}_{name}": one for name, one in values.items()}
    return frame(columns, output)


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
    return _distinct([f"q{level:g}" for level in np.atleast_1d(np.asarray(alpha, np.float64))], "alpha")


def neighbor_frames(affinities: NDArray[Any], indices: NDArray[Any], output: str | None, rows: Any) -> tuple[Any, Any]:
    """Return what a search has found as two frames, or as it is. Shapes: affinities, indices (n_rows, k)."""
    if output is None:
        return affinities, indices
    both = {"affinity": affinities, "neighbor": indices}
    found = [{f"{name}_{i}": one for i, one in enumerate(table.T, 1)} for name, table in both.items()]
    return frame(found[0], output, index_of(rows)), frame(found[1], output, index_of(rows))


def _distinct(names: list[str], option: str) -> list[str]:
    """Return names of columns that are all different, or raise an error that names the option."""
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{option} has a number twice, which would be two columns of one name: {names}.")
    return names


FeatureType = dict[str, Any]  # name, dtype and, of categorical columns, categories; of columns of text, texts

# A column with more different texts than this has no list of them: it is an id, or prose.
_MOST_TEXTS = 10_000
_SHOWN = 3
_FEW_ROWS = 50  # of which a list is faster than what libraries do for many


def feature_types(X: Any) -> list[FeatureType]:
    """Return for each column its name (None in arrays), the name of its type, and its categories if it has some.

    Columns of text have the different ``texts``, if these are at most 10,000. Values are plain: texts, numbers and
    lists. Categories of another kind, dates say, are given as text.
    """
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # a table of pyarrow
        return [{"name": field.name, "dtype": str(field.type)} for field in X.schema]
    if not hasattr(X, "columns"):
        dtype = getattr(X, "dtype", None)
        return [
            {"name": None, "dtype": str(dtype or "object")}
            | (_texts(X[:, i]) if getattr(dtype, "kind", "") == "O" else {})
            for i in range(X.shape[1])
        ]
    return [_feature_type(str(name), X[name]) for name in X.columns]


def _feature_type(name: str, column: Any) -> FeatureType:
    dtype = str(column.dtype)
    categories = getattr(column.dtype, "categories", None)  # of pandas, and of polars' Enum
    if categories is None and dtype.startswith("Categorical"):
        categories = column.cat.get_categories()  # of polars
    if categories is not None:
        return {"name": name, "dtype": "category", "categories": [_plain(value) for value in categories]}
    may_be_text = dtype.lower() in ("object", "str", "string", "utf8") or dtype.startswith("string")
    return {"name": name, "dtype": dtype} | (_texts(column) if may_be_text else {})


def warn_unknown_categories(X: Any, types: Sequence[FeatureType]) -> None:
    """Warn of categories, or texts, that the training rows did not have. Shapes: X (n_rows, n_features)."""
    if (type(X) is np.ndarray and X.dtype != object) or hasattr(X, "column_names"):
        return
    found = {}
    for i, column in enumerate(types):
        known = column.get("categories", column.get("texts"))
        if known is None:
            continue
        values = X[column["name"]] if hasattr(X, "columns") and column["name"] is not None else None
        values = X[:, i] if values is None and type(X) is np.ndarray else values
        categories = getattr(getattr(values, "dtype", None), "categories", None)
        if categories is not None and hasattr(categories, "tolist") and categories.tolist() == known:
            continue
        if values is not None and (unknown := _different(values).difference(known)):
            found[str(column["name"] if column["name"] is not None else i)] = unknown
    if found:
        examples = "; ".join(
            f"{name!r}: {', '.join(map(repr, sorted(map(str, unknown))[:_SHOWN]))}{', …' * (len(unknown) > _SHOWN)}"
            for name, unknown in [*found.items()][:_SHOWN]
        )
        more = f", and {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else ""
        warn_user(
            f"Some rows have categories that the training rows did not have, in {examples}{more}. The model treats "
            "them as its library does, mostly as missing values: predictions and intervals do not know what they mean.",
            UnknownCategoryWarning,
        )


def _different(values: Any) -> set[Any]:
    """Return the different values of a column, plain and without missing ones."""
    if len(values) >= _FEW_ROWS and hasattr(values, "unique"):  # NumPy cannot sort texts among missing values
        values = values.unique()
    return {_plain(value) for value in values if not _is_missing(value)}


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _texts(values: Any) -> FeatureType:
    """Return the different texts of a column, if it has nothing else, and not too many."""
    try:
        found = _different(values)
    except (TypeError, ValueError):  # lists or arrays, say
        return {}
    are_texts = 0 < len(found) <= _MOST_TEXTS and all(type(value) is str for value in found)
    return {"texts": sorted(found)} if are_texts else {}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else str(value)
