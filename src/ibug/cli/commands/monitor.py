"""``ibug monitor``: have the data moved? For a nightly job, which reads the exit code."""

from __future__ import annotations

from typing import Annotated

import typer

from ibug.cli.columns import divided, match
from ibug.cli.commands import _options as o
from ibug.cli.screen import MOVED, Session, drift_text, guarded
from ibug.cli.tables import open_table

HELP = """
Compare DATA with the rows that the model was calibrated on. The exit code is 4 if the data have moved.

Without truths: are the rows as alike to the training rows as before? Where DATA has the target: are truths where
distributions have them, and do intervals hold as many? --alpha is the probability of a false alarm.

[dim]Examples:[/]

  ibug monitor model.ibug today.csv || mail -s "the data have moved" me@example.org

  ibug monitor model.ibug last_month.parquet --alpha 0.001 --json
"""


@guarded
def monitor(
    session: Session,
    model: o.ModelFile,
    data: o.DataFile,
    target: o.Target = None,
    alpha: Annotated[str, typer.Option("--alpha", help="The probability of a false alarm.")] = "0.01",
    interval: o.Coverage = "0.9",
    id: o.Ids = None,
    *,
    loading: o.Loading,
    reading: o.Reading,
    strict: o.Strict = False,
) -> None:
    """Compare rows with those of before; see HELP."""
    from ibug.cli.rows import read_labelled, read_unlabelled

    read = reading.options()
    level, coverage = o.probabilities([alpha], "--alpha")[0], o.coverage(interval)
    stored = loading.load(model)
    o.one_target(stored.estimator, "monitor")
    table = open_table(data, read, session)
    labelled = bool(target) or stored.schema.target in table.columns
    observed = stored.targets(target, table, session) if labelled else ()
    others = [*observed, stored.id, *divided(id or (), table.columns)]
    schema = match(table, stored.schema, others, session, strict=strict)
    if not labelled:
        X, y = read_unlabelled(table, schema, session), None
    else:
        rows, _ = read_labelled(table, schema.names, schema.types, observed, None, lambda data: schema, session)
        X, y = rows.X, rows.y
    with session.stages():
        drift = stored.estimator.monitor(X, y, coverage=coverage, alpha=level)
    if session.json:
        tests = {test.name: {key: value for key, value in vars(test).items() if key != "name"} for test in drift}
        session.report({"rows": drift.n_rows, "moved": drift.moved, "p_value": drift.p_value, "tests": tests})
    else:
        session.show(drift_text(drift, table.name))
    if drift.moved:
        raise typer.Exit(MOVED)
