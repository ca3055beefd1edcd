"""The match between the columns of a file and those of the model; errors name the columns and suggest others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ibug.cli.columns._schema import Schema
from ibug.cli.screen import Session
from ibug.cli.tables import Table
from ibug.exceptions import InvalidInputError

#: Row numbers that pandas stored along with the columns.
_INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")
_MOST_SHOWN = 10


def require_column(table: Table, name: str, role: str) -> str:
    """Return the name of a column if the table has it."""
    if name in table.columns:
        return name
    raise InvalidInputError(
        f"{table.name} has no column {name!r}, the {role}{_suggest(name, table.columns)} "
        f"Its columns are: {listed(table.columns)}."
    )


def match(table: Table, schema: Schema, others: Iterable[str | None], session: Session, *, strict: bool) -> Schema:
    """Check that a table has all features; return the schema with the names of this table."""
    table.values = schema.values
    known = {name for name in [*others, *schema.targets(table.columns)] if name is not None}
    if schema.placed:
        return _by_place(table, schema, known, session)
    missing = [name for name in schema.names if name not in table.columns]
    if missing:
        raise InvalidInputError(
            f"{table.name} lacks {len(missing)} of the model's {len(schema.columns)} columns: "
            f"{_hints(missing, table)}. It has: {listed(table.columns)}."
        )
    extra = [name for name in table.columns if name not in known and name not in schema.names]
    if extra and strict:
        raise InvalidInputError(
            f"{table.name} has {_columns(extra)} that the model does not know: {listed(extra)}. Remove what is not "
            "needed, or leave --strict out."
        )
    unexpected = [name for name in extra if name not in _INDEX_COLUMNS]
    if unexpected:
        are = "is not the model's and is" if len(unexpected) == 1 else "are not the model's and are"
        session.note(f"{table.name}: {_columns(unexpected)} {are} ignored: {listed(unexpected)}.")
    return schema


def _by_place(table: Table, schema: Schema, known: set[str], session: Session) -> Schema:
    """Take the columns in their order, for a model that was trained without names."""
    columns = features(table.columns, known)
    if len(columns) != len(schema.columns):
        raise InvalidInputError(
            f"The model was trained on {len(schema.columns)} columns without names; {table.name} has {len(columns)}: "
            f"{listed(columns)}. Name those that are no features by --id or --target, or remove them."
        )
    session.note(f"The model knows no names of columns: those of {table.name} are taken in their order.")
    named = tuple(replace(column, name=name) for column, name in zip(schema.columns, columns, strict=True))
    return replace(schema, columns=named)


def features(columns: Sequence[str], others: Iterable[str | None]) -> list[str]:
    """Return the columns that are features: not among the others, and no row numbers of pandas."""
    left_out = {*others, *_INDEX_COLUMNS}
    return [name for name in columns if name not in left_out]


def listed(names: Sequence[str]) -> str:
    """Return names with commas, shortened if there are many."""
    shown = ", ".join(map(str, names[:_MOST_SHOWN]))
    return shown if len(names) <= _MOST_SHOWN else f"{shown}, … ({len(names)} in all)"


def _columns(names: Sequence[str]) -> str:
    return "1 column" if len(names) == 1 else f"{len(names)} columns"


def _hints(missing: Sequence[str], table: Table) -> str:
    hints = [f"{name}{_parenthesis(closest(name, table.columns))}" for name in missing[:_MOST_SHOWN]]
    more = "" if len(missing) <= _MOST_SHOWN else f", … ({len(missing)} in all)"
    return ", ".join(hints) + more


def _parenthesis(close: str | None) -> str:
    return "" if close is None else f" (did you mean {close!r}?)"


def _suggest(name: str, columns: Sequence[str]) -> str:
    close = closest(name, columns)
    return "." if close is None else f"; did you mean {close!r}?"


def closest(name: str, columns: Sequence[str]) -> str | None:
    """Return the column that was probably meant."""
    folded = {column.casefold().strip(): column for column in columns}
    found = get_close_matches(name.casefold().strip(), list(folded), 1)
    return folded[found[0]] if found else None
