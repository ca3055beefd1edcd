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
    document = path.read_text(encoding="utf-8")
    before, mark, rest = document.partition(begin(script))
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{path} has not the lines {begin(script)!r} and {END!r} after it.")
    tables = f"```\n{text}\n```" if fenced else text
    path.write_text(f"{before}{mark}\n\n{tables}\n\n{end}{after}", encoding="utf-8")


def command() -> str:
    """Return the command that is running, for the document: without the folders of this machine."""
    return "$ python " + shlex.join(Path(a).name if Path(a).is_absolute() else a for a in sys.argv)
