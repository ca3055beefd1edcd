"""``ibug recalibrate``: newer rows choose and calibrate again; model and index stay as they are."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.console import Group

from ibug.cli import _options as o
from ibug.cli._columns import divided
from ibug.cli._errors import guarded
from ibug.cli._model_file import save_again
from ibug.cli._reading import STANDARD_STREAM, ReadOptions, open_table
from ibug.cli._rows import label_frame
from ibug.cli._terminal import Session, done, facts_table
from ibug.cli._writing import check_output
from ibug.describe import number, percent

_LEVEL = 0.9

HELP = """
Let NEW, labelled rows that the model was not trained on, choose and calibrate again.

Nothing is trained: model and neighbours stay. The output may be the model file itself; it is replaced when the new one
is complete, and stays as it is if anything fails.

[dim]Examples:[/]

  ibug recalibrate model.ibug last_month.csv -o model.ibug

  ibug recalibrate model.ibug last_month.parquet --target price -o newer.ibug --json

  ibug recalibrate model.ibug last_month.csv --blocks day -o model.ibug
"""


@guarded
def recalibrate(
    model: o.ModelFile,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Labelled rows: .csv .csv.gz .tsv .parquet .feather or -")],
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write; it may be MODEL.ibug itself.")],
    target: o.Target = None,
    weight: Annotated[str | None, typer.Option("--weight", help="The column of weights.")] = None,
    id: o.Ids = None,
    blocks: Annotated[
        list[str] | None,
        typer.Option("--blocks", help="Columns of NEW that name rows which belong together (day): for totals."),
    ] = None,
    *,
    loading: o.LoadOptions,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Calibrate again; see HELP."""
    if output == STANDARD_STREAM:
        raise typer.BadParameter("a model is a file of its own: name it.", param_hint="--output")
    check_output(output, new)
    stored = loading.load(model)
    stored.require_one_target("recalibrate")
    table = open_table(new, reading, session)
    targets = stored.targets(target, table, session)
    ids, kinds = (divided(given or (), table.columns) for given in (id, blocks))
    rows = stored.read_labelled(table, targets, session, ids=ids, weight=weight, blocks=kinds, strict=strict)
    u = stored.estimator
    with session.stages():
        before = _scores(u, rows.X, rows.y)
        labels = label_frame(rows.data, kinds) if kinds else None
        u.recalibrate(rows.X, rows.y, sample_weight=rows.weight, blocks=labels)
        after = _scores(u, rows.X, rows.y)
    save_again(output, stored, loading.trusted)
    facts = {"output": output, "bytes": os.path.getsize(output), "rows": len(rows.y), "before": before, "after": after}
    if session.json:
        session.report(facts)
    else:
        session.say(_summary(facts, table.name))


def _scores(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the scores on the new rows; afterwards these are the rows that were calibrated on."""
    from ibug.metrics import coverage, crps

    found = estimator.predict_dist(X)
    return {"crps": crps(y, found), "coverage_90": coverage(y, found, _LEVEL)}


def _summary(facts: dict[str, Any], file: str) -> Any:
    """Return the facts that are reported in JSON, for people."""
    before, after = facts["before"], facts["after"]
    lines = {
        "rows": f"{facts['rows']:,} of {file}",
        "CRPS": f"{number(before['crps'])} before, {number(after['crps'])} after",
        "inside 90 %": f"{percent(before['coverage_90'], 1)} before, {percent(after['coverage_90'], 1)} after",
    }
    return Group(done(facts["output"], facts["bytes"]), facts_table(lines))
