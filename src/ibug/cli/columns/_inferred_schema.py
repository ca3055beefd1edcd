"""The schema of a training table, or of a trained model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ibug.cli.columns._match import closest, listed
from ibug.cli.columns._model_columns import ModelColumns
from ibug.cli.columns._schema import ANY, BOOLEAN, CATEGORY, DATE, MISSING_TEXT, NUMBER, Column, Schema
from ibug.cli.tables import as_texts, kind_of_type
from ibug.exceptions import InvalidInputError

_NUMBER_WITH_COMMA = r"^\s*[+-]?\d[\d.' ]*(,\d+)+(\.\d+)?\s*$"


def schema_of_table(data: Any, columns: Sequence[str], categorical: Sequence[str], file: str, *, texts: bool) -> Schema:
    """Return the schema of a training table; texts are categories, dates become days."""
    described = []
    for name in columns:
        kind = kind_of_type(data.schema.field(name).type)
        if kind == "text" and name not in categorical:
            _refuse_numbers(data.column(name), name, file)
        if name in categorical or kind == "text":
            described.append(Column(name, CATEGORY, found_categories(data.column(name), name, file, texts)))
        elif kind in ("number", "boolean"):
            described.append(Column(name, NUMBER if kind == "number" else BOOLEAN))
        elif kind == "dates or times":
            described.append(Column(name, DATE))
        else:
            raise InvalidInputError(
                f"{file}: column {name!r} has {kind}, which trees cannot use. Make numbers of it, or leave it out "
                f"(--drop {name}), or take it as a category (--categorical {name})."
            )
    return Schema(tuple(described), texts=texts)


def _refuse_numbers(column: Any, name: str, file: str) -> None:
    """Refuse texts that are numbers with commas: as categories they would be useless, and nobody would notice."""
    if pa.types.is_dictionary(column.type):
        return
    texts = pc.unique(column.drop_null()).cast(pa.string())
    numbers = texts.filter(pc.match_substring_regex(texts, _NUMBER_WITH_COMMA))
    if len(numbers) > len(texts) / 2:
        raise InvalidInputError(
            f"{file}: column {name!r} has numbers with commas ({numbers[0]}, say), which would be read as "
            f"{len(texts)} different texts. If the comma is the decimal mark, say --decimal , and take marks between "
            f"thousands out; if the comma is between thousands, take it out; if these are categories, say "
            f"--categorical {name}."
        )


def found_categories(column: Any, name: str, file: str, texts: bool) -> tuple[str, ...]:
    """Return the texts of a column, sorted; where the model takes texts, with the one for missing values."""
    values = as_texts(column.combine_chunks(), name, file)
    found = sorted(pc.unique(values.drop_null()).to_pylist())
    if texts and values.null_count and MISSING_TEXT not in found:
        found = sorted([*found, MISSING_TEXT])
    return tuple(found)


def names_in_file(model: ModelColumns, written_as: Any, columns: Sequence[str], file: str) -> list[str]:
    """Return the columns of a file that are the model's, in the model's order."""
    if model.names is None:
        if len(columns) != model.n:
            raise InvalidInputError(
                f"The model was trained on {model.n} columns without names; {file} has {len(columns)} beside the "
                f"target: {listed(columns)}. Leave out those that are no features (--drop)."
            )
        return list(columns)
    by_name = {written_as(column): column for column in columns}
    missing = [name for name in model.names if name not in by_name]
    if missing:
        close = closest(missing[0], list(by_name))
        hint = "" if close is None else f" (did you mean {by_name[close]!r} for {missing[0]!r}?)"
        raise InvalidInputError(
            f"{file} lacks {len(missing)} of the model's {model.n} columns: {listed(missing)}{hint}. It has: "
            f"{listed(columns)}."
        )
    return [by_name[name] for name in model.names]


def schema_of_model(model: ModelColumns, names: Sequence[str], *, named: bool) -> Schema:
    """Return the schema of a trained model, as far as the model knows it."""
    columns = []
    for i, name in enumerate(names):
        if model.any:
            columns.append(Column(name, ANY))
        elif i in model.categories:
            known = model.categories[i]
            columns.append(Column(name, CATEGORY) if known is None else _known(name, known))
        else:
            columns.append(Column(name, NUMBER))
    return Schema(tuple(columns), named=named, texts=model.texts)


def _known(name: str, values: Sequence[Any]) -> Column:
    """Return a column with the categories that a model knows, without missing values."""
    kept = tuple(value for value in values if value is not None and not _is_nan(value))
    texts = tuple(_as_text(value) for value in kept)
    return Column(name, CATEGORY, texts, None if texts == kept else kept)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as files have it
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def place_categories(
    model: ModelColumns, names: Sequence[str], categorical: Sequence[str], text_columns: Sequence[str], file: str
) -> ModelColumns:
    """Place the categories whose columns the model does not tell: in those named, or in the texts of the file."""
    if not model.unplaced:
        return model
    chosen = [name for name in names if name in (categorical or text_columns)]
    if len(chosen) != len(model.unplaced):
        raise InvalidInputError(
            f"The model has {len(model.unplaced)} categorical columns, and does not tell which; {file} has "
            f"{len(chosen)} ({listed(chosen) or 'none'}). Name them all: --categorical a,b,c."
        )
    places = {list(names).index(name): values for name, values in zip(chosen, model.unplaced, strict=True)}
    return ModelColumns(model.n, model.names, dict(places), texts=model.texts)
