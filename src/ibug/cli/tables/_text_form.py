"""The form of a text table, told by its first rows: what separates columns, and the decimal mark."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

_DELIMITERS = ",;\t|"
_ROWS = 20
_WITH_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


class TextForm(NamedTuple):
    """How a table is written, and what is to be told of it."""

    delimiter: str
    decimal: str
    notes: tuple[str, ...] = ()


def form_of(header: str, sample: bytes, delimiter: str | None, decimal: str | None) -> TextForm:
    """Return how a table is written."""
    lines = _whole_lines(sample)
    notes = []
    if delimiter is None:
        delimiter = _delimiter(header, lines)
        if delimiter != ",":
            notes.append(f"columns are separated by {_shown(delimiter)}.")
    if decimal is None:
        example = None if delimiter == "," else _decimal_comma(lines, delimiter)
        decimal = "." if example is None else ","
        if example is not None:
            notes.append(f"commas are taken as decimal marks ({example}, say); --decimal . says otherwise.")
    return TextForm(delimiter, decimal, tuple(notes))


def _whole_lines(sample: bytes) -> list[str]:
    """Return the first rows that are there in full."""
    text = sample.decode("utf-8", errors="replace")
    lines = text.splitlines()
    if not text.endswith(("\n", "\r")):
        lines = lines[:-1] if len(lines) > 1 else lines
    return [line for line in lines if line.strip()][:_ROWS]


def _delimiter(header: str, lines: list[str]) -> str:
    """Return what divides the header and all rows into the same number of columns, more than one; the comma if any."""
    width = {d: _width(header, d) for d in _DELIMITERS}
    fitting = [d for d in _DELIMITERS if width[d] > 1 and all(_width(line, d) == width[d] for line in lines)]
    if not fitting or (fitting[0] == "," and all(width[d] <= width[","] for d in fitting)):
        return ","
    most = max(width[d] for d in fitting)
    widest = [d for d in fitting if width[d] == most]
    return widest[0] if len(widest) == 1 else ","


def _decimal_comma(lines: list[str], delimiter: str) -> str | None:
    """Return a number with a decimal comma, if there are such numbers, and none with a decimal point."""
    cells = [cell.strip() for line in lines for cell in _cells(line, delimiter)]
    found = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    return found[0] if found and not any(_WITH_POINT.fullmatch(cell) for cell in cells) else None


def _width(line: str, delimiter: str) -> int:
    return len(_cells(line, delimiter))


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _shown(delimiter: str) -> str:
    return {"\t": "tabs", ";": "semicolons", "|": "'|'"}[delimiter]
