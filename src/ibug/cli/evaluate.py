"""``ibug evaluate``: the scores on rows that the model has not seen, beside those without calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ibug.cli import _options as o
from ibug.cli._guard import guarded
from ibug.cli._match import match, require_column
from ibug.cli._plots import draw_all, require_matplotlib
from ibug.cli._reading import open_table
from ibug.cli._session import Session
from ibug.cli._show import scores_text
from ibug.cli._store import load
from ibug.cli._training_data import LabelledRows, read_labelled
from ibug.metrics import evaluate as all_scores

_LEVELS = "0.5,0.8,0.9,0.95"
_WIDE = 90  # columns of a terminal, from which on meanings are shown

HELP = """
Score the model on TEST: rows that it has not seen, with their targets.

Scores stand beside those of the same model without calibration. --plots draws calibration curve, PIT, intervals and
more as PNG.

[dim]Examples:[/]

  ibug evaluate model.ibug test.csv

  ibug evaluate model.ibug test.parquet --target price --levels 0.9 --plots plots/

  ibug evaluate model.ibug test.csv --json | jq .scores.crps
"""


@guarded
def evaluate(
    session: Session,
    model: o.ModelFile,
    test: o.TestFile,
    target: o.Target = None,
    plots: Annotated[str | None, typer.Option("--plots", help="A folder for plots; needs ibug[plot].")] = None,
    levels: Annotated[list[str] | None, typer.Option("--levels", help="Coverages of intervals to look at.")] = None,
    id: Annotated[list[str] | None, typer.Option("--id", help="Columns that name rows.")] = None,
    jobs: o.Jobs = -1,
    format: o.InputFormat = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    missing: o.Missing = None,
    strict: o.Strict = False,
) -> None:
    """Score the model; see HELP."""
    reading = o.read_options(format, delimiter, encoding, missing)
    coverages = o.probabilities(levels or [_LEVELS], "--levels")
    if plots is not None:
        require_matplotlib()
    stored = load(model, jobs=jobs)
    name = o.target_column(target, stored.schema.target)
    table = open_table(test, reading, session)
    require_column(table, name, "target")
    schema = match(table, stored.schema, [name, stored.id, *o.names(id)], session, strict=strict)
    rows, _ = read_labelled(table, schema.names, schema.types, name, None, lambda data: schema, session)
    with session.stages():
        scores, plain = _both(stored.estimator, rows, coverages)
        drawn = [] if plots is None else draw_all(stored.estimator, rows.X, rows.y, Path(plots), name, session)
    if session.json:
        result = {"rows": len(rows.y), "scores": dict(scores), "uncalibrated": dict(plain), "plots": drawn}
        session.report(result)
    else:
        session.show(scores_text(scores, plain, coverages, table.name, wide=session.out.width >= _WIDE))
        for path in drawn:
            session.say(f"[good]✓[/] {path}")


def _both(estimator: Any, rows: LabelledRows, coverages: list[float]) -> tuple[Any, Any]:
    return (
        all_scores(estimator, rows.X, rows.y, levels=coverages),
        all_scores(estimator.uncalibrated(), rows.X, rows.y, levels=coverages),
    )
