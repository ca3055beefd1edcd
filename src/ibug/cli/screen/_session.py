"""The output of one call of the command: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.theme import Theme

from ibug import _progress
from ibug.describe import plain

_THEME = Theme(
    {"label": "dim", "note": "yellow", "error": "bold red", "good": "green", "value": "bold", "bar.complete": "cyan"}
)


class Session:
    """The two streams of one call, and how much is printed to them.

    Parameters
    ----------
    json
        Print the result as one JSON object instead of text.
    quiet
        Print only results and errors.
    verbose
        Print more, also where standard error is no terminal.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        self.json = json
        self.verbose = verbose
        self.notes: list[str] = []
        self.resources = ExitStack()  # closed at the end of the command
        self.out = Console(theme=_THEME, highlight=False, soft_wrap=not sys.stdout.isatty())
        self.err = Console(theme=_THEME, highlight=False, stderr=True, soft_wrap=not sys.stderr.isatty())
        self._tells = not quiet
        self._chats = not quiet and (verbose or self.err.is_terminal)

    def note(self, message: str) -> None:
        """Print what the user ought to know but is no error; the JSON report has it as well."""
        self.notes.append(message)
        if self._tells and not self.json:
            self.err.print(f"[note]note:[/] {escape(message)}")

    def say(self, message: str) -> None:
        """Print a remark, in markup, in a terminal or with --verbose."""
        if self._chats and not self.json:
            self.err.print(message)

    def show(self, *renderables: Any) -> None:
        """Print a result for people."""
        for renderable in renderables:
            self.out.print(renderable)

    def report(self, result: dict[str, Any], *, to_stderr: bool = False) -> None:
        """Print a result for machines: one line of JSON, with the notes; NaN and infinity become null."""
        text = json.dumps(plain({**result, "notes": self.notes}), ensure_ascii=False, allow_nan=False)
        stream = sys.stderr if to_stderr else sys.stdout
        stream.write(text + "\n")
        stream.flush()

    @contextmanager
    def progress(self, title: str, total: float | None) -> Iterator[Any]:
        """Show a bar if standard error is a terminal; yields a function that takes the amount done so far."""
        if not self._chats or not self.err.is_terminal:
            yield lambda done: None
            return
        with Progress(
            SpinnerColumn(finished_text="[good]✓[/]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=self.err,
            transient=True,
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.update(task, completed=done)

    @contextmanager
    def status(self, title: str) -> Iterator[None]:
        """Show one more stage, of unknown length, among those of `stages`."""
        with _progress.Progress(title, 1, enabled=False):
            yield

    @contextmanager
    def stages(self) -> Iterator[None]:
        """Show the library's own stages (training, indexing, searching) as bars in a terminal."""
        if not self._chats or not self.err.is_terminal:
            yield
            return
        with (
            Progress(
                SpinnerColumn(finished_text="[good]✓[/]"),
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
                console=self.err,
                transient=not self.verbose,
            ) as bars,
            _progress.shown_by(_Bars(bars)),
        ):
            yield


class _Bars:
    """Draws the library's stages with rich; a stage that is repeated, for each clone say, keeps its line."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._known: dict[str, Any] = {}

    def begin(self, title: str, total: int) -> Any:
        if title in self._known:
            self._bars.reset(self._known[title], total=total)
        else:
            self._known[title] = self._bars.add_task(title, total=total)
        return self._known[title]

    def advance(self, stage: Any, done: int) -> None:
        self._bars.update(stage, completed=done)

    def end(self, stage: Any, finished: bool) -> None:
        self._bars.update(stage, completed=self._bars.tasks[stage].total if finished else None)
