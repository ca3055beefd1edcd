"""Tables and sizes in a terminal."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console, Group, JustifyMethod
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

_THEME = Theme(
    {"label": "dim", "note": "yellow", "error": "bold red", "good": "green", "value": "bold", "bar.complete": "cyan"}
)
# Terminals obey control characters, those of direction turn text around, and halves of surrogate pairs, which names of
# files may have, cannot be written.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""Return a text as a terminal may have it: control characters as Python writes them.

    Examples
    --------
    >>> visible("load [kW]\x1b[31m")
    'load [kW]\\x1b[31m'
    """
    return _UNSEEN.sub(_code, text)


def visible_json(text: str) -> str:
    """Return JSON whose strings have no characters that a terminal obeys; it means the same."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def words(*parts: str | tuple[str, str]) -> Text:
    """Return a text of parts, some of them pairs with a style; nothing in them is markup."""
    pairs = (part if isinstance(part, tuple) else (part, "") for part in parts)
    return Text.assemble(*((visible(text), style) for text, style in pairs))


class PlainConsole(Console):
    """A console that takes every string as it is: no markup, no emoji, and `visible`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(theme=_THEME, highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string of a table, a group or a message as a text."""
        return super().render_str(visible(text), **options)


def bytes_text(n: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def done(output: str, size: float | None = None) -> Text:
    """Return the line that says that a file is written."""
    return words(("✓ ", "good"), (output, "value"), "" if size is None else (f" {bytes_text(size)}", "label"))


def facts_table(facts: dict[str, Any], title: str | None = None) -> Table:
    """Return names and values, one pair a line."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, show_header=False, padding=(0, 2, 0, 0)
    )
    table.add_column(style="label", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value if isinstance(value, (Text, Group)) else str(value))
    return table


def plain_table(*columns: str, first: JustifyMethod = "left") -> Table:
    """Return an empty table without lines; all columns but the first are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="label", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else first, no_wrap=True)
    return table
