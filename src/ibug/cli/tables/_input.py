"""A table to read, from a file or from standard input: CSV (also .gz), TSV, Parquet or Feather."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ibug.cli.screen import Session
from ibug.cli.tables._arrow import FeatherTable, ParquetTable
from ibug.cli.tables._csv import TextTable
from ibug.cli.tables._formats import GZIP, STANDARD_STREAM, format_by_content, format_of
from ibug.cli.tables._table import ReadOptions, Table
from ibug.exceptions import InvalidInputError


def open_table(path: str, options: ReadOptions, session: Session) -> Table:
    """Open a table and read the names of its columns; it is closed at the end of the command."""
    table = _opened(path, options)
    session.resources.callback(table.close)
    for note in table.notes:
        session.note(note)
    return table


def _opened(path: str, options: ReadOptions) -> Table:
    name = "standard input" if path == STANDARD_STREAM else path
    stream = _open(path, name)
    try:
        return _table_of(stream, path, name, options)
    except BaseException:
        stream.close()
        raise


def _table_of(stream: Any, path: str, name: str, options: ReadOptions) -> Table:
    start = stream.peek(8)[:8]
    if not start:
        raise InvalidInputError(f"{name} is empty: a line with the names of the columns is expected, then rows.")
    binary = format_by_content(start)
    told = options.format or (None if path == STANDARD_STREAM else format_of(path))
    if told in ("parquet", "feather") and binary != told:
        found = "text" if binary is None else binary
        raise InvalidInputError(f"{name} is no {told} file, it looks like {found}: --format says what it is.")
    if binary is not None:
        if told in ("csv", "tsv"):
            raise InvalidInputError(f"{name} is a {binary} file, not {told}: rename it, or say --format {binary}.")
        with stream:
            source = pa.BufferReader(stream.read()) if path == STANDARD_STREAM else pa.memory_map(path)
        return ParquetTable(name, source) if binary == "parquet" else FeatherTable(name, source)
    delimiter = options.delimiter or ("\t" if told == "tsv" else None)
    again = None if path == STANDARD_STREAM else path
    return TextTable(name, stream, start.startswith(GZIP), delimiter, options, again)


def _open(path: str, name: str) -> BinaryIO:
    if path == STANDARD_STREAM:
        # Not sys.stdin.buffer: a thread that is blocked in it would keep the process from ending.
        return os.fdopen(os.dup(0), "rb")
    if Path(path).is_dir():
        raise InvalidInputError(f"{name} is a folder: name a file in it.")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise InvalidInputError(f"{name} does not exist{_similar(Path(path))}") from None


def _similar(path: Path) -> str:
    try:
        close = get_close_matches(path.name, os.listdir(path.parent), 1, cutoff=0.7)
    except OSError:
        return "."
    return f"; did you mean {path.with_name(close[0])}?" if close else "."
