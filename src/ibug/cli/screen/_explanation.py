"""The explanation of one prediction in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ibug.cli.screen._layout import plain_table, words
from ibug.describe import number, percent

_MOST_FEATURES = 10
_BAR = 10
# Features are shown as they are: a year is no 2,020. Large ones have no fraction, and very large ones a power of ten.
_WHOLE, _LARGEST = 1e6, 1e15


def explanation_text(facts: dict[str, Any], file: str) -> Any:
    """Return prediction, reasons, neighbours and differences, one below the other."""
    interval = facts["interval"]
    head = words(
        (number(facts["prediction"]), "value"),
        (f"  {100 * interval['coverage']:g} % interval ", "label"),
        f"{number(interval['lower'])} … {number(interval['upper'])}",
        ("  std ", "label"),
        number(facts["std"]),
    )
    parts: list[Any] = [words((f"{file}, {facts['where']}", "label")), head, ""]
    parts += [f"• {line}" for line in facts["reasons"]]
    if "width" in facts:
        parts += ["", _width(facts["width"])]
    parts += ["", _neighbors(facts)]
    if facts.get("differences"):
        parts += ["", _differences(facts)]
    elif "differences" in facts:
        parts += ["", Text("All features are the same as those of these neighbours.")]
    return Group(*parts)


def _neighbors(facts: dict[str, Any]) -> Table:
    with_id = any("id" in neighbor for neighbor in facts["neighbors"])
    table = plain_table("training row", *(["id"] if with_id else []), "target", "affinity", first="right")
    table.add_column("")
    for neighbor in facts["neighbors"]:
        share = neighbor["affinity"]
        bar = "█" * round(share * _BAR)
        identity = [str(neighbor.get("id"))] if with_id else []
        cells = [str(neighbor["row"]), *identity, number(neighbor["target"]), percent(share)]
        table.add_row(*cells, Text(bar.ljust(_BAR, "░"), style="cyan"))
    return table


def _width(width: dict[str, Any]) -> Any:
    """Return what widens and what narrows: a bar to the right or to the left for each feature."""
    shown = width["features"][:_MOST_FEATURES]
    longest = max((abs(each["log_std"]) for each in shown), default=0.0) or 1.0
    table = plain_table("feature", "this row", "factor of std")
    table.add_column("narrows │ widens")
    for each in shown:
        length = round(_BAR * abs(each["log_std"]) / longest) * "█"
        left, right = (length, "") if each["log_std"] < 0 else ("", length)
        bar = Text.assemble((left.rjust(_BAR), "cyan"), "│", (right, "yellow"))
        table.add_row(each["feature"], words((_value(each["here"]), "value")), f"{each['factor']:.2f}", bar)
    rest = len(width["features"]) - len(shown)
    more = f"; {rest} more features matter less" if rest else ""
    note = f"Compared with {width['compared_with']} rows, whose typical std is {number(width['typical_std'])}{more}."
    return Group(table, Text(note, style="label"))


def _differences(facts: dict[str, Any]) -> Any:
    shown = facts["differences"][:_MOST_FEATURES]
    table = plain_table("feature that differs", "this row", "training rows, the nearest first")
    table.columns[2].justify = "left"
    table.columns[2].no_wrap = False
    for found in shown:
        there = Text(", ").join(
            words((_value(value), "label" if value == found["here"] else "")) for value in found["neighbors"]
        )
        table.add_row(found["feature"], words((_value(found["here"]), "value")), there)
    same = len(facts["features"]) - len(facts["differences"])
    rest = len(facts["differences"]) - len(shown)
    more = f"{rest} more differ less; " if rest else ""
    return Group(table, Text(f"{more}{same} of {len(facts['features'])} features are the same.", style="label"))


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if _WHOLE <= abs(value) < _LARGEST else f"{value:.6g}"
    return str(value)
