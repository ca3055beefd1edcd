"""The columns that a model takes: their names, kinds and categories, as they are kept beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ibug.exceptions import InvalidInputError

#: Numbers; true and false; texts out of a list; and whatever the model may make of it (a Pipeline, say).
NUMBER, BOOLEAN, CATEGORY, ANY = "number", "boolean", "category", "any"
_TYPES = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), CATEGORY: pa.string(), ANY: None}

_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One feature.

    Parameters
    ----------
    name
        As it is written in data files.
    kind
        Number, boolean, category or any.
    categories
        The texts that the model knows, in its order; None where they are not known, or where it is no category.
    values
        What the model itself calls these categories, if that is no text.
    """

    name: str
    kind: str
    categories: tuple[str, ...] | None = None
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Schema:
    """The features of a model, in its order.

    Parameters
    ----------
    columns
        The features.
    target
        The target's name, if it is known.
    named
        Whether the model takes names (a data frame), or rows of an array.
    texts
        Whether categories are handed to the model as texts (CatBoost) or by their place in the list.
    placed
        The model knows no names, and neither does this schema: columns are taken as they come in the file.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    named: bool = True
    texts: bool = False
    placed: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> dict[str, Any]:
        """How text is to be read, by column."""
        return {column.name: _TYPES[column.kind] for column in self.columns}

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "kind": column.kind}
            if column.categories is not None:
                entry["categories"] = list(column.categories)
            if column.values is not None:
                entry["values"] = list(column.values)
            columns.append(entry)
        return {
            "version": _VERSION,
            "target": self.target,
            "named": self.named,
            "texts": self.texts,
            "columns": columns,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """Return the schema that was stored; what is stored may come from anywhere, so that nothing is believed."""
        try:
            if data["version"] != _VERSION:
                raise InvalidInputError(
                    f"The model file describes its columns in version {data['version']!r}; this ibug knows version "
                    f"{_VERSION}. A newer ibug will read it: pip install --upgrade ibug."
                )
            columns = tuple(_column(entry) for entry in data["columns"])
            target = None if data["target"] is None else str(data["target"])
            return cls(columns, target, bool(data["named"]), bool(data["texts"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"The model file's description of its columns is damaged ({error!r}).") from error


def _column(entry: Mapping[str, Any]) -> Column:
    kind = str(entry["kind"])
    if kind not in _TYPES:
        raise ValueError(f"unknown kind {kind!r}")
    categories = tuple(str(text) for text in entry["categories"]) if "categories" in entry else None
    values = tuple(entry["values"]) if "values" in entry else None
    if values is not None and len(values) != len(categories or ()):
        raise ValueError("categories and values differ in number")
    return Column(str(entry["name"]), kind, categories, values)
