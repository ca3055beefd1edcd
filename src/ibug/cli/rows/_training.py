"""The features of training rows, read again from the training file, as the model file does not hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ibug._typing import Floats
from ibug.cli.columns import CATEGORY, DATE, NUMBER, Schema, match, require_column
from ibug.cli.rows._model_rows import rows_of
from ibug.cli.screen import Session
from ibug.cli.tables import Table, as_numbers, as_texts
from ibug.exceptions import InvalidInputError

_ROWS_AT_A_TIME = 2**16


@dataclass(frozen=True)
class TrainingRows:
    """Some rows of the training file."""

    values: list[dict[str, Any]]  # by column; numbers, texts or None
    ids: list[Any] | None
    scales: dict[str, float]  # the standard deviation of each numeric column over all training rows
    sample: Any  # other rows of it as the model takes them, data frame or array; None if none were asked for


def read_training_rows(
    table: Table,
    schema: Schema,
    rows: Sequence[int],
    targets: Floats,
    id: str | None,
    session: Session,
    sample: Sequence[int] = (),
) -> TrainingRows:
    """Read some rows, and check that the file is the one that the model was fitted on. Shapes: targets (n_train,)."""
    target = schema.target
    assert target is not None, "without a target there is no training file"
    require_column(table, target, "target")
    ids = [] if id is None or id not in table.columns else [id]
    schema = match(table, schema, [*table.columns], session, strict=False)
    table.verbatim = frozenset(ids) - set(schema.names)
    types = {**dict.fromkeys(ids, pa.string()), **schema.types, target: pa.float64()}
    found: dict[int, dict[str, Any]] = {}
    sampled = []
    moments = {column.name: np.zeros(3) for column in schema.columns if column.kind == NUMBER}
    start = 0
    with session.progress(f"reading {table.name}", table.size) as progress:
        for chunk in table.chunks(types, _ROWS_AT_A_TIME):
            _same_targets(chunk, target, targets[start : start + chunk.num_rows], table)
            for name, sums in moments.items():
                sums += _moments(as_numbers(chunk.column(name).combine_chunks(), name, table.name))
            inside = [row for row in rows if start <= row < start + chunk.num_rows]
            some = chunk.take(pa.array([row - start for row in inside], pa.int64()))
            for i, row in enumerate(inside):
                found[row] = {name: some.column(name)[i] for name in [*ids, *schema.names]}
            drawn = [row - start for row in sample if start <= row < start + chunk.num_rows]
            sampled.append(chunk.take(pa.array(drawn, pa.int64())))
            start += chunk.num_rows
            progress(table.position)
    if start != len(targets):
        raise other_file(table, f"it has {start} rows, and the model was fitted on {len(targets)}")
    return TrainingRows(
        [plain_values(found[row], schema) for row in rows],
        [found[row][ids[0]].as_py() for row in rows] if ids else None,
        {name: _deviation(sums) for name, sums in moments.items()},
        rows_of(_joined(sampled), schema, table.name).X if len(sample) else None,
    )


def _joined(chunks: list[Any]) -> Any:
    """Return one table of Arrow; a column can have other categories in each chunk."""
    return pa.concat_tables([pa.table(chunk) for chunk in chunks], promote_options="permissive").unify_dictionaries()


def plain_values(row: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the features of a row, given as scalars of Arrow, as numbers and texts; None where missing."""
    values: dict[str, Any] = {}
    for column in schema.columns:
        value = row[column.name]
        if column.kind == CATEGORY:
            value = as_texts(pa.array([value.as_py()], value.type), column.name, "")[0]
        plain = value.cast(pa.string()).as_py() if column.kind == DATE else value.as_py()
        if column.kind == NUMBER and isinstance(plain, str):  # as `as_numbers` reads it
            plain = float(plain)
        values[column.name] = None if isinstance(plain, float) and np.isnan(plain) else plain
    return values


def _same_targets(chunk: Any, target: str, expected: Floats, table: Table) -> None:
    given = as_numbers(chunk.column(target).combine_chunks(), target, table.name)
    if len(expected) != len(given) or not np.array_equal(given, expected):
        raise other_file(table, f"its column {target!r} does not have the targets that the model was fitted on")


def other_file(table: Table, why: str) -> InvalidInputError:
    """Return the error for a file that is not the one that the model was fitted on."""
    return InvalidInputError(
        f"{table.name} is not the file that the model was fitted on, or has changed since: {why}. Name the right one "
        "by --train, or leave the features out by --no-features."
    )


def _moments(values: Floats) -> Floats:
    values = values[np.isfinite(values)]
    return np.array([len(values), values.sum(), np.square(values).sum()])


def _deviation(sums: Floats) -> float:
    n, total, squares = sums
    return float(np.sqrt(max(0.0, squares / n - (total / n) ** 2))) if n else 0.0
