"""Coverage and width of groups of rows, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibug.describe._numbers import number, percent
from ibug.describe._scores import chance_band


def group_lines(table: Mapping[str, Any], coverage: float) -> list[dict[str, str]]:
    """Return a line for each group: its name, ``rows``, ``held``, mean ``width``, the range of ``chance``, and a mark.

    The mark is ``"▼"`` where intervals held the truth less often than chance explains, ``"▲"`` where more often, else
    empty. By chance alone, one of twenty groups has one.
    """
    level = f"{100 * coverage:g}"
    columns = (table[name].tolist() for name in ("group", "rows", f"coverage_{level}", f"width_{level}"))
    lines = []
    for name, n, held, width in zip(*columns, strict=True):
        low, high = (float(share) for share in chance_band(n, coverage))
        mark = "▼" if held < low else "▲" if held > high else ""
        texts = {"group": name, "rows": f"{n:,}", "held": percent(held, 1), "width": number(width), "mark": mark}
        lines.append({**texts, "chance": f"{percent(low)} to {percent(high)}"})
    return lines
