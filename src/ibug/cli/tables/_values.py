"""Columns of Arrow as numbers of NumPy, and as texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ibug.exceptions import InvalidInputError


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
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"), safe=False)
    elif pa.types.is_time(column.type):
        column = column.cast(pa.time64("us"), safe=False)
    else:  # durations
        column = column.cast(pa.duration("us"), safe=False)
    microseconds = column.cast(pa.int64())
    days: NDArray[np.float64] = pc.divide(microseconds.cast(pa.float64()), 86_400e6).to_numpy(zero_copy_only=False)
    return np.array(days, np.float64)


def _parsed_dates(column: Any, name: str, file: str) -> Any:
    """Return texts as moments or times of day."""
    on_day_zero = pc.binary_join_element_wise("1970-01-01", column, " ")  # for times of day
    for texts, zone in ((column, None), (column, "UTC"), (on_day_zero, None)):
        try:
            return texts.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
    first = next((text for text in column.drop_null().to_pylist() if not _is_date(text)), None)
    what = "a mixture of forms" if first is None else f"{first!r:.80}, say"
    raise InvalidInputError(
        f"{file}: column {name!r} has something else than dates ({what}): 2024-12-31 or 2024-12-31 23:59:00 is "
        "expected, as in the training data."
    )


def _is_date(text: str) -> bool:
    try:
        pa.array([text]).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def _parsed(column: Any, name: str, file: str) -> Any:
    """Return texts as numbers, as they are read from CSV."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid as error:
        first = next(text for text in column.drop_null().to_pylist() if not _is_number(text))
        raise InvalidInputError(
            f"{file}: column {name!r} has text ({first!r:.80}, say), and numbers are expected. Convert it as it was in "
            "the training data."
        ) from error


def _is_number(text: str) -> bool:
    try:
        pa.array([text]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


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
