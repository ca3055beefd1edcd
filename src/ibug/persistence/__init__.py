"""Saving and loading without pickle: one file, checked before it is trusted."""

from ibug.persistence._atomic import check_replaceable, replacing
from ibug.persistence._container import FORMAT_VERSION
from ibug.persistence._estimators import (
    assemble,
    describe_blocks,
    describe_columns,
    describe_with_model,
    load,
    load_with_manifest,
    restore_blocks,
    restore_columns,
    restore_with_model,
    save,
)
from ibug.persistence._files import checksum_of, inspect, reading, writing
from ibug.persistence._values import NotStored

__all__ = [
    "FORMAT_VERSION",
    "NotStored",
    "assemble",
    "check_replaceable",
    "checksum_of",
    "describe_blocks",
    "describe_columns",
    "describe_with_model",
    "inspect",
    "load",
    "load_with_manifest",
    "reading",
    "replacing",
    "restore_blocks",
    "restore_columns",
    "restore_with_model",
    "save",
    "writing",
]
