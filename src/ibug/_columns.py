"""What the columns of the training rows were: so that others can bring their data into the same form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ibug._warnings import warn_user
from ibug.exceptions import UnknownCategoryWarning

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
    found: FeatureType = {"name": name, "dtype": str(column.dtype)}
    categories = getattr(column.dtype, "categories", None)  # of pandas, and of polars' Enum
    if categories is None and str(column.dtype).startswith("Categorical"):
        categories = column.cat.get_categories()  # of polars
    if categories is not None:
        found["dtype"] = "category"
        found["categories"] = [_plain(value) for value in categories]
        return found
    return found | (_texts(column) if _may_be_text(column.dtype) else {})


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


def _may_be_text(dtype: Any) -> bool:
    return str(dtype).lower() in ("object", "str", "string", "utf8") or str(dtype).startswith("string")


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
