"""The summaries of ``ibug fit``, ``ibug recalibrate`` and ``ibug evaluate``."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from ibug.cli.screen._layout import done, facts_table, plain_table, words
from ibug.describe import group_lines, model_lines, number, percent


def fit_text(facts: dict[str, Any]) -> Any:
    """Return the summary of ``ibug fit``, from the facts that it reports in JSON."""
    lines = model_lines(facts)
    scores = facts["validation_score"]
    if scores["calibrated"] is not None:
        name = {"crps": "CRPS", "nll": "NLL", "energy": "energy score"}.get(facts["scoring"], "score")
        where = "validation rows" if facts["validation_rows"] else "out-of-fold predictions"
        before = "" if scores["uncalibrated"] is None else f" ({number(scores['uncalibrated'])} uncalibrated)"
        lines["score"] = f"{name} {number(scores['calibrated'])}{before} on {where}"
    head = done(facts["output"], facts["bytes"])
    return Group(head, facts_table(lines))


def recalibrated_text(facts: dict[str, Any], file: str) -> Any:
    """Return the summary of ``ibug recalibrate``, from the facts that it reports in JSON."""
    before, after = facts["before"], facts["after"]
    lines = {
        "rows": f"{facts['rows']:,} of {file}",
        "CRPS": f"{number(before['crps'])} before, {number(after['crps'])} after",
        "inside 90 %": f"{percent(before['coverage_90'], 1)} before, {percent(after['coverage_90'], 1)} after",
    }
    head = done(facts["output"], facts["bytes"])
    return Group(head, facts_table(lines))


def drift_text(drift: Any, file: str) -> Any:
    """Return the comparisons of ``ibug monitor``."""
    table = plain_table("", "observed", "expected", "p-value", "corrected")
    table.add_column("", style="label")
    for test in drift:
        figures = (number(value, 3) for value in (test.observed, test.expected, test.p_value, test.adjusted))
        table.add_row(test.name, *figures, test.meaning)
    verdict = ("Data drift", "error") if drift.drifted else ("No sign of data drift", "good")
    head = words(verdict, ": ", (f"{drift.n_rows:,}", "value"), " rows of ", (file, "value"))
    return Group(head, "", table)


def nights_text(nights: Any, file: str, *, drifted: bool) -> Any:
    """Return what ``ibug monitor --log`` has found."""
    table = plain_table("", "rows so far", "corrected p-value")
    for name, p_value in nights.p_values.items():
        table.add_row(name, f"{nights.tests_[name].n_rows:,}", number(p_value, 3))
    verdict = ("Data drift", "error") if drifted else ("No sign of data drift", "good")
    head = words(
        verdict, ": call ", (f"{len(nights.history_):,}", "value"), " with this log, rows of ", (file, "value")
    )
    return Group(head, "", table)


def scores_text(scores: Any, plain: Any, levels: list[float], file: str, *, wide: bool) -> Any:
    """Return the scores beside the uncalibrated ones."""
    table = plain_table("score", "calibrated", "uncalibrated")
    if wide:
        table.add_column("", style="label")
    for name, value in scores.items():
        if name.startswith(("coverage_", "width_")):
            continue
        cells = [name, Text(number(value), style="value"), number(plain[name])]
        table.add_row(*cells, *([scores.meanings[name]] if wide else []))
    intervals = plain_table("interval", "inside", "uncalibrated", "mean width", "uncalibrated")
    for level in [f"{100 * level:g}" for level in levels]:
        inside, width = f"coverage_{level}", f"width_{level}"
        intervals.add_row(
            f"{level} %",
            Text(percent(scores[inside], 1), style="value"),
            percent(plain[inside], 1),
            Text(number(scores[width]), style="value"),
            number(plain[width]),
        )
    head = words((f"{scores.n_rows:,}", "value"), " rows of ", (file, "value"))
    return Group(head, "", table, "", intervals)


def several_scores_text(scores: Any, plain: Any, file: str, *, wide: bool) -> Any:
    """Return the scores of several targets beside the uncalibrated ones."""
    table = plain_table("score", "calibrated", "uncalibrated")
    if wide:
        table.add_column("", style="label")
    for name, value in scores.items():
        before = "" if plain[name] != plain[name] else number(plain[name])  # boxes need calibration
        table.add_row(name, Text(number(value), style="value"), before, *([scores.meanings[name]] if wide else []))
    head = words((f"{scores.n_rows:,}", "value"), " rows of ", (file, "value"))
    return Group(head, "", table)


def groups_text(table: dict[str, Any], coverage: float, column: str) -> Any:
    """Return coverage and mean width of each group."""
    lines = plain_table(column, "rows", f"{100 * coverage:g} % inside", "", "by chance", "mean width")
    marked = False
    for line in group_lines(table, coverage):
        marked |= bool(line["mark"])
        mark = Text(line["mark"], style="error" if line["mark"] == "▼" else "note")
        held = Text(line["held"], style="value")
        lines.add_row(line["group"], line["rows"], held, mark, line["chance"], line["width"])
    told = Text(
        "▼ fewer inside than chance explains, ▲ more; of twenty groups, one is marked by chance.", style="label"
    )
    return Group("", lines, *([told] if marked else []))
