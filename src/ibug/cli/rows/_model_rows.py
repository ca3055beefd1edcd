"""Rows as the model takes them, and the categories in them that it does not know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ibug.cli.columns import ANY, CATEGORY, DATE, MISSING_TEXT, Column, Schema
from ibug.cli.tables import as_days, as_numbers, as_texts, decoded, kind_of_type

_MOST_EXAMPLES = 5


@dataclass
class Unseen:
    """Categories that the model does not know, by column: the number of rows, and some of the texts."""

    rows: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    n_rows: int = 0
    first_row: int | None = None

    def add(self, found: dict[str, NDArray[np.bool_]], texts: dict[str, Any], start: int) -> NDArray[np.bool_] | None:
        """Count the unseen categories of a chunk that begins at row `start`.

        Returns which rows have some, (n_rows,), or None where no row has any.
        """
        if not found:
            return None
        anywhere: NDArray[np.bool_] = np.any(np.stack(list(found.values())), axis=0)
        for name, mask in found.items():
            self.rows[name] = self.rows.get(name, 0) + int(mask.sum())
            examples = self.examples.setdefault(name, [])
            for text in pc.unique(texts[name].filter(pa.array(mask))).to_pylist():
                if text not in examples and len(examples) < _MOST_EXAMPLES:
                    examples.append(text)
        if self.first_row is None:
            self.first_row = start + int(np.argmax(anywhere))
        self.n_rows += int(anywhere.sum())
        return anywhere

    def describe(self) -> str:
        """Return the unseen categories in words."""
        parts = []
        for name, count in self.rows.items():
            shown = ", ".join(map(repr, self.examples[name]))
            more = ", …" if len(self.examples[name]) == _MOST_EXAMPLES else ""
            parts.append(f"{name} ({count}: {shown}{more})")
        return "; ".join(parts)


@dataclass(frozen=True)
class ModelRows:
    """Rows as the model takes them."""

    X: Any  # data frame or array, (n_rows, n_features)
    unseen: dict[str, NDArray[np.bool_]]  # by column with unseen categories: the rows that have one, (n_rows,)
    texts: dict[str, Any]  # the texts of these columns


def rows_of(chunk: Any, schema: Schema, file: str) -> ModelRows:
    """Return the model's rows of a chunk that has the columns of the schema."""
    unseen: dict[str, NDArray[np.bool_]] = {}
    texts: dict[str, Any] = {}
    data: dict[str, Any] = {}
    for column in schema.columns:
        values = chunk.column(column.name).combine_chunks()
        if column.kind == CATEGORY:
            as_text = as_texts(values, column.name, file)
            data[column.name], mask = _categories(as_text, column, schema.texts)
            if mask.any():
                unseen[column.name], texts[column.name] = mask, as_text
        elif column.kind == DATE:
            data[column.name] = as_days(values, column.name, file)
        elif column.kind == ANY:
            plain = decoded(values)
            numeric = kind_of_type(plain.type) in ("number", "boolean")
            data[column.name] = as_numbers(plain, column.name, file) if numeric else plain.to_pandas()
        else:
            data[column.name] = as_numbers(values, column.name, file)
    if schema.named:
        return ModelRows(pd.DataFrame(data, copy=False), unseen, texts)
    return ModelRows(np.column_stack(list(data.values())), unseen, texts)


def _categories(texts: Any, column: Column, as_text: bool) -> tuple[Any, NDArray[np.bool_]]:
    """Return the values for the model, and which of them the model does not know, (n_rows,)."""
    known = pa.array(column.categories or (), pa.string())
    codes = pc.index_in(texts, value_set=known)
    present = texts.is_valid()
    unseen = pc.and_(present, pc.is_null(codes)).to_numpy(zero_copy_only=False)
    if column.categories is None:
        unseen = np.zeros(len(texts), np.bool_)
    if as_text:
        return pc.fill_null(texts, MISSING_TEXT).to_pandas().to_numpy(object), unseen
    places = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)
    values = column.categories if column.values is None else column.values
    return pd.Categorical.from_codes(places, categories=pd.Index(list(values or ()))), unseen
