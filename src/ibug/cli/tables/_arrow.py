"""Tables that store the types of their columns: Parquet and Feather."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from ibug.cli.tables._table import Table, damaged
from ibug.exceptions import InvalidInputError


class TypedTable(Table):
    """A table that stores the types of its columns."""

    def __init__(self, name: str, source: Any, schema: Any) -> None:
        self.name = name
        self._source = source
        schema = schema.remove_metadata()
        self.columns = list(schema.names)
        self.types = {field.name: field.type for field in schema}
        self._rows = 0
        if len(self.types) < len(self.columns):
            twice = sorted({column for column in self.columns if self.columns.count(column) > 1})
            raise InvalidInputError(f"{name} has several columns of one name: {', '.join(twice)}.")

    @property
    def position(self) -> float:
        return self._rows

    def close(self) -> None:
        self._source.close()

    @abstractmethod
    def _raw_batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield record batches as they are stored."""

    def batches(self, types: Mapping[str, Any]) -> Iterator[Any]:
        try:
            for batch in self._raw_batches(list(types)):
                self._rows += batch.num_rows
                yield batch.select(list(types))
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(self.name, error) from error

    def read(self, columns: Sequence[str], types: Mapping[str, Any]) -> Any:
        schema = pa.schema([(column, (self.types or {})[column]) for column in columns])
        return pa.Table.from_batches(self.batches(dict.fromkeys(columns)), schema)


class ParquetTable(TypedTable):
    """A Parquet file, read by row groups."""

    def __init__(self, name: str, source: Any) -> None:
        try:
            self._file = pyarrow.parquet.ParquetFile(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(name, error) from error
        super().__init__(name, source, self._file.schema_arrow)
        self.size = self._file.metadata.num_rows

    def _raw_batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(batch_size=2**14, columns=columns)


class FeatherTable(TypedTable):
    """A Feather file (Arrow's IPC format), read batch by batch."""

    def __init__(self, name: str, source: Any) -> None:
        try:
            self._file = pyarrow.ipc.open_file(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise damaged(name, error) from error
        super().__init__(name, source, self._file.schema)
        self.size = None

    def _raw_batches(self, columns: list[str]) -> Iterator[Any]:
        for i in range(self._file.num_record_batches):
            yield self._file.get_batch(i)
