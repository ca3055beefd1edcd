"""The columns of a file: their names as options give them, their match with those of the model, their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from ibug.cli._reading import InputTable
from ibug.cli._terminal import Session
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ibug.cli._schema import Schema


def divided(given: Sequence[str], columns: Sequence[str] = ()) -> tuple[str, ...]:
    """Return names of columns, given one by one or with commas, each once; what is a column's name is not divided."""
    return tuple(dict.fromkeys(_parts(given, columns)))


def targets_named(given: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that --target names, like `divided`; none, or one that is named twice, is wrong usage."""
    names = _parts(given, columns)
    if not names:
        raise typer.BadParameter("name a column.", param_hint="--target")
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"{name!r} is named twice; name each target once.", param_hint="--target")
    return tuple(names)


def _parts(given: Sequence[str], columns: Sequence[str]) -> list[str]:
    names = [name for text in given for name in ([text] if text in columns else text.split(","))]
    stripped = [name if name in columns else name.strip() for name in names]
    return [name for name in stripped if name]


#: Row numbers that pandas stored along with the columns.
_INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")
_MOST_SHOWN = 10


def require_columns(table: InputTable, role: str, *names: str | None) -> None:
    """Refuse a table that lacks one of these columns; None stands for no column."""
    for name in names:
        if name is not None and name not in table.columns:
            raise InvalidInputError(
                f"{table.name} has no column {name!r}, the {role}{meant(name, table.columns)}. "
                f"Its columns are: {listed(table.columns)}."
            )


def require_features(names: Sequence[str], known: Iterable[str], columns: Sequence[str], file: str) -> None:
    """Refuse a file whose columns, written as the model knows them, lack some of the model's."""
    known = set(known)
    missing = [name for name in names if name not in known]
    if missing:
        raise InvalidInputError(
            f"{file} lacks {len(missing)} of the model's {len(names)} columns: "
            f"{listed([f'{name}{meant(name, columns)}' for name in missing])}. It has: {listed(columns)}."
        )


def match(table: InputTable, schema: Schema, others: Iterable[str | None], session: Session, *, strict: bool) -> Schema:
    """Check that a table has all features; return the schema with the names of this table."""
    table.values = schema.values
    known = {name for name in [*others, *schema.targets(table.columns)] if name is not None}
    if schema.placed:
        return _by_place(table, schema, known, session)
    require_features(schema.names, table.columns, table.columns, table.name)
    extra = [name for name in table.columns if name not in known and name not in schema.names]
    if extra and strict:
        raise InvalidInputError(
            f"{table.name} has {_n_columns(extra)} that the model does not know: {listed(extra)}. Remove what is not "
            "needed, or leave --strict out."
        )
    unexpected = [name for name in extra if name not in _INDEX_COLUMNS]
    if unexpected:
        are = "is" if len(unexpected) == 1 else "are"
        session.note(
            f"{table.name}: {_n_columns(unexpected)} that the model does not know {are} ignored: {listed(unexpected)}."
        )
    return schema


def _by_place(table: InputTable, schema: Schema, known: set[str], session: Session) -> Schema:
    """Take the columns in their order, for a model that was trained without names."""
    columns = features(table.columns, known)
    if len(columns) != len(schema.columns):
        raise InvalidInputError(
            f"The model was trained on {len(schema.columns)} columns without names; {table.name} has {len(columns)}: "
            f"{listed(columns)}. Name those that are not features by --id or --target, or remove them."
        )
    session.note(f"The model has no column names: the columns of {table.name} are taken in their order.")
    named = tuple(replace(column, name=name) for column, name in zip(schema.columns, columns, strict=True))
    return replace(schema, columns=named)


def features(columns: Sequence[str], others: Iterable[str | None]) -> list[str]:
    """Return the columns that are features: not among the others, and not pandas row numbers."""
    left_out = {*others, *_INDEX_COLUMNS}
    return [name for name in columns if name not in left_out]


def listed(names: Sequence[str]) -> str:
    """Return names with commas, shortened if there are many."""
    shown = ", ".join(map(str, names[:_MOST_SHOWN]))
    return shown if len(names) <= _MOST_SHOWN else f"{shown}, … ({len(names)} in all)"


def _n_columns(names: Sequence[str]) -> str:
    return "1 column" if len(names) == 1 else f"{len(names)} columns"


def meant(name: str, columns: Sequence[str]) -> str:
    """Return the column that was probably meant, as a question in brackets; nothing where there is none like it."""
    folded = {column.casefold().strip(): column for column in columns}
    found = get_close_matches(name.casefold().strip(), list(folded), 1)
    return f" (did you mean {folded[found[0]]!r}?)" if found else ""


def decoded(column: Any) -> Any:
    """Return a column without Arrow's dictionary encoding."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def kind_of_type(kind: Any) -> str:
    """Return the kind of a column: "number", "boolean", "text", or the name of another type."""
    if pa.types.is_dictionary(kind):
        # A dictionary holds categories, whatever the type of its values.
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    if pa.types.is_temporal(kind):
        return "dates or times"
    return str(kind)


def as_numbers(column: Any, name: str, file: str) -> NDArray[np.float64]:
    """Return a column of numbers, booleans or texts of numbers as floats, (n_rows,), NaN where missing."""
    column = decoded(column)
    kind = kind_of_type(column.type)
    if kind == "text":
        column, kind = _parsed(column, name, file), "number"
    if kind not in ("number", "boolean"):
        raise InvalidInputError(
            f"{file}: column {name!r} has {kind}, and numbers are expected. Convert it as it was in the training data."
        )
    if kind == "boolean":
        column = column.cast(pa.int8())
    numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64)  # a copy: Arrow's memory is read-only


def as_days(column: Any, name: str, file: str) -> NDArray[np.float64]:
    """Return dates and times as days, (n_rows,), NaN where missing.

    Dates and moments count from 1970-01-01, those with a time zone in UTC; times of day from midnight.
    """
    column = decoded(column)
    if kind_of_type(column.type) == "text":
        column = _parsed_dates(column, name, file)
    if kind_of_type(column.type) != "dates or times":
        if column.null_count == len(column):
            return np.full(len(column), np.nan)
        raise InvalidInputError(f"{file}: column {name!r} has {column.type}, and dates are expected.")
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        kind = pa.timestamp("us")
    else:
        kind = pa.time64("us") if pa.types.is_time(column.type) else pa.duration("us")
    microseconds = column.cast(kind, safe=False).cast(pa.int64()).cast(pa.float64())
    return np.array(pc.divide(microseconds, 86_400e6).to_numpy(zero_copy_only=False), np.float64)


def _parsed_dates(column: Any, name: str, file: str) -> Any:
    """Return texts as moments or times of day."""
    on_day_zero = pc.binary_join_element_wise("1970-01-01", column, " ")  # for times of day
    for texts, zone in ((column, None), (column, "UTC"), (on_day_zero, None)):
        try:
            return texts.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
    first = next((text for text in column.drop_null().to_pylist() if not _reads_as(text, pa.timestamp("us"))), None)
    what = "a mixture of forms" if first is None else f"{first!r:.80}, say"
    raise InvalidInputError(
        f"{file}: column {name!r} has values that are not dates ({what}): 2024-12-31 or 2024-12-31 23:59:00 is "
        "expected, as in the training data."
    )


def _reads_as(text: str, kind: Any) -> bool:
    try:
        pa.array([text]).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _parsed(column: Any, name: str, file: str) -> Any:
    """Return texts as numbers, as they are read from CSV."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid as error:
        first = next(text for text in column.drop_null().to_pylist() if not _reads_as(text, pa.float64()))
        raise InvalidInputError(
            f"{file}: column {name!r} has text ({first!r:.80}, say), and numbers are expected. Convert it as it was in "
            "the training data."
        ) from error


def as_texts(column: Any, name: str, file: str) -> Any:
    """Return a column as texts, null where missing; whole floats are written as integers."""
    column = decoded(column)
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        whole = pc.all(pc.equal(pc.floor(column), column)).as_py()
        # Integers with missing values become floats in pandas: 3 is 3.0 there.
        if whole and (pc.max(pc.abs(column)).as_py() or 0) < 2**53:
            column = column.cast(pa.int64())
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(f"{file}: column {name!r} ({column.type}) cannot be read as categories.") from error
