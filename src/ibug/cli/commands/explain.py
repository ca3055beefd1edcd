"""``ibug explain``: one prediction, its interval, the training rows behind it, and in which features they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from ibug.cli.columns import Schema, match, require_column
from ibug.cli.commands import _options as o
from ibug.cli.screen import Session, explanation_text, guarded
from ibug.cli.tables import ReadOptions, Table, open_table
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from ibug.cli.models import StoredModel
    from ibug.cli.rows import TrainingRows

_COMPARED_WITH = 1000
_ROWS_AT_A_TIME = 2**14

# Widths are compared with those of training rows, or of the rows of the same file if these are enough.
_BACKGROUND = 50
_LEAST_ROWS = 20
# From it on, a floating-point number stands for several whole numbers.
_FIRST_INEXACT = 2**53

HELP = """
Explain one prediction: its interval, the nearest training rows, and which features differ. Why is this row uncertain?

Rows are counted from 0. The features of training rows are read from the training file, which the model file remembers
by name only; --train names it if it has moved.

[dim]Examples:[/]

  ibug explain model.ibug new.csv --row 17

  ibug explain model.ibug new.csv --id order=A-1042 --neighbors 8

  ibug explain model.ibug new.csv --row 17 --width

  ibug explain model.ibug new.parquet --row 0 --train /data/train.parquet --json
"""


@guarded
def explain(
    session: Session,
    model: o.ModelFile,
    data: o.DataFile,
    row: Annotated[int | None, typer.Option("--row", min=0, help="The row, counted from 0.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The row by name: COLUMN=VALUE.")] = None,
    coverage: o.Coverage = "0.9",
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=1, help="The number of nearest training rows to list.")
    ] = 5,
    train: o.TrainFile = None,
    features: o.Features = True,
    width: Annotated[
        bool, typer.Option("--width", help="Tell which features make the distribution wide (extra explain).")
    ] = False,
    *,
    loading: o.Loading,
    reading: o.Reading,
    strict: o.Strict = False,
) -> None:
    """Explain one prediction; see HELP."""
    from ibug.cli.answers import compare, explain_row, reasons, widening
    from ibug.cli.rows import plain_values, rows_of

    read = reading.options()
    level = o.coverage(coverage)
    if (row is None) == (id is None):
        raise typer.BadParameter("name one row: --row 17, or --id column=value.", param_hint="--row / --id")
    column, value = _parse_id(id)
    if width:
        from ibug.explain import shap_package

        shap_package()  # before anything takes time
    stored = loading.load(model)
    o.one_target(stored.estimator, "explain")
    table = open_table(data, read, session)
    if column is not None:
        require_column(table, column, "id")
    schema = match(table, stored.schema, [column, stored.id], session, strict=strict)
    number, chunk, at = _find(table, schema, row, column, value)
    first = max(0, min(at, chunk.num_rows - _COMPARED_WITH))
    rows = rows_of(chunk.slice(first, _COMPARED_WITH), schema, table.name)  # the row, and others to compare it with
    n_neighbors = min(neighbors, stored.estimator.index_.n_rows)
    facts: dict[str, Any] = {"row": number, "where": table.where(number)}
    facts |= explain_row(stored.estimator, rows.X, at - first, level, n_neighbors)
    here = plain_values({name: chunk.column(name)[at] for name in schema.names}, schema)
    training = _training(stored, facts, train, read, session, width) if features else None
    if training is not None:
        compare(facts, here, training)
    facts["features"] = here
    _note_large(here, session)
    if width:
        background = _background(rows.X, training, table)
        with session.stages():
            facts["width"] = widening(stored.estimator, rows.X, at - first, background, here)
    facts["unseen"] = [name for name, unseen in rows.unseen.items() if unseen[at - first]]
    facts["reasons"] = reasons(facts, facts["unseen"])
    if session.json:
        session.report(facts)
    else:
        session.show(explanation_text(facts, table.name))


def _note_large(features: dict[str, Any], session: Session) -> None:
    """Say which features are whole numbers that floating-point numbers do not tell from their neighbours."""
    numbers = {name: value for name, value in features.items() if isinstance(value, (int, float))}
    large = [name for name, value in numbers.items() if abs(value) >= _FIRST_INEXACT and float(value).is_integer()]
    if large:
        session.note(
            f"Whole numbers beyond 2^53 lose digits, because models read numbers as floating-point ones, in: "
            f"{', '.join(large)}. If such a column names rows, leave it out of the model by ibug fit --id."
        )


def _parse_id(id: str | None) -> tuple[str | None, str | None]:
    if id is None:
        return None, None
    column, equals, value = id.partition("=")
    if not equals or not column:
        raise typer.BadParameter(f"COLUMN=VALUE is expected, not {id!r}.", param_hint="--id")
    return column, value


def _find(table: Table, schema: Schema, row: int | None, column: str | None, value: str | None) -> tuple[int, Any, int]:
    """Return the number of the row, the chunk that it is in, and its place there."""
    table.verbatim = frozenset([] if column is None else [column]) - set(schema.names)
    types = {**({} if column is None else {column: pa.string()}), **schema.types}
    start = 0
    for chunk in table.chunks(types, _ROWS_AT_A_TIME):
        if row is not None and row < start + chunk.num_rows:
            return row, chunk, row - start
        if column is not None:
            texts = chunk.column(column).cast(pa.string()).to_pylist()
            if value in texts:
                return start + texts.index(value), chunk, texts.index(value)
        start += chunk.num_rows
    if column is not None:
        raise InvalidInputError(f"{table.name} has no row whose {column!r} is {value!r}.")
    raise InvalidInputError(f"{table.name} has {start} rows, counted from 0: there is no row {row}.")


def _training(
    stored: StoredModel, facts: dict[str, Any], train: str | None, reading: ReadOptions, session: Session, width: bool
) -> TrainingRows | None:
    """Read the nearest training rows, if the training file is known and there; and some more, to compare widths."""
    from ibug.cli.rows import read_training_rows

    path = stored.training_file(train, session)
    if path is None:
        return None
    # The format is that of DATA alone; the other options probably hold for both files.
    table = open_table(path, replace(reading, format=None), session)
    rows = [neighbor["row"] for neighbor in facts["neighbors"]]
    targets = stored.estimator.training_targets_
    n_drawn = min(_BACKGROUND, len(targets)) if width else 0
    drawn = np.sort(np.random.default_rng(0).choice(len(targets), n_drawn, replace=False)).tolist()
    return read_training_rows(table, stored.schema, rows, targets, stored.id, session, drawn)


def _background(X: Any, training: TrainingRows | None, table: Table) -> Any:
    """Return the rows whose widths that of a row is compared with: of the training file, else of the same file."""
    if training is not None:
        return training.sample
    if len(X) < _LEAST_ROWS:
        raise InvalidInputError(
            f"--width compares with other rows, and {table.name} has only {len(X)}: name the training file by --train."
        )
    return X
