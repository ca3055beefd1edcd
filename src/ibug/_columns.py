"""What the columns of the training rows were: so that others can bring their data into the same form."""

from __future__ import annotations

from typing import Any

import numpy as np

FeatureType = dict[str, Any]  # name, dtype and, of categorical columns, categories


def feature_types(X: Any) -> list[FeatureType]:
    """Return for each column its name (None in arrays), the name of its type, and its categories if it has some.

    Values are plain: texts, numbers and lists. Categories of another kind, dates say, are given as text.
    """
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # a table of pyarrow
        return [{"name": field.name, "dtype": str(field.type)} for field in X.schema]
    if not hasattr(X, "columns"):
        return [{"name": None, "dtype": str(getattr(X, "dtype", "object"))} for _ in range(X.shape[1])]
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


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else str(value)
