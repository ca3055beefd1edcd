"""A table to write, all or nothing: a temporary file takes the target's place when everything is written."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from ibug.cli._reading import FORMATS, STANDARD_STREAM, format_of
from ibug.exceptions import InvalidInputError


def check_output(path: str, *inputs: str | None, streams: bool = False) -> None:
    """Refuse early an output that cannot be written, or that is one of the inputs."""
    if path == STANDARD_STREAM:
        return
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"{path} is a folder: name a file in it.")
    if streams and target.exists() and not target.is_file():
        return
    from ibug.persistence import check_replaceable  # takes long to import

    check_replaceable(target)
    if not target.parent.is_dir():
        raise InvalidInputError(f"The folder {target.parent} of the output {path} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInputError(f"The folder {target.parent} of the output {path} cannot be written to.")
    for given in inputs:
        if given is not None and target.exists() and Path(given).exists() and target.samefile(given):
            raise InvalidInputError(f"{path} is an input of this command: choose another name for the output.")


@contextmanager
def atomic(path: str) -> Iterator[BinaryIO]:
    """Open a file to write that appears under its name only when all is written; an error leaves no trace of it.

    A device or a pipe (``/dev/stdout``, say) is written to as it is.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        with open(target, "wb") as stream:
            yield stream
        return
    from ibug.persistence import replacing  # takes long to import

    with replacing(target) as stream:
        yield stream


class TableWriter:
    """Writes one table after another, all of one schema; made by `writing`."""

    def __init__(self, stream: Any, format: str, resources: ExitStack) -> None:
        self._stream = stream
        self._format = format
        self._resources = resources
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Append rows."""
        if self._writer is None:
            self._writer = self._resources.enter_context(_WRITERS[self._format](self._stream, table.schema))
        self._writer.write_table(table)


@contextmanager
def writing(path: str) -> Iterator[TableWriter]:
    """Open a table to write, in the format of the name's ending; ``-`` is CSV on standard output."""
    format = "csv" if path == STANDARD_STREAM else format_of(path)
    with ExitStack() as resources:
        if path == STANDARD_STREAM:
            stream: Any = sys.stdout.buffer
        else:
            stream = resources.enter_context(atomic(path))
            if path.lower().endswith(".gz"):
                stream = resources.enter_context(gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0))
        yield TableWriter(stream, format, resources)


class _TextWriter:
    """Writes CSV with quotes only where they are needed; numbers in the shortest form that reads as the same number."""

    def __init__(self, stream: Any, schema: Any, delimiter: str) -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._special = f'["\\r\\n{delimiter}]'
        self._lines(pa.array([delimiter.join(self._quoted(pa.array(schema.names)).to_pylist())]))

    def write_table(self, table: Any) -> None:
        cells = [self._cells(column) for column in table.combine_chunks().columns]
        self._lines(pc.binary_join_element_wise(*cells, self._delimiter).combine_chunks())

    def _cells(self, column: Any) -> Any:
        text = column.cast(pa.string())
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        return pc.fill_null(self._quoted(text) if is_text else text, "")

    def _quoted(self, text: Any) -> Any:
        special = pc.match_substring_regex(text, self._special)
        if not pc.any(special).as_py():
            return text
        return pc.if_else(
            special, pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', ""), text
        )

    def _lines(self, lines: Any) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _keep_open(stream: Any) -> Any:
    # Arrow's writers close their stream, but temporary file and standard output are closed elsewhere.
    return pa.PythonFile(_Unclosed(stream), mode="w")


class _Unclosed:
    """A stream that ignores ``close``."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(data))

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.flush()


_WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    "csv": lambda stream, schema: nullcontext(_TextWriter(stream, schema, ",")),
    "tsv": lambda stream, schema: nullcontext(_TextWriter(stream, schema, "\t")),
    "parquet": lambda stream, schema: pyarrow.parquet.ParquetWriter(_keep_open(stream), schema, compression="zstd"),
    "feather": lambda stream, schema: pyarrow.ipc.new_file(
        _keep_open(stream), schema, options=pyarrow.ipc.IpcWriteOptions(compression="lz4")
    ),
}
assert set(_WRITERS) == set(FORMATS)
