"""``ibug evaluate``: the scores on rows that the model has not seen, beside those without calibration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ibug.cli.columns import divided, match, require_column
from ibug.cli.commands import _options as o
from ibug.cli.screen import Session, done, groups_text, guarded, scores_text, several_scores_text
from ibug.cli.tables import open_table
from ibug.describe import Predictions

if TYPE_CHECKING:
    from ibug.cli.rows import LabelledRows
    from ibug.metrics import Scores

_LEVELS = "0.5,0.8,0.9,0.95"
_TOLD = 0.9  # the coverage that is shown for groups, if it is scored
_WIDE = 90  # the width of a terminal from which on meanings are shown

HELP = """
Score the model on TEST: rows that it has not seen, with their targets.

Scores stand beside those of the same model without calibration. --plots draws calibration curve, PIT, intervals and
more as PNG.

[dim]Examples:[/]

  ibug evaluate model.ibug test.csv

  ibug evaluate model.ibug test.parquet --target price --levels 0.9 --plots plots/

  ibug evaluate model.ibug test.csv --groups region

  ibug evaluate model.ibug test.csv --json | jq .scores.crps
"""


@guarded
def evaluate(
    session: Session,
    model: o.ModelFile,
    test: o.TestFile,
    target: o.Target = None,
    plots: Annotated[str | None, typer.Option("--plots", help="A folder for plots; needs ibug-learn[plot].")] = None,
    levels: Annotated[list[str] | None, typer.Option("--levels", help="Coverages of the intervals to score.")] = None,
    groups: o.Groups = None,
    id: o.Ids = None,
    *,
    loading: o.Loading,
    reading: o.Reading,
    strict: o.Strict = False,
) -> None:
    """Score the model; see HELP."""
    from ibug.cli.answers import require_matplotlib
    from ibug.cli.rows import read_labelled, with_groups

    read = reading.options()
    coverages = o.probabilities(levels or [_LEVELS], "--levels")
    if plots is not None:
        require_matplotlib()
    stored = loading.load(model)
    table = open_table(test, read, session)
    targets = stored.targets(target, table, session)
    ids = divided(id or (), table.columns)
    if groups is not None:
        require_column(table, groups, "groups")
    several = getattr(stored.estimator, "target_names_", None) is not None
    if several and (groups is not None or plots is not None):
        raise typer.BadParameter("these are for one target, and the model has several.", param_hint="--groups, --plots")
    schema = match(table, stored.schema, [*targets, stored.id, groups, *ids], session, strict=strict)
    columns = with_groups(schema.names, groups, *targets)
    rows, _ = read_labelled(table, columns, schema.types, targets, None, lambda data: schema, session)
    if several:
        _tell_several(stored.estimator, rows, coverages, table.name, session)
        return
    with session.stages():
        scores, plain, drawn = _answer(stored.estimator, rows, coverages, groups, plots, session)
    if session.json:
        result = {"rows": len(rows.y), "scores": dict(scores), "uncalibrated": dict(plain), "plots": drawn}
        session.report(result | ({} if scores.groups is None else {"groups": scores.groups}))
    else:
        session.show(scores_text(scores, plain, coverages, table.name, wide=session.out.width >= _WIDE))
        if scores.groups is not None:
            session.show(groups_text(scores.groups, _TOLD if _TOLD in coverages else max(coverages), str(groups)))
        for path in drawn:
            session.say(done(path))


def _tell_several(estimator: Any, rows: LabelledRows, coverages: list[float], file: str, session: Session) -> None:
    """Report the scores of several targets beside those without calibration."""
    from ibug.metrics import evaluate as all_scores

    with session.stages():
        scores, plain = (
            all_scores(one, rows.X, rows.y, levels=coverages) for one in (estimator, estimator.uncalibrated())
        )
    if session.json:
        session.report({"rows": len(rows.y), "scores": dict(scores), "uncalibrated": dict(plain), "plots": []})
    else:
        session.show(several_scores_text(scores, plain, file, wide=session.out.width >= _WIDE))


def _answer(
    estimator: Any,
    rows: LabelledRows,
    coverages: list[float],
    groups: str | None,
    plots: str | None,
    session: Session,
) -> tuple[Scores, Scores, list[str]]:
    """Return the scores with and without calibration, and the plots; all are made of the same predictions."""
    from ibug.cli.answers import ROWS_OF_DENSITIES, draw_all
    from ibug.cli.rows import groups_of
    from ibug.metrics import evaluate as all_scores

    with_densities = np.arange(min(ROWS_OF_DENSITIES, len(rows.y)))
    found, neighbors = Predictions.with_neighbors(estimator, rows.X, estimator.k_, with_densities, both=True)
    plain = found.before_calibration()
    assert plain is not None, "the command works with IBUGRegressor, which has an uncalibrated form"
    scores = all_scores(found, rows.X, rows.y, levels=coverages, groups=groups_of(rows, groups))
    before = all_scores(plain, rows.X, rows.y, levels=coverages)
    if plots is None:
        return scores, before, []
    folder = Path(plots)
    return scores, before, draw_all(estimator, rows.X, rows.y, found, plain, neighbors.indices, folder, session)
