"""Tables of a benchmark, written into a document between two marks: no figure is typed by hand.

The logs of long runs are documents in ``benchmarks/results``. Pages of ``docs`` have excerpts of these, between marks
that say which: a block of lines that begins with a text and ends before an empty line, or all lines in which a pattern
is found. They are copied again whenever a log is written.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from benchmarks.common.paths import ROOT

END = "<!-- to here -->"
LOGS = ROOT / "benchmarks" / "results"
_EXCERPT = re.compile(
    r"(?P<mark><!-- from (?P<log>[\w./-]+): (?P<kind>block|lines) \"(?P<pattern>.*?)\" -->)\n.*?" + END, re.DOTALL
)


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
    if path.resolve().parent == LOGS:
        for page in sorted((ROOT / "docs").glob("*.md")):
            page.write_text(with_excerpts(page.read_text(encoding="utf-8")), encoding="utf-8")


def with_excerpts(text: str) -> str:
    """Return a page with its excerpts copied from the logs as they are now."""
    return _EXCERPT.sub(lambda match: f"{match['mark']}\n\n{_excerpt(match)}\n\n{END}", text)


def _excerpt(match: re.Match[str]) -> str:
    lines = [*(ROOT / match["log"]).read_text(encoding="utf-8").splitlines(), ""]
    if match["kind"] == "lines":
        found = [line for line in lines if re.search(match["pattern"], line)]
    else:
        first = next((number for number, line in enumerate(lines) if line.startswith(match["pattern"])), len(lines))
        ends = [number for number in range(first, len(lines)) if lines[number] in ("", "```")]
        found = lines[first : ends[0]] if ends else []
    if not found:
        raise SystemExit(f"{match['log']} has no {match['kind']} {match['pattern']!r} any more: correct the mark.")
    return "\n".join(found if found[0].startswith("|") else ["```", *found, "```"])


def _placed(text: str, mark: str, part: str, path: Path) -> str:
    before, found, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not found or not end or mark in rest:
        raise SystemExit(f"{path} must have the line {mark!r} once, and {END!r} after it.")
    return f"{before}{mark}\n\n{part}\n\n{END}{after}"


def command() -> str:
    """Return the command that is running, for the document: without the folders of this machine."""
    return "$ python " + shlex.join(Path(a).name if Path(a).is_absolute() else a for a in sys.argv)
