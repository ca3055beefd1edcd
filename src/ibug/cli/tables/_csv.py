"""Tables of text: CSV and TSV, plain or gzipped, in any encoding. Errors tell the line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ibug.cli.tables._table import ReadOptions, Table, damaged
from ibug.cli.tables._text_form import form_of
from ibug.exceptions import InvalidInputError

#: The texts that mean a missing value, as in pandas.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_BLOCK = 2**22
_LONGEST_HEADER = 2**24
_SAMPLE = 2**16  # bytes, from which the form of the file is told
_LOOK_UP = 0.1  # seconds


class TextTable(Table):
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
        header, self._header_lines = self._header()
        form = form_of(header, self._stream.peek(_SAMPLE)[:_SAMPLE], delimiter, options.decimal)
        self._delimiter, self._decimal = form.delimiter, form.decimal
        self.notes = tuple(f"{name}: {note}" for note in form.notes)
        self.columns = self._names(header)
        self._bad_row: Any = None
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
            line = _guarded_read(self._stream.readline, self.name)
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
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInputError(f"{self.name} has several columns of one name: {', '.join(map(repr, twice))}.")
        other = next((c for c in ",;\t|" if c != self._delimiter and c in text), None) if len(names) == 1 else None
        if other is not None:
            raise InvalidInputError(
                f"{self.name} seems to have a single column, {names[0]!r}: if columns are separated by {other!r}, say "
                f"--delimiter {_typed(other)}."
            )
        return names

    def _settings(self, columns: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "read_options": pyarrow.csv.ReadOptions(
                # With a single thread errors tell the row.
                column_names=self.columns, use_threads=False, block_size=_BLOCK
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=self._keep_bad_row
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types={name: kind for name, kind in types.items() if kind is not None},
                include_columns=list(columns),
                null_values=[*MISSING, *self._options.missing],
                decimal_point=self._decimal,
                strings_can_be_null=False,  # see _with_missing
            ),
        }  # fmt: skip

    def _with_missing(self, data: Any) -> Any:
        """Replace the texts that mean a missing value by null. Arrow would do so in columns of ids as well."""
        missing = pa.array([*(text for text in MISSING if not text or text not in self.values), *self._options.missing])
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
        except (EOFError, gzip.BadGzipFile, UnicodeError) as error:
            raise _unreadable(self.name, error) from error

    def _explain(self, error: Exception) -> InvalidInputError:
        """Return an error that names the line and the column."""
        message = str(error)
        if "Empty CSV file" in message:
            return InvalidInputError(f"{self.name} has a header, but no rows.")
        if self._bad_row is not None:
            bad = self._bad_row
            return InvalidInputError(
                f"{self.name}, {self.where(bad.number - 1)}: the header has {bad.expected_columns} columns, this row "
                f"{bad.actual_columns}: {_short(bad.text)!r}. Mend the row; a {_named(self._delimiter)} inside a value "
                "must stand in double quotes."
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
        return InvalidInputError(
            f"{self.name}, {where}: column {column!r} must be {expected}, and has {_short(value)}. Mend the value; if "
            f"it stands for a missing one, name it by --missing.{self._hint(value)}"
        )

    def _hint(self, value: str) -> str:
        if "," not in value or self._decimal == ",":
            return ""
        return " If commas are decimal marks, say --decimal ,"

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


def _guarded_read(read: Any, name: str) -> bytes:
    try:
        return bytes(read())
    except (EOFError, gzip.BadGzipFile, UnicodeError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> InvalidInputError:
    if isinstance(error, UnicodeError):
        return InvalidInputError(f"{name}: this is not {getattr(error, 'encoding', 'such')} text: {error}.")
    return damaged(name, error)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _typed(delimiter: str) -> str:
    return "'\\t'" if delimiter == "\t" else f"'{delimiter}'"


def _named(delimiter: str) -> str:
    return {",": "comma", ";": "semicolon", "\t": "tab"}.get(delimiter, repr(delimiter))
