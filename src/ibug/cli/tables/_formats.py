"""The format of a table, by the ending of its name, or by its first bytes where it has no name."""

from __future__ import annotations

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
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather"}


def format_of(path: str) -> str:
    """Return the format for the ending of a name."""
    name = path.lower()
    for ending, format in _ENDINGS.items():
        if name.endswith(ending):
            return format
    raise InvalidInputError(
        f"{path}: the ending does not tell the format. Known are {', '.join(_ENDINGS)}; --format says it for an input."
    )


def format_by_content(start: bytes) -> str | None:
    """Return the format of a binary table by its first bytes; None for text."""
    return next((format for magic, format in _MAGIC.items() if start.startswith(magic)), None)
