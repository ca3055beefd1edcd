"""Options that several commands have, and the datasets that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common.paths import data_folder
from benchmarks.common.progress import say


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help begins with the documentation of a module, as it is written."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_datasets(parser: argparse.ArgumentParser, max_rows: int | None) -> None:
    """Add the options that choose datasets; `max_rows` is the default of their largest number of rows."""
    parser.add_argument("--data", type=Path, help="folder with Parquet files; default: IBUG_DATA, else bundled data")
    parser.add_argument("--datasets", help="names, with commas; default: all")
    parser.add_argument("--max-rows", type=int, default=max_rows, help="larger datasets are sampled")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a document."""
    parser.add_argument("--report", type=Path, metavar="FILE", help="a document into which the tables are written")


def chosen_names(options: argparse.Namespace) -> tuple[Path | None, list[str]]:
    """Return the folder of the datasets and the names that were asked for."""
    from benchmarks.common import data  # pandas, which not every command needs

    folder = data_folder(options.data)
    return folder, options.datasets.split(",") if options.datasets else data.names(folder)


def each_dataset(options: argparse.Namespace) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, features and targets of the datasets that were asked for, and tell which one is next."""
    from benchmarks.common import data

    folder, chosen = chosen_names(options)
    for number, name in enumerate(chosen, 1):
        say(f"{name} ({number} of {len(chosen)}) …")
        yield name, *data.load(name, folder, options.max_rows)
