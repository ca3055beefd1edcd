"""What there is to say about the columns of a training table: ids among the features, dates, too many categories."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ibug.cli.columns import CATEGORY, DATE, NUMBER, Column, Schema
from ibug.cli.screen import Session
from ibug.cli.tables import as_days
from ibug.exceptions import InvalidInputError

# A column with more different values than this, and in most rows another one, is probably an id.
_LEAST_VALUES_OF_AN_ID = 100
_DATE_LIKE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b"


def check_categories(schema: Schema, n_rows: int, most: int, file: str) -> None:
    """Refuse a column with more categories than the library takes."""
    for column in schema.columns:
        n = len(column.categories or ())
        if n > most:
            raise InvalidInputError(
                f"{file}: column {column.name!r} has {n} categories in {n_rows} rows; scikit-learn takes {most} at "
                f"most. Choose another --booster, or leave it out (--drop {quoted(column.name)})."
            )


def note_columns(schema: Schema, data: Any, file: str, session: Session) -> None:
    """Tell of columns that are probably ids, and of how dates become numbers."""
    for column in schema.columns:
        values = data.column(column.name)
        if column.kind == DATE:
            _note_dates(column, values, file, session)
        elif column.kind == CATEGORY:
            _note_texts(column, data.num_rows, file, session)
        elif column.kind == NUMBER and pa.types.is_integer(values.type):
            _note_numbers(column, values, file, session)


def _note_dates(column: Column, values: Any, file: str, session: Session) -> None:
    known = values.drop_null()
    example = ""
    if len(known):
        first = known.slice(0, 1).combine_chunks()
        example = f" ({first.cast(pa.string())[0]} is {as_days(first, column.name, file)[0]:.10g})"
    times = pa.types.is_time(values.type) or pa.types.is_duration(values.type)
    since = "days, 12:00 as 0.5" if times else "days since 1970-01-01"
    session.note(f"{file}: column {column.name!r} has dates or times. The model gets them as {since}{example}.")


def _note_texts(column: Column, n_rows: int, file: str, session: Session) -> None:
    texts = column.categories or ()
    like_dates = pc.match_substring_regex(pa.array(texts, pa.string()), _DATE_LIKE)
    if texts and pc.sum(like_dates.cast(pa.int64())).as_py() > 0.9 * len(texts):
        session.note(
            f"{file}: column {column.name!r} looks like dates ({texts[0]!r}, say), but is read as {len(texts)} "
            "categories. Written as 2024-12-31 they would be numbers."
        )
    elif len(texts) > _LEAST_VALUES_OF_AN_ID and len(texts) > n_rows / 2:
        session.note(
            f"{file}: column {column.name!r} has {len(texts)} different texts in {n_rows} rows. If it is an id, say "
            f"so: --id {quoted(column.name)}."
        )


def _note_numbers(column: Column, values: Any, file: str, session: Session) -> None:
    n = len(values)
    if n > _LEAST_VALUES_OF_AN_ID and pc.count_distinct(values, mode="all").as_py() == n:
        session.note(
            f"{file}: column {column.name!r} has another whole number in each of the {n} rows. If it is an id, say so: "
            f"--id {quoted(column.name)}."
        )


def quoted(name: str) -> str:
    """Return a name as it is typed in a shell."""
    return name if name.replace("_", "").replace("-", "").isalnum() else f"'{name}'"
