"""Tables of a benchmark, written into a document between two marks: no figure is typed by hand."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

END = "<!-- to here -->"


def begin(script: str) -> str:
    """Return the line that a document has before the tables of a script."""
    return f"<!-- benchmarks/{script} writes from here -->"


def write(path: Path, script: str, text: str, *, fenced: bool = True) -> None:
    """Put the tables of a script into a document, in place of what is between its two marks; as code, if `fenced`."""
    write_parts(path, {begin(script): f"```\n{text}\n```" if fenced else text})


def write_parts(path: Path, parts: dict[str, str]) -> None:
    """Put each part after its mark, up to the next end; a document that lacks a mark stays as it is."""
    text = path.read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = _placed(text, mark, part.strip("\n"), path)
    path.write_text(text, encoding="utf-8")


def _placed(text: str, mark: str, part: str, path: Path) -> str:
    before, found, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not found or not end or mark in rest:
        raise SystemExit(f"{path} must have the line {mark!r} once, and {END!r} after it.")
    return f"{before}{mark}\n\n{part}\n\n{END}{after}"


def command() -> str:
    """Return the command that is running, for the document: without the folders of this machine."""
    return "$ python " + shlex.join(Path(a).name if Path(a).is_absolute() else a for a in sys.argv)
