"""Tables and sizes in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text


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
    """Return an empty table without lines; all columns but the first are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="label", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else first, no_wrap=True)
    return table
