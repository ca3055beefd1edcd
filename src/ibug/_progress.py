"""Progress of long work on standard error: a bar in a terminal, one line per finished stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

_WIDTH = 30
_SECONDS_BETWEEN_UPDATES = 0.1


class StageDisplay(Protocol):
    """Something that shows stages of work in its own way; see `shown_by`."""

    def begin(self, title: str, total: int) -> Any:
        """Show a new stage of `total` steps, and return what names it."""

    def advance(self, stage: Any, done: int) -> None:
        """Show how many steps are done."""

    def end(self, stage: Any, finished: bool) -> None:
        """Show that the stage is over."""


_display: StageDisplay | None = None


@contextmanager
def shown_by(display: StageDisplay) -> Iterator[None]:
    """Let a display show every stage of work meanwhile, whether or not it was asked to be verbose."""
    global _display
    before, _display = _display, display
    try:
        yield
    finally:
        _display = before


class Progress:
    """A progress bar for one stage of work, silent unless asked for.

    Use it as a context manager, and call :meth:`advance` with the number of finished steps.
    """

    def __init__(self, title: str, total: int, *, enabled: bool, stream: TextIO | None = None) -> None:
        self._title = title
        self._total = max(total, 1)
        self._enabled = enabled
        self._stream = stream or sys.stderr
        self._live = enabled and self._stream.isatty()
        self._done = 0
        self._result = ""
        self._start = self._shown = 0.0
        self._display = _display
        self._stage: Any = None

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        if self._display is not None:
            self._stage = self._display.begin(self._title, self._total)
            return self
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.end(self._stage, kind is None)
            return
        if not self._enabled:
            return
        state = "done" if kind is None else "stopped"
        line = f"[ibug] {self._title}: {state} in {time.monotonic() - self._start:.1f} s{self._result}"
        self._stream.write(("\r" + line.ljust(_WIDTH + len(self._title) + 40) if self._live else line) + "\n")
        self._stream.flush()

    def say(self, result: str) -> None:
        """Add the outcome of the stage to its last line."""
        self._result = f": {result}"

    def advance(self, steps: int) -> None:
        """Report finished steps."""
        self._done += steps
        if self._display is not None:
            self._display.advance(self._stage, self._done)
            return
        if time.monotonic() - self._shown >= _SECONDS_BETWEEN_UPDATES:
            self._draw()

    def _draw(self) -> None:
        if not self._live:
            return
        self._shown = time.monotonic()
        share = min(self._done / self._total, 1.0)
        elapsed = self._shown - self._start
        left = f"{elapsed * (1 - share) / share:.0f} s left" if share > 0 else ""
        bar = ("#" * round(share * _WIDTH)).ljust(_WIDTH, ".")
        self._stream.write(f"\r[ibug] {self._title} [{bar}] {share:4.0%} {left:12}")
        self._stream.flush()
