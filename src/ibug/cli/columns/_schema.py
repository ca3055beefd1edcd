"""The schema of a model: names, kinds and categories of its columns, as the model file keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ibug.cli.columns._named import divided
from ibug.exceptions import InvalidInputError

#: Numbers; true and false; texts out of a list; dates and times, as days; and values of any kind, for a Pipeline that
#: encodes them itself.
NUMBER, BOOLEAN, CATEGORY, DATE, ANY = "number", "boolean", "category", "date", "any"
_TYPES = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), CATEGORY: pa.string(), DATE: pa.string(), ANY: None}

#: The text for a missing category where the model takes categories as texts: pandas writes it so.
MISSING_TEXT = "nan"

_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One feature.

    Parameters
    ----------
    name
        As it is written in data files.
    kind
        Number, boolean, category, date or any.
    categories
        The texts that the model knows, in its order; None where they are not known, and for other kinds.
    values
        The model's own values for these categories, where they are no texts.
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
        The target's name, if it is known; those of several targets with commas, for people.
    named
        Whether the model takes a data frame with names, or an array.
    texts
        Whether the model takes categories as texts (CatBoost) or by their place in the list.
    placed
        The model knows no names: columns are taken in the order of the file.
    several
        The names of several targets, in the model's order; none of one, nor in files of earlier versions.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    named: bool = True
    texts: bool = False
    placed: bool = False
    several: tuple[str, ...] = ()

    def of_targets(self, names: Sequence[str]) -> Schema:
        """Return the same with the names of the targets."""
        return replace(self, target=", ".join(names), several=tuple(names) if len(names) > 1 else ())

    def targets(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the targets; none if they are not known."""
        if self.several or self.target is None:
            return self.several
        return divided([self.target], columns)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [column.name for column in self.columns]

    @property
    def types(self) -> dict[str, Any]:
        """The types that text is read as, by column; None where the reader infers it."""
        return {column.name: _TYPES[column.kind] for column in self.columns}

    @property
    def values(self) -> frozenset[str]:
        """All texts that are categories of the model."""
        return frozenset(text for column in self.columns for text in column.categories or ())

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON, for `from_json`."""
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
            **({"targets": list(self.several)} if self.several else {}),
            "named": self.named,
            "texts": self.texts,
            "columns": columns,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """Return a stored schema. The file may come from anywhere, so everything in it is checked."""
        try:
            if data["version"] != _VERSION:
                raise InvalidInputError(
                    f"The model file describes its columns in version {data['version']!r}; this ibug knows version "
                    f"{_VERSION}. A newer ibug will read it: pip install --upgrade ibug-learn."
                )
            columns = tuple(_column(entry) for entry in data["columns"])
            target = None if data["target"] is None else str(data["target"])
            several = tuple(str(name) for name in data.get("targets", ()))
            return cls(columns, target, bool(data["named"]), bool(data["texts"]), several=several)
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
