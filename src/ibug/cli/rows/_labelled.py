"""Whole tables, for fit, evaluate and report: rows as the model takes them, with their targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ibug._typing import Floats
from ibug.cli.columns import Schema
from ibug.cli.rows._model_rows import ModelRows, Unseen, rows_of
from ibug.cli.screen import Session
from ibug.cli.tables import Table, as_numbers
from ibug.exceptions import InvalidInputError


@dataclass(frozen=True)
class LabelledRows:
    """Rows with their observed values."""

    X: Any  # data frame or array, (n_rows, n_features)
    y: Floats  # (n_rows,), or (n_rows, n_targets) of several targets
    weight: Floats | None  # (n_rows,)
    data: Any  # the table of Arrow that they were made of


def read_labelled(
    table: Table,
    columns: Sequence[str],
    types: dict[str, Any],
    target: str | Sequence[str],
    weight: str | None,
    schema_for: Callable[[Any], Schema],
    session: Session,
) -> tuple[LabelledRows, Schema]:
    """Read a whole table."""
    targets = (target,) if isinstance(target, str) else tuple(target)
    numeric = [name for name in (*targets, weight) if name is not None]
    wanted = [*columns, *numeric]
    with session.progress(f"reading {table.name}", None):
        data = table.read(wanted, {**types, **dict.fromkeys(numeric, pa.float64())})
    if not data.num_rows:
        raise InvalidInputError(f"{table.name} has a header, but no rows.")
    values = [_numbers(data, name, "target", table) for name in targets]
    y = values[0] if len(values) == 1 else np.stack(values, axis=1)
    weights = None if weight is None else _weights(data, weight, table)
    schema = schema_for(data)
    rows = rows_of(data, schema, table.name)
    _note_unseen(rows, table, session)
    return LabelledRows(rows.X, y, weights, data), schema


def with_groups(columns: Sequence[str], groups: str | None, *targets: str) -> list[str]:
    """Return the columns to read, with that of the groups, if there is one that is not read anyway."""
    return [*columns, *([] if groups is None or groups in (*columns, *targets) else [groups])]


def groups_of(rows: LabelledRows, groups: str | None) -> Any:
    """Return the column by which rows are grouped, as a series of pandas; None for none."""
    return None if groups is None else rows.data.column(groups).to_pandas().rename(groups)


def read_unlabelled(table: Table, schema: Schema, session: Session) -> Any:
    """Return all rows of a table as the model takes them, without targets."""
    with session.progress(f"reading {table.name}", None):
        data = table.read(schema.names, schema.types)
    if not data.num_rows:
        raise InvalidInputError(f"{table.name} has a header, but no rows.")
    rows = rows_of(data, schema, table.name)
    _note_unseen(rows, table, session)
    return rows.X


def _numbers(data: Any, name: str, role: str, table: Table) -> Floats:
    values = as_numbers(data.column(name).combine_chunks(), name, table.name)
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        what = "missing" if np.isnan(values[first]) else "infinite"
        raise InvalidInputError(
            f"{table.name}: the {role}, column {name!r}, is missing or infinite in {int(bad.sum())} of {len(values)} "
            f"rows, first ({what}) in {table.where(first)}. Leave these rows out."
        )
    return values


def _weights(data: Any, name: str, table: Table) -> Floats:
    values = _numbers(data, name, "weight", table)
    if (values < 0).any() or not values.any():
        raise InvalidInputError(f"{table.name}: weights, column {name!r}, must not be negative, nor all zero.")
    return values


def _note_unseen(rows: ModelRows, table: Table, session: Session) -> None:
    unseen = Unseen()
    if unseen.add(rows.unseen, rows.texts, 0) is not None:
        session.note(
            f"{table.name}: {unseen.n_rows} rows have categories that the model does not know: {unseen.describe()}."
        )
