"""The output of one call of the command: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from ibug import _progress
from ibug.cli.screen._layout import PlainConsole, visible, visible_json, words
from ibug.describe import plain


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
        self.out = PlainConsole(soft_wrap=not sys.stdout.isatty())
        self.err = PlainConsole(stderr=True, soft_wrap=not sys.stderr.isatty())
        self._tells = not quiet
        self._chats = not quiet and (verbose or self.err.is_terminal)

    def note(self, message: str) -> None:
        """Print what the user ought to know but is no error; the JSON report has it as well."""
        self.notes.append(message)
        if self._tells and not self.json:
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

    def show(self, *renderables: Any) -> None:
        """Print a result for people."""
        for renderable in renderables:
            self.out.print(renderable)

    def report(self, result: dict[str, Any], *, to_stderr: bool = False) -> None:
        """Print a result for machines: one line of JSON, with the notes; NaN and infinity become null."""
        text = json.dumps(plain({**result, "notes": self.notes}), ensure_ascii=False, allow_nan=False)
        stream = sys.stderr if to_stderr else sys.stdout
        stream.write(visible_json(text) + "\n")
        stream.flush()

    @contextmanager
    def progress(self, title: str, total: float | None) -> Iterator[Any]:
        """Show a bar if standard error is a terminal; yields a function that takes the amount done so far."""
        if not self._chats or not self.err.is_terminal:
            yield lambda done: None
            return
        with Progress(
            SpinnerColumn(finished_text="[good]✓[/]"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=self.err,
            transient=True,
        ) as bar:
            task = bar.add_task(visible(title), total=total)
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
                TextColumn("{task.description}", markup=False),
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
            self._known[title] = self._bars.add_task(visible(title), total=total)
        return self._known[title]

    def advance(self, stage: Any, done: int) -> None:
        self._bars.update(stage, completed=done)

    def end(self, stage: Any, finished: bool) -> None:
        self._bars.update(stage, completed=self._bars.tasks[stage].total if finished else None)
