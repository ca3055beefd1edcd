"""Tables and sizes in a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ibug import _progress
from ibug.describe import json_values

_THEME = Theme(
    {"label": "dim", "note": "yellow", "error": "bold red", "good": "green", "value": "bold", "bar.complete": "cyan"}
)
# Terminals obey control characters, those of direction turn text around, and halves of surrogate pairs, which names of
# files may have, cannot be written.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text as a terminal may have it: control characters as Python writes them.

    Examples
    --------
    >>> visible("load [kW]\x1b[31m")
    'load [kW]\\x1b[31m'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return JSON whose strings have no characters that a terminal obeys; it means the same."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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


def facts_table(facts: dict[str, str]) -> Table:
    """Return names and values, one pair a line."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="label", no_wrap=True)
    table.add_column(overflow="fold")
    for pair in facts.items():
        table.add_row(*pair)
    return table


def plain_table(*columns: str, first: JustifyMethod = "left") -> Table:
    """Return an empty table without lines; all columns but the first are numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="label", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else first, no_wrap=True)
    return table


_option = partial(typer.Option, rich_help_panel="Messages")


@dataclass
class Session:
    """The two streams of one call: results on standard output, everything else on standard error.

    Its fields are options of every command; see `guarded`.
    """

    json: Annotated[bool, _option("--json", help="Report in JSON, for machines.")] = False
    quiet: Annotated[bool, _option("--quiet", "-q", help="Results and errors only.")] = False
    verbose: Annotated[bool, _option("--verbose", "-v", help="Say more.")] = False

    def __post_init__(self) -> None:
        self.notes: list[str] = []
        self.resources = ExitStack()  # closed at the end of the command
        self.out = PlainConsole(soft_wrap=not sys.stdout.isatty())
        self.err = PlainConsole(stderr=True, soft_wrap=not sys.stderr.isatty())
        self._chats = not self.quiet and (self.verbose or self.err.is_terminal)

    def note(self, message: str) -> None:
        """Print what the user ought to know but is not an error; the JSON report has it as well."""
        self.notes.append(message)
        if not self.quiet and not self.json:
            self._labelled("note", message)

    def error(self, message: str) -> None:
        """Print what went wrong."""
        self._labelled("error", message)

    def _labelled(self, label: str, message: str) -> None:
        """Print a message behind its label; further lines are indented, so that none of them looks like another one."""
        first, *more = message.split("\n")
        self.err.print(words((f"{label}:", label), f" {first}"))
        for line in more:
            self.err.print(words(f"  {line}"))

    def say(self, message: Any) -> None:
        """Print a remark in a terminal or with --verbose."""
        if self._chats and not self.json:
            self.err.print(message)

    def show(self, renderable: Any) -> None:
        """Print a result for people."""
        self.out.print(renderable)

    def report(self, result: dict[str, Any], *, to_stderr: bool = False) -> None:
        """Print a result for machines: one line of JSON, with the notes; NaN and infinity become null."""
        text = json.dumps(json_values({**result, "notes": self.notes}), ensure_ascii=False, allow_nan=False)
        stream = sys.stderr if to_stderr else sys.stdout
        stream.write(visible_json(text) + "\n")
        stream.flush()

    @contextmanager
    def progress(self, title: str, total: float | None) -> Iterator[Any]:
        """Show a bar if standard error is a terminal; yields a function that takes the amount done so far."""
        if not self._chats or not self.err.is_terminal:
            yield lambda done: None
            return
        with self._bars(TextColumn("{task.percentage:>3.0f} %"), transient=True) as bar:
            task = bar.add_task(visible(title), total=total)
            yield lambda done: bar.update(task, completed=done)

    @contextmanager
    def stages(self) -> Iterator[None]:
        """Show the library's own stages (training, indexing, searching) as bars in a terminal."""
        if not self._chats or not self.err.is_terminal:
            yield
            return
        with self._bars(MofNCompleteColumn(), transient=not self.verbose) as bars, _progress.shown_by(_Bars(bars)):
            yield

    def _bars(self, amount: ProgressColumn, *, transient: bool) -> Progress:
        return Progress(
            SpinnerColumn(finished_text="[good]✓[/]"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            amount,
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=self.err,
            transient=transient,
        )


class _Bars:
    """Draws the library's stages with rich; a stage that is repeated, for each clone say, keeps its line."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._known: dict[str, Any] = {}

    def begin(self, title: str, total: int) -> Any:
        if title in self._known:
            self._bars.reset(self._known[title], total=total)
        else:
            self._known[title] = self._bars.add_task(visible(title), total=total)
        return self._known[title]

    def advance(self, stage: Any, done: int) -> None:
        self._bars.update(stage, completed=done)

    def end(self, stage: Any, finished: bool) -> None:
        self._bars.update(stage, completed=self._bars.tasks[stage].total if finished else None)
