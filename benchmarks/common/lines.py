"""Results as JSON lines: one object a line, appended as soon as it is there, so that a stop loses none."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """Return the rows of the file; a last line that was torn by a stop is left out, and no file is no rows."""
    if not path.exists():
        return []
    rows = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if number == len(lines):  # what follows the last line's end: it was being written
                break
            raise ValueError(f"{path}, line {number} is no JSON: {line[:80]!r}. Remove the line.") from error
    return rows


class Store:
    """The file that results are appended to; one process writes at a time.

    Use it as a context manager.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a+b")
        try:
            _lock(self._file, self._path)
            self._cut_torn_line()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, rows: list[Row]) -> None:
        """Write some rows, and wait until they are on the disk."""
        text = "".join(json.dumps(_plain(row), allow_nan=False) + "\n" for row in rows)
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _cut_torn_line(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such lock on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SystemExit(f"Another run writes to {path}: wait for it, or give another file by --results.") from error


def _plain(value: Any) -> Any:
    """Return the value as JSON has it: NumPy's numbers as numbers, NaN and infinity as texts."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
