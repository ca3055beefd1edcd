"""``ibug monitor``: a test for data drift, for a nightly job that reads the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from ibug.cli import _options as o
from ibug.cli._columns import divided, match
from ibug.cli._errors import DRIFT, guarded
from ibug.cli._reading import ReadOptions, open_table
from ibug.cli._rows import read_unlabelled
from ibug.cli._terminal import Session, plain_table, words
from ibug.describe import number

if TYPE_CHECKING:
    from ibug.online import DriftMonitor

HELP = """
Test for data drift: compare DATA with the rows that the model was calibrated on. The exit code is 4 in case of drift.

The tests compare the predictions of the rows and their similarity to the training data. Where DATA has the target, they
also compare where observed values lie in their distributions, and the share inside intervals. --alpha is the
probability of a false alarm.

--log FILE is for a test every night: the evidence of all nights is kept in FILE, and --alpha is the probability of
ever a false alarm. DATA are then the rows that have come since the last call. An alarm stays: begin another file after
it, and after ibug recalibrate.

[dim]Examples:[/]

  ibug monitor model.ibug today.csv; [ $? -eq 4 ] && mail -s "data drift" me@example.org < /dev/null

  ibug monitor model.ibug today.csv --log drift.json; [ $? -eq 4 ] && mail -s "data drift" me@example.org < /dev/null

  ibug monitor model.ibug last_month.parquet --alpha 0.001 --json
"""


@guarded
def monitor(
    model: o.ModelFile,
    data: o.DataFile,
    target: o.Target = None,
    alpha: Annotated[str, typer.Option("--alpha", help="The probability of a false alarm.")] = "0.01",
    interval: o.Coverage = "0.9",
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Add DATA to the evidence of earlier nights in this file."),
    ] = None,
    id: o.Ids = None,
    *,
    loading: o.LoadOptions,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Compare new rows with the validation rows; see HELP."""
    level, coverage = o.probabilities([alpha], "--alpha")[0], o.coverage(interval)
    stored = loading.load(model)
    stored.require_one_target("monitor")
    nights = None if log is None else _nights(log, stored.estimator)
    table = open_table(data, reading, session)
    ids = divided(id or (), table.columns)
    if target or stored.schema.target in table.columns:
        rows = stored.read_labelled(table, stored.targets(target, table, session), session, ids=ids, strict=strict)
        X, y = rows.X, rows.y
    else:
        schema = match(table, stored.schema, [stored.id, *ids], session, strict=strict)
        X, y = read_unlabelled(table, schema, session), None
    found: dict[str, Any]
    if nights is None:
        with session.stages():
            drift = stored.estimator.monitor(X, y, coverage=coverage, alpha=level)
        drifted, text = drift.drifted, _drift_text(drift, table.name)
        tests = {test.name: {key: value for key, value in vars(test).items() if key != "name"} for test in drift}
        found = {"rows": drift.n_rows, "drifted": drifted, "p_value": drift.p_value, "tests": tests}
    else:
        if not nights.history_ and (new := [name for name, test in nights.tests_.items() if not test.counts.any()]):
            session.note(
                f"the model has no validation rows to compare with ({', '.join(new)}): later rows are compared with "
                f"those of {table.name}. After ibug recalibrate on rows that it has not seen, it has some."
            )
        with session.stages():
            nights.observe(X, y).save(str(log))
        drifted, text = nights.drifted(level), _nights_text(nights, table.name, drifted=nights.drifted(level))
        tests = {name: {"p_value": p, "rows": nights.tests_[name].n_rows} for name, p in nights.p_values.items()}
        found = {"nights": len(nights.history_), "drifted": drifted, "p_value": nights.p_value, "tests": tests}
    if session.json:
        session.report(found)
    else:
        session.show(text)
    if drifted:
        raise typer.Exit(DRIFT)


def _nights(path: str, estimator: Any) -> DriftMonitor:
    """Return the monitor of this file, or a new one if there is no such file."""
    from ibug.online import DriftMonitor
    from ibug.persistence import check_replaceable

    return DriftMonitor.load(path, estimator) if check_replaceable(path).exists() else DriftMonitor(estimator)


def _drift_text(drift: Any, file: str) -> Any:
    """Return the comparisons of rows with the validation rows."""
    table = plain_table("", "observed", "expected", "p-value", "corrected")
    table.add_column("", style="label")
    for test in drift:
        figures = (number(value, 3) for value in (test.observed, test.expected, test.p_value, test.adjusted))
        table.add_row(test.name, *figures, test.meaning)
    head = words(_verdict(drift.drifted), ": ", (f"{drift.n_rows:,}", "value"), " rows of ", (file, "value"))
    return Group(head, "", table)


def _nights_text(nights: Any, file: str, *, drifted: bool) -> Any:
    """Return what ``ibug monitor --log`` has found."""
    table = plain_table("", "rows so far", "corrected p-value")
    for name, p_value in nights.p_values.items():
        table.add_row(name, f"{nights.tests_[name].n_rows:,}", number(p_value, 3))
    call = (f"{len(nights.history_):,}", "value")
    head = words(_verdict(drifted), ": call ", call, " with this log, rows of ", (file, "value"))
    return Group(head, "", table)


def _verdict(drifted: bool) -> tuple[str, str]:
    return ("Data drift", "error") if drifted else ("No sign of data drift", "good")
