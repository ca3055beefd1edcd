"""What results look like for people."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from rich.console import Group, JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ibug._facts import model_facts, model_lines
from ibug._text import number, percent
from ibug.cli._schema import CATEGORY


def bytes_text(n: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def facts_table(facts: dict[str, Any], title: str | None = None) -> Table:
    """Return names and values, one pair a line."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, show_header=False, padding=(0, 2, 0, 0)
    )
    table.add_column(style="label", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value if isinstance(value, (Text, Group)) else escape(str(value)))
    return table


def plain_table(*columns: str, first: JustifyMethod = "left") -> Table:
    """Return an empty table with a rule under its header; all columns but the first are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="label", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else first, no_wrap=True)
    return table


def validation_scores(estimator: Any) -> dict[str, float | None]:
    """Return the score on validation rows of what was chosen, and of the best before calibration."""
    table = estimator.tuning_
    if not len(table["score"]):
        return {"calibrated": None, "uncalibrated": None}
    chosen = (table["spread"] == estimator.spread_) & (table["distribution"] == estimator.distribution_)
    targets = (table["spread"] == "targets") & (table["distribution"] == estimator.distribution_)
    before = table["score"][targets if targets.any() else chosen]
    return {"calibrated": _least(table["calibrated"][chosen]), "uncalibrated": _least(before)}


def _least(values: Any) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if len(finite) else None


def fit_facts(fitted: Any, output: str) -> dict[str, Any]:
    """Return what came of ``ibug fit``."""
    categorical = [column.name for column in fitted.schema.columns if column.kind == CATEGORY]
    return {
        "output": output,
        "bytes": os.path.getsize(output),
        **model_facts(fitted.estimator),
        "categorical": categorical,
        "target": fitted.schema.target,
        "validation_rows": fitted.n_valid,
        "validation_score": validation_scores(fitted.estimator),
    }


def fit_text(facts: dict[str, Any]) -> Any:
    """Return the summary of ``ibug fit``."""
    lines = model_lines(facts)
    scores = facts["validation_score"]
    if scores["calibrated"] is not None:
        name = {"crps": "CRPS", "nll": "NLL"}.get(facts["scoring"], "score")
        where = "validation rows" if facts["validation_rows"] else "out-of-fold predictions"
        before = "" if scores["uncalibrated"] is None else f" ({number(scores['uncalibrated'])} uncalibrated)"
        lines["score"] = f"{name} {number(scores['calibrated'])}{before} on {where}"
    head = Text.from_markup(f"[good]✓[/] [value]{escape(facts['output'])}[/] [label]{bytes_text(facts['bytes'])}[/]")
    return Group(head, facts_table(lines))


def scores_text(scores: Any, plain: Any, levels: list[float], file: str, *, wide: bool) -> Any:
    """Return the scores beside the uncalibrated ones; in a wide terminal with their meanings."""
    per_level = [f"{100 * level:g}" for level in levels]
    table = plain_table("score", "calibrated", "uncalibrated")
    if wide:
        table.add_column("", style="label")
    for name, value in scores.items():
        if name.startswith(("coverage_", "width_")):
            continue
        cells = [name, Text(number(value), style="value"), number(plain[name])]
        table.add_row(*cells, *([scores.meanings[name]] if wide else []))
    intervals = plain_table("interval", "inside", "uncalibrated", "width", "uncalibrated")
    for level in per_level:
        inside, width = f"coverage_{level}", f"width_{level}"
        intervals.add_row(
            f"{level} %",
            Text(percent(scores[inside], 1), style="value"),
            percent(plain[inside], 1),
            Text(number(scores[width]), style="value"),
            number(plain[width]),
        )
    head = Text.from_markup(f"[value]{scores.n_rows:,}[/] rows of [value]{escape(file)}[/]")
    return Group(head, "", table, "", intervals)
