"""The interface of a table, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ibug.exceptions import InvalidInputError


@dataclass(frozen=True)
class ReadOptions:
    """How an input is to be read, where its name does not tell."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()  # texts that stand for a missing value, beside the usual ones
    decimal: str | None = None  # the decimal mark; None: found out from the first rows


class Table(ABC):
    """A table that is read once, from its first row to its last.

    Attributes
    ----------
    name
        Its name in messages.
    columns
        The names of its columns, in order.
    types
        The columns' types where the file stores them; None for text, where the reader chooses them.
    verbatim
        Columns of text that are kept letter by letter: "NA" is not a missing value in them.
    values
        Texts that the model has as categories: "None" is not a missing value then.
    size
        The :attr:`position` at the end, in rows or bytes; None where it is not known.
    notes
        What was found out about the file's form, to be told.
    """

    name: str
    columns: list[str]
    types: dict[str, Any] | None = None
    verbatim: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    size: float | None = None
    notes: tuple[str, ...] = ()

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


def damaged(name: str, error: Exception) -> InvalidInputError:
    """Return the error for a file that its library cannot read."""
    return InvalidInputError(f"{name} cannot be read: {error}. It may be damaged, or not wholly copied.")
