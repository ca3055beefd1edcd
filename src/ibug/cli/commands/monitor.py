"""``ibug monitor``: a test for data drift, for a nightly job that reads the exit code."""

from __future__ import annotations

from typing import Annotated

import typer

from ibug.cli.columns import divided, match
from ibug.cli.commands import _options as o
from ibug.cli.screen import DRIFT, Session, drift_text, guarded
from ibug.cli.tables import open_table

HELP = """
Test for data drift: compare DATA with the rows that the model was calibrated on. The exit code is 4 in case of drift.

The tests compare the predictions of the rows and their similarity to the training data. Where DATA has the target, they
also compare where observed values lie in their distributions, and the share inside intervals. --alpha is the
probability of a false alarm.

[dim]Examples:[/]

  ibug monitor model.ibug today.csv; [ $? -eq 4 ] && mail -s "data drift" me@example.org < /dev/null

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
    """Compare new rows with the validation rows; see HELP."""
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
        session.report({"rows": drift.n_rows, "drifted": drift.drifted, "p_value": drift.p_value, "tests": tests})
    else:
        session.show(drift_text(drift, table.name))
    if drift.drifted:
        raise typer.Exit(DRIFT)
