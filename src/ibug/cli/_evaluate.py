"""``ibug evaluate``: the scores on rows that the model has not seen, compared with those of the plain neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Group
from rich.text import Text

from ibug._installed import how_to_install
from ibug._progress import Progress
from ibug.cli import _options as o
from ibug.cli._columns import divided
from ibug.cli._errors import guarded
from ibug.cli._reading import ReadOptions, open_table
from ibug.cli._rows import LabelledRows, groups_of
from ibug.cli._terminal import Session, done, plain_table, words
from ibug.cli._writing import atomic
from ibug.describe import Predictions, group_lines, number, ordered_scores, percent, predict_rows
from ibug.exceptions import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    from ibug.metrics import Scores

_LEVELS = "0.5,0.8,0.9,0.95"
_MAIN = 0.9  # the coverage whose width is shown first, and that of groups, if it is scored
_WIDE = 90  # the width of a terminal from which on meanings are shown

HELP = """
Score the model on TEST: rows that it has not seen, with their targets.

Scores are compared with those of the plain neighbours: the same model without stack and calibration. --plots draws
calibration curve, PIT, intervals and more as PNG.

[dim]Examples:[/]

  ibug evaluate model.ibug test.csv

  ibug evaluate model.ibug test.parquet --target price --levels 0.9 --plots plots/

  ibug evaluate model.ibug test.csv --groups region

  ibug evaluate model.ibug test.csv --json | jq .scores.crps
"""


@guarded
def evaluate(
    model: o.ModelFile,
    test: o.TestFile,
    target: o.Target = None,
    plots: Annotated[str | None, typer.Option("--plots", help="A folder for plots; needs ibug-learn[plot].")] = None,
    levels: Annotated[list[str] | None, typer.Option("--levels", help="Coverages of the intervals to score.")] = None,
    groups: o.Groups = None,
    id: o.Ids = None,
    *,
    loading: o.LoadOptions,
    reading: ReadOptions,
    strict: o.Strict = False,
    session: Session,
) -> None:
    """Score the model; see HELP."""
    coverages = o.probabilities(levels or [_LEVELS], "--levels")
    if plots is not None:
        _require_matplotlib()
    stored = loading.load(model)
    table = open_table(test, reading, session)
    targets = stored.targets(target, table, session)
    ids = divided(id or (), table.columns)
    multioutput = bool(stored.target_names)
    if multioutput and (groups is not None or plots is not None):
        raise typer.BadParameter("these are for one target, and the model has several.", param_hint="--groups, --plots")
    rows = stored.read_labelled(table, targets, session, ids=ids, groups=groups, strict=strict)
    with session.stages():
        scores, plain, drawn = _answer(stored.estimator, rows, coverages, groups, plots, session)
    if session.json:
        result = {"rows": len(rows.y), "scores": dict(scores), "plain_neighbors": dict(plain), "plots": drawn}
        session.report(result | ({} if scores.groups is None else {"groups": scores.groups}))
    else:
        wide = session.out.width >= _WIDE
        session.show(_scores_text(scores, plain, coverages, table.name, multioutput=multioutput, wide=wide))
        if scores.groups is not None:
            session.show(_groups_text(scores.groups, _main(coverages), str(groups)))
        for path in drawn:
            session.say(done(path))


def _answer(
    estimator: Any,
    rows: LabelledRows,
    coverages: list[float],
    groups: str | None,
    plots: str | None,
    session: Session,
) -> tuple[Scores, Scores, list[str]]:
    """Return the scores of ibug and of the plain neighbours, and the plots; all are made of the same predictions."""
    from ibug.metrics import evaluate as all_scores

    with_densities = np.arange(min(_ROWS_OF_DENSITIES, len(rows.y)))
    found = predict_rows(estimator, rows.X, listed=with_densities, uncalibrated=True)
    plain = found.plain_neighbors()
    assert plain is not None, "a model file has an IBUGRegressor"
    scores = all_scores(found, rows.X, rows.y, levels=coverages, groups=groups_of(rows, groups))
    plain_scores = all_scores(plain, rows.X, rows.y, levels=coverages)
    if plots is None:
        return scores, plain_scores, []
    return scores, plain_scores, _draw_all(_makers(estimator, rows, found, plain), Path(plots), session)


# The number of rows whose densities are drawn: the first ones.
_ROWS_OF_DENSITIES = 5
_DPI = 150


def _require_matplotlib() -> None:
    """Import matplotlib to draw files, or say how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(
            f"--plots needs matplotlib, which cannot be imported ({error}). Install it: {how_to_install('plot')}."
        ) from error
    matplotlib.use("Agg")


def _draw_all(makers: dict[str, Callable[[], Any]], folder: Path, session: Session) -> list[str]:
    """Draw all displays that can be drawn; returns the files."""
    import matplotlib.pyplot as plt

    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--plots {folder}: this is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with Progress("drawing", len(makers), enabled=False) as progress:
        for name, make in makers.items():
            try:
                display = make()
            except InvalidInputError as error:  # nothing was tuned, say, or there are too few rows
                session.note(f"no plot {name}: {error}")
                continue
            path = folder / f"{name}.png"
            with atomic(str(path)) as file:
                display.figure_.savefig(file, format="png", dpi=_DPI)
            plt.close(display.figure_)
            drawn.append(str(path))
            progress.advance(1)
    return drawn


def _makers(estimator: Any, rows: LabelledRows, found: Predictions, plain: Predictions) -> dict[str, Callable[[], Any]]:
    """Return a function for each display, by the name of its file; none of them searches again."""
    import ibug.plotting as p  # takes long to import

    assert found.nearest is not None, "a model file has an IBUGRegressor"
    y, distribution, indices = rows.y, found.distribution, found.nearest.indices
    both = {"ibug": distribution, "plain neighbours": plain.distribution}
    first = range(len(indices))
    targets = estimator.training_targets_[indices[:, : estimator.k_]]
    return {
        "calibration": lambda: p.CalibrationDisplay.from_predictions(y, both),
        "pit": lambda: p.PITDisplay.from_predictions(y, distribution),
        "intervals": lambda: p.IntervalDisplay.from_predictions(y, distribution, prediction=found.points),
        "spread_error": lambda: p.SpreadErrorDisplay.from_predictions(y, distribution),
        "densities": lambda: p.DensityDisplay.from_predictions(
            y[: len(first)], distribution[: len(first)], targets, rows=first
        ),
        "leaf_density": lambda: p.LeafDensityDisplay.from_estimator(estimator, rows.X),
        "tuning": lambda: p.TuningDisplay.from_estimator(estimator),
    }


def _main(coverages: list[float]) -> float:
    return _MAIN if _MAIN in coverages else max(coverages)


def _scores_text(scores: Any, plain: Any, levels: list[float], file: str, *, multioutput: bool, wide: bool) -> Any:
    """Return the scores of ibug and of the plain neighbours, CRPS and width first."""
    head = words((f"{scores.n_rows:,}", "value"), " rows of ", (file, "value"))
    if multioutput:
        return Group(head, "", _score_table(_of_all_first(scores), scores, plain, wide))
    intervals = plain_table("interval", "mean width", "plain neighbours", "inside", "plain neighbours")
    for level in [f"{100 * level:g}" for level in levels]:
        widths = [number(each[f"width_{level}"]) for each in (scores, plain)]
        inside = [percent(each[f"coverage_{level}"], 1) for each in (scores, plain)]
        ours = [Text(shown[0], style="value") for shown in (widths, inside)]
        intervals.add_row(f"{level} %", ours[0], widths[1], ours[1], inside[1])
    names = ordered_scores(scores, _main(levels))
    return Group(head, "", _score_table(names, scores, plain, wide), "", intervals)


def _of_all_first(names: Iterable[str]) -> list[str]:
    """Return the scores of several targets by name: of all together, CRPS and widths of each, then the others."""

    def place(name: str) -> int:
        own = name.startswith(tuple(f"{target}_" for target in targets))
        return 1 if own and name.endswith("_crps") else 2 if own and "_width_" in name else 3 if own else 0

    targets = [name.removesuffix("_crps") for name in names if name.endswith("_crps")]
    return sorted(names, key=place)


def _score_table(names: Sequence[str], scores: Any, plain: Any, wide: bool) -> Any:
    table = plain_table("score", "ibug", "plain neighbours")
    if wide:
        table.add_column("", style="label")
    for name in names:
        other = "" if plain[name] != plain[name] else number(plain[name])  # boxes need calibration
        meaning = [scores.meanings[name]] if wide else []
        table.add_row(name, Text(number(scores[name]), style="value"), other, *meaning)
    return table


def _groups_text(table: dict[str, Any], coverage: float, column: str) -> Any:
    """Return coverage and mean width of each group."""
    lines = plain_table(column, "rows", f"{100 * coverage:g} % inside", "", "by chance", "mean width")
    groups = group_lines(table, coverage)
    for line in groups:
        mark = Text(line["mark"], style="error" if line["mark"] == "▼" else "note")
        held = Text(line["inside"], style="value")
        lines.add_row(line["group"], line["rows"], held, mark, line["chance"], line["width"])
    if not any(line["mark"] for line in groups):
        return Group("", lines)
    legend = "▼ fewer inside than chance explains, ▲ more; of twenty groups, one is marked by chance."
    return Group("", lines, Text(legend, style="label"))
