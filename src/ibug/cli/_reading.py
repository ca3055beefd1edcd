"""Tables to read: their format, their columns, and their rows in batches."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import typer

from ibug.cli._terminal import Session
from ibug.exceptions import InvalidInputError

STANDARD_STREAM = "-"

FORMATS = ("csv", "tsv", "parquet", "feather")

_ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".txt": "csv",
    ".txt.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
}

GZIP = b"\x1f\x8b"
_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "feather"}


def format_of(path: str) -> str:
    """Return the format for the ending of a name."""
    for ending, format in _ENDINGS.items():
        if path.lower().endswith(ending):
            return format
    raise InvalidInputError(
        f"{path}: the ending does not name a format. Known are {', '.join(_ENDINGS)}; --format says it for an input."
    )


Format = StrEnum("Format", list(FORMATS))  # type: ignore[misc]  # mypy wants the names written out


_option = partial(typer.Option, rich_help_panel="Reading")


@dataclass
class ReadOptions:
    """How an input is to be read, where its name does not show it: options of many commands; see `guarded`."""

    format: Annotated[
        Format | None, _option("--format", help="The input's format, if the ending of its name does not show it.")
    ] = None
    delimiter: Annotated[str | None, _option("--delimiter", help="What separates columns: ';' or '\\t', say.")] = None
    encoding: Annotated[str, _option("--encoding", help="Of text: latin-1, say.")] = "utf-8"
    missing: Annotated[
        list[str] | None,
        _option("--missing", help="A text that stands for a missing value, besides '', NA, NaN, null, …"),
    ] = None
    decimal: Annotated[str | None, _option("--decimal", help="The decimal mark of text: ',' or '.'.")] = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ",", "."):
            raise typer.BadParameter(f"a comma or a point is expected, not {self.decimal!r}.", param_hint="--decimal")
        if self.delimiter in ("\\t", "tab"):
            self.delimiter = "\t"
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise typer.BadParameter(f"one character is expected, not {self.delimiter!r}.", param_hint="--delimiter")

    @property
    def missing_texts(self) -> list[str]:
        """All texts that stand for a missing value."""
        return [*MISSING, *(self.missing or ())]


class InputTable(ABC):
    """A table that is read once, from its first row to its last."""

    name: str  # in messages
    columns: list[str]
    types: dict[str, Any] | None = None  # as the file stores them; None for text, where the reader chooses them
    verbatim: frozenset[str] = frozenset()  # columns that are kept letter by letter: "NA" is not a missing value there
    values: frozenset[str] = frozenset()  # categories of the model: "None" is not a missing value if it is one
    size: float | None = None  # the position at the end, in rows or bytes; None where it is not known
    notes: tuple[str, ...] = ()  # what was found out about the file's form, for the user

    @property
    @abstractmethod
    def position(self) -> float:
        """How far it has been read, in the unit of `size`."""

    @abstractmethod
    def batches(self, types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield record batches of these columns, in sizes of the file's own; text is read as these types."""

    @abstractmethod
    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
        """Return some columns of all rows; in text, types that are not given are inferred from all rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def where(self, row: int) -> str:
        """Return the place of a row, counted from 0, in words."""
        return f"row {row}"

    def chunks(self, types: Mapping[str, Any], n_rows: int) -> Iterator[Any]:
        """Yield tables of exactly `n_rows` rows; the last one may have fewer."""
        waiting: list[Any] = []
        count = 0
        for batch in self.batches(types):
            waiting.append(batch)
            count += batch.num_rows
            while count >= n_rows:
                joined = pa.Table.from_batches(waiting)
                yield joined.slice(0, n_rows)
                count -= n_rows
                waiting = joined.slice(n_rows).to_batches() if count else []
        if count:
            yield pa.Table.from_batches(waiting)


def _check_unique(columns: Sequence[str], file: str) -> None:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{file} has several columns with the same name: {', '.join(map(repr, twice))}.")


def damaged(name: str, error: Exception) -> InvalidInputError:
    """Return the error for a file that its library cannot read."""
    return InvalidInputError(f"{name} cannot be read: {error}. It may be damaged, or only partly copied.")


class TypedTable(InputTable):
    """A table that stores the types of its columns: a Parquet file, or a Feather file, which has Arrow's IPC format."""

    def __init__(self, name: str, source: Any, format: str) -> None:
        self.name = name
        self._source = source
        is_parquet = format == "parquet"
        try:
            self._file = pyarrow.parquet.ParquetFile(source) if is_parquet else pyarrow.ipc.open_file(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(name, error) from error
        schema = self._file.schema_arrow if is_parquet else self._file.schema
        self.size = self._file.metadata.num_rows if is_parquet else None
        self.columns = list(schema.names)
        self.types = {field.name: field.type for field in schema}
        self._rows = 0
        _check_unique(self.columns, name)

    @property
    def position(self) -> float:
        return self._rows

    def close(self) -> None:
        self._source.close()

    def _stored_batches(self, columns: list[str]) -> Iterator[Any]:
        if isinstance(self._file, pyarrow.parquet.ParquetFile):
            return iter(self._file.iter_batches(batch_size=2**14, columns=columns))
        return (self._file.get_batch(i) for i in range(self._file.num_record_batches))

    def batches(self, types: Mapping[str, Any]) -> Iterator[Any]:
        try:
            for batch in self._stored_batches(list(types)):
                self._rows += batch.num_rows
                yield batch.select(list(types))
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(self.name, error) from error

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
        schema = pa.schema([(column, (self.types or {})[column]) for column in columns])
        return pa.Table.from_batches(self.batches(dict.fromkeys(columns)), schema)


_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_ROWS = 20
_WITH_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+([eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


class TextForm(NamedTuple):
    """How a table is written, and notes about it for the user."""

    delimiter: str
    decimal: str
    notes: tuple[str, ...] = ()


def form_of(header: str, sample: bytes, delimiter: str | None, decimal: str | None) -> TextForm:
    """Return how a table is written."""
    lines = _whole_lines(sample)
    notes = []
    if delimiter is None:
        delimiter = _delimiter(header, lines)
        if delimiter != ",":
            notes.append(f"columns are separated by {_DELIMITERS[delimiter]}s.")
    if decimal is None:
        example = None if delimiter == "," else _decimal_comma(lines, delimiter)
        decimal = "." if example is None else ","
        if example is not None:
            notes.append(f"commas are taken as decimal marks ({example}, say); --decimal . says otherwise.")
    return TextForm(delimiter, decimal, tuple(notes))


def _whole_lines(sample: bytes) -> list[str]:
    """Return the first rows that are there in full."""
    text = sample.decode("utf-8", errors="replace")
    lines = text.splitlines()
    if not text.endswith(("\n", "\r")):
        lines = lines[:-1] if len(lines) > 1 else lines
    return [line for line in lines if line.strip()][:_ROWS]


def _delimiter(header: str, lines: list[str]) -> str:
    """Return what divides the header and all rows into the same number of columns, more than one; the comma if any."""
    width = {d: len(_cells(header, d)) for d in _DELIMITERS}
    fitting = [d for d in _DELIMITERS if width[d] > 1 and all(len(_cells(line, d)) == width[d] for line in lines)]
    if not fitting or (fitting[0] == "," and all(width[d] <= width[","] for d in fitting)):
        return ","
    most = max(width[d] for d in fitting)
    widest = [d for d in fitting if width[d] == most]
    return widest[0] if len(widest) == 1 else ","


def _decimal_comma(lines: list[str], delimiter: str) -> str | None:
    """Return a number with a decimal comma, if there are such numbers, and none with a decimal point."""
    cells = [cell.strip() for line in lines for cell in _cells(line, delimiter)]
    found = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    return found[0] if found and not any(_WITH_POINT.fullmatch(cell) for cell in cells) else None


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


#: The texts that mean a missing value, as in pandas.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_BLOCK = 2**22
_LONGEST_HEADER = 2**24
_SAMPLE = 2**16  # bytes, by which the form of the file is recognized
_LOOK_UP = 0.1  # seconds


class TextTable(InputTable):
    """A table of text. The header is read at once, rows are read on demand."""

    def __init__(
        self, name: str, stream: Any, zipped: bool, delimiter: str | None, options: ReadOptions, path: str | None
    ) -> None:
        self.name = name
        self._raw = stream
        self._options = options
        self._path = path
        self._zipped = zipped
        self.size = os.path.getsize(path) if path is not None else None
        self._stream = _as_utf8(stream, zipped, options.encoding, name)
        self._bad_row: Any = None
        header, self._header_lines = self._header()
        form = form_of(header, self._stream.peek(_SAMPLE)[:_SAMPLE], delimiter, options.decimal)
        self._delimiter, self._decimal = form.delimiter, form.decimal
        self.notes = tuple(f"{name}: {note}" for note in form.notes)
        self.columns = self._names(header)
        self._read_ahead = False
        self._given = 0  # blocks

    @property
    def position(self) -> float:
        if self.size is None:
            return 0.0
        # Arrow reads far ahead of what it returns, so that returned blocks count; zipped text has no known length.
        return float(self._raw.tell()) if self._zipped else min(self.size, float(self._given * _BLOCK))

    def close(self) -> None:
        # Arrow reads ahead in its own thread: a pipe that it waits for cannot be closed, and ends with the process.
        if not self._read_ahead:
            self._raw.close()

    def batches(self, types: Mapping[str, Any]) -> Iterator[Any]:
        settings = self._settings(list(types), types)
        with self._explained():
            self._read_ahead = self._path is None
            try:
                reader = iter(self._wait_for(lambda: pyarrow.csv.open_csv(self._stream, **settings)))
            except pa.ArrowInvalid as error:
                if "Empty CSV file" not in str(error):
                    raise
                reader = iter(())  # a header without rows
            while (batch := self._wait_for(lambda: next(reader, None))) is not None:
                yield self._with_missing(batch)
                self._given += 1
            self._read_ahead = False

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
        settings = self._settings(columns, types)
        with self._explained():
            self._read_ahead = self._path is None
            data = self._wait_for(lambda: pyarrow.csv.read_csv(self._stream, **settings))
            self._read_ahead = False
            return self._with_missing(data)

    def _wait_for(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call of Arrow's.

        Rows of a pipe may come late or never, and inside Arrow the main thread would not notice Ctrl-C. So another
        thread waits there, and this one looks up now and then: a signal that arrives just before it begins to wait
        does not wake it.
        """
        if self._path is not None:
            return call()
        outcome: futures.Future[Any] = futures.Future()

        def wait() -> None:
            try:
                outcome.set_result(call())
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=wait, daemon=True).start()
        while not futures.wait([outcome], timeout=_LOOK_UP).done:
            pass
        return outcome.result()

    def where(self, row: int) -> str:
        line = self._line(row + 1)
        return f"row {row}" if line is None else f"row {row} (line {line})"

    def _header(self) -> tuple[str, int]:
        """Return the line with the names of the columns, and the number of lines; a quoted name may span several."""
        text, lines = "", 0
        while not text.strip() or text.count('"') % 2:
            with self._explained():
                line = self._stream.readline()
            lines += 1
            if not line or len(text) > _LONGEST_HEADER:
                raise InvalidInputError(f"{self.name} has no line with the names of the columns.")
            try:
                text = (text if text.strip() else "") + line.decode("utf-8-sig" if lines == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise self._bad_encoding(f"line {lines}") from error
        return text, lines

    def _names(self, text: str) -> list[str]:
        names = next(csv.reader(io.StringIO(text), delimiter=self._delimiter))
        _check_unique(names, self.name)
        others = [delimiter for delimiter in _DELIMITERS if delimiter != self._delimiter and delimiter in text]
        if len(names) == 1 and others:
            raise InvalidInputError(
                f"{self.name} seems to have a single column, {names[0]!r}: if columns are separated by {others[0]!r}, "
                f"say --delimiter {others[0]!r}."
            )
        return names

    def _settings(self, columns: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "read_options": pyarrow.csv.ReadOptions(
                # With a single thread errors have the row.
                column_names=self.columns, use_threads=False, block_size=_BLOCK
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._keep_bad_row
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types={name: kind for name, kind in types.items() if kind is not None},
                include_columns=list(columns),
                null_values=self._options.missing_texts,
                decimal_point=self._decimal,
                strings_can_be_null=False,  # see _with_missing
            ),
        }  # fmt: skip

    def _with_missing(self, data: Any) -> Any:
        """Replace the texts that mean a missing value by null. Arrow would do so in columns of ids as well."""
        given = self._options.missing or ()
        missing = pa.array(
            [text for text in self._options.missing_texts if not text or text in given or text not in self.values]
        )
        for i, field in enumerate(data.schema):
            if pa.types.is_string(field.type) and field.name not in self.verbatim:
                column = data.column(i)
                gone = pc.is_in(column, value_set=missing)
                data = data.set_column(i, field.name, pc.if_else(gone, pa.scalar(None, pa.string()), column))
        return data

    def _keep_bad_row(self, row: Any) -> str:
        self._bad_row = row
        return "error"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of pyarrow into ours."""
        try:
            yield
        except pa.ArrowInvalid as error:
            raise self._explain(error) from error
        except (EOFError, gzip.BadGzipFile) as error:
            raise damaged(self.name, error) from error
        except UnicodeError as error:
            encoding = getattr(error, "encoding", "such")
            raise InvalidInputError(f"{self.name}: this is not {encoding} text: {error}.") from error

    def _explain(self, error: Exception) -> InvalidInputError:
        """Return an error that names the line and the column."""
        message = str(error)
        if "Empty CSV file" in message:
            return InvalidInputError(f"{self.name} has a header, but no rows.")
        if self._bad_row is not None:
            bad = self._bad_row
            return InvalidInputError(
                f"{self.name}, {self.where(bad.number - 1)}: the header has {bad.expected_columns} columns, this row "
                f"{bad.actual_columns}: {_short(bad.text)!r}. Correct the row; a "
                f"{_DELIMITERS.get(self._delimiter, repr(self._delimiter))} inside a value must stand in double quotes."
            )
        found = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\S+): (.*)", message)
        if found is None:
            return damaged(self.name, error)
        column, row = self.columns[int(found[1])], found[2]
        where = self.where(int(row) - 1) if row else "some row"
        if "UTF8" in found[4]:
            return self._bad_encoding(f"{where}, column {column!r}")
        value = re.sub(r"^invalid value ", "", found[4])
        expected = {"double": "a number", "bool": "true or false"}.get(found[3], found[3])
        with_comma = "," in value and self._decimal != ","
        hint = " If commas are decimal marks, say --decimal ," if with_comma else ""
        return InvalidInputError(
            f"{self.name}, {where}: column {column!r} must be {expected}, but has {_short(value)}. Correct the value; "
            f"if it stands for a missing one, name it by --missing.{hint}"
        )

    def _bad_encoding(self, where: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self.name}, {where}: this is not {self._options.encoding} text. Name its encoding: --encoding "
            "latin-1 or --encoding cp1252, for example."
        )

    def _line(self, row: int) -> int | None:
        """Return the line in which a row begins, both counted from 1; None where the input cannot be read twice."""
        if self._path is None:
            return None
        rows = 0
        inside = False
        with open(self._path, "rb") as raw, _as_utf8(raw, self._zipped, self._options.encoding, self.name) as stream:
            for number, line in enumerate(stream, 1):
                if not inside and number > self._header_lines and line.strip(b"\r\n"):
                    rows += 1
                    if rows == row:
                        return number
                inside ^= number > self._header_lines and line.count(b'"') % 2 == 1
        return None


def _as_utf8(stream: Any, zipped: bool, encoding: str, name: str) -> Any:
    if zipped:
        stream = gzip.GzipFile(fileobj=stream)
    try:
        plain = codecs.lookup(encoding).name in ("utf-8", "ascii")
    except LookupError:
        raise InvalidInputError(f"--encoding {encoding}: Python knows no encoding of this name.") from None
    if not plain:
        stream = pa.transcoding_input_stream(pa.PythonFile(stream, mode="r"), encoding, "utf-8")
    return io.BufferedReader(stream, 2**20)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def open_table(path: str, options: ReadOptions, session: Session) -> InputTable:
    """Open a table and read the names of its columns; it is closed at the end of the command."""
    name = "standard input" if path == STANDARD_STREAM else path
    stream = _open(path, name)
    try:
        table = _table_of(stream, path, name, options)
    except BaseException:
        stream.close()
        raise
    session.resources.callback(table.close)
    for note in table.notes:
        session.note(note)
    return table


def _table_of(stream: Any, path: str, name: str, options: ReadOptions) -> InputTable:
    start = stream.peek(8)[:8]
    if not start:
        raise InvalidInputError(f"{name} is empty: a line with the names of the columns is expected, then rows.")
    binary = next((format for first, format in _FIRST_BYTES.items() if start.startswith(first)), None)
    named = options.format or (None if path == STANDARD_STREAM else format_of(path))
    if named in ("parquet", "feather") and binary != named:
        found = "text" if binary is None else binary
        raise InvalidInputError(f"{name} is not a {named} file; it looks like {found}. Name its format by --format.")
    if binary is not None:
        if named in ("csv", "tsv"):
            raise InvalidInputError(f"{name} is a {binary} file, not {named}: rename it, or say --format {binary}.")
        with stream:
            source = pa.BufferReader(stream.read()) if path == STANDARD_STREAM else pa.memory_map(path)
        return TypedTable(name, source, binary)
    delimiter = options.delimiter or ("\t" if named == "tsv" else None)
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
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    close = get_close_matches(path.name, names, 1, cutoff=0.7)
    return f"; did you mean {path.with_name(close[0])}?" if close else "."
