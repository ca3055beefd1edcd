"""Tables from files and to files: CSV, TSV, Parquet and Feather, and what their columns hold."""

from ibug.cli.tables._formats import FORMATS, STANDARD_STREAM, format_of
from ibug.cli.tables._input import open_table
from ibug.cli.tables._output import atomic, check_output, writing
from ibug.cli.tables._table import ReadOptions, Table
from ibug.cli.tables._values import as_days, as_numbers, as_texts, decoded, kind_of_type

__all__ = [
    "FORMATS",
    "STANDARD_STREAM",
    "ReadOptions",
    "Table",
    "as_days",
    "as_numbers",
    "as_texts",
    "atomic",
    "check_output",
    "decoded",
    "format_of",
    "kind_of_type",
    "open_table",
    "writing",
]
