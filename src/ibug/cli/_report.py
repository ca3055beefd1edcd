"""``ibug report``: one HTML file with scores, charts and an explorer of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from ibug._installed import how_to_install
from ibug.cli import _options as o
from ibug.cli._columns import match, require_columns
from ibug.cli._errors import guarded
from ibug.cli._model_file import StoredModel
from ibug.cli._reading import STANDARD_STREAM, ReadOptions, open_table
from ibug.cli._rows import groups_of, label_frame, other_file, read_labelled, shown_features
from ibug.cli._schema import Schema
from ibug.cli._terminal import Session, done
from ibug.cli._writing import check_output
from ibug.exceptions import MissingDependencyError

HELP = """
Write a report on TEST, rows that the model has not seen: one HTML file that opens in a browser, without a network.

It says in words how good the predictions are, compared with those of the plain neighbours, and draws charts. An
explorer shows the density, the interval, the nearest training rows and the features that differ, for each row. Where
the model knows blocks (ibug fit --blocks) and TEST has their columns, totals are compared with observed ones.

[dim]Examples:[/]

  ibug report model.ibug test.csv -o report.html

  ibug report model.ibug test.parquet --target price --id order --title "House prices" -o report.html
"""


@guarded
def report(
    model: o.ModelFile,
    test: o.TestFile,
    output: Annotated[str, typer.Option("--output", "-o", help="The HTML file to write.")],
    target: o.Target = None,
    id: Annotated[
        str | None, typer.Option("--id", help="The column that names rows; by default that of ibug fit.")
    ] = None,
    coverage: o.Coverage = "0.9",
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=1, max=100, help="The number of nearest training rows to list.")
    ] = 10,
    max_rows: Annotated[
        int, typer.Option("--rows", min=1, help="The most rows in the explorer, drawn at random if there are more.")
    ] = 2000,
    groups: o.Groups = None,
    width_seconds: Annotated[
        float,
        typer.Option(
            "--width-seconds", min=0, help="Time for what makes the widest rows wide (extra explain); 0: none."
        ),
    ] = 10.0,
    title: Annotated[str | None, typer.Option("--title", help="The title of the page.")] = None,
    train: o.TrainFile = None,
    features: o.Features = True,
    *,
    loading: o.LoadOptions,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Write the report; see HELP."""
    from ibug.report import write

    level = o.coverage(coverage)
    if output == STANDARD_STREAM:
        raise typer.BadParameter("name a file.", param_hint="--output")
    require_plotly()  # before anything takes time
    check_output(output, model, test, train)
    stored = loading.load(model)
    table = open_table(test, reading, session)
    targets = stored.targets(target, table, session)
    named_by = id or (stored.id if stored.id in table.columns else None)
    require_columns(table, "id", named_by)
    require_columns(table, "groups", groups)
    blocks = stored.known_blocks(table)
    schema = match(table, stored.schema, [*targets, stored.id, named_by, groups, *blocks], session, strict=strict)
    rows, ids = _read(table, schema, targets, named_by, session, (groups, *blocks))
    training, train_ids = _training(stored, schema, named_by, train, reading, session) if features else (None, None)
    with session.stages():
        path = write(
            stored.estimator,
            rows.X,
            rows.y,
            output,
            X_train=training,
            X_shown=shown_features(rows.data, schema, table.name),
            ids=ids,
            train_ids=train_ids,
            coverage=level,
            n_neighbors=min(neighbors, stored.estimator.source_.index.n_rows),
            max_rows=max_rows,
            width_seconds=width_seconds,
            title=title,
            target=", ".join(targets),
            data=table.name,
            groups=groups_of(rows, groups),
            blocks=label_frame(rows.data, blocks) if blocks else None,
        )
    size = os.path.getsize(path)
    if session.json:
        session.report({"output": output, "bytes": size, "rows": len(rows.y)})
    else:
        session.say(done(output, size))


def require_plotly() -> None:
    """Import plotly, or say how to install it."""
    try:
        import plotly.offline  # noqa: F401 - to see that it is there
    except ImportError as error:
        raise MissingDependencyError(
            f"ibug report needs plotly, which cannot be imported ({error}). Install it: {how_to_install('report')}."
        ) from error


def _read(
    table: Any,
    schema: Schema,
    targets: Sequence[str],
    id: str | None,
    session: Session,
    more: Sequence[str | None] = (),
) -> tuple[Any, list[Any] | None]:
    """Read rows with their targets, and their names, if a column has them."""
    own: dict[Any, Any] = {} if id is None or id in schema.names else {id: pa.string()}
    table.verbatim = frozenset(own)
    rows = read_labelled(table, schema, targets, session, more={**dict.fromkeys(more), **own})
    return rows, None if id is None else rows.data.column(id).cast(pa.string()).to_pylist()


def _training(
    stored: StoredModel, schema: Schema, id: str | None, train: str | None, reading: ReadOptions, session: Session
) -> tuple[Any, list[Any] | None]:
    """Read the features of the training rows, if their file is known and there; and their names."""
    path = stored.training_file(train, session)
    if path is None or stored.schema.target is None:
        return None, None
    table = open_table(path, replace(reading, format=None), session)
    targets = stored.targets(None, table, session)
    known = id if id in table.columns else None
    schema = match(table, stored.schema, table.columns, session, strict=False)
    rows, ids = _read(table, schema, targets, known, session)
    if not np.array_equal(rows.y, stored.estimator.training_targets_):
        raise other_file(table, f"its targets ({stored.schema.target}) are not those that the model was fitted on")
    return shown_features(rows.data, schema, table.name), ids
