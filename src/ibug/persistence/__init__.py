"""Saving and loading without pickle: one file, checked before it is believed."""

from ibug.persistence._atomic import check_replaceable, replacing
from ibug.persistence._files import (
    Store,
    checksum_of,
    inspect,
    load,
    load_regressor,
    load_with_manifest,
    read_file,
    save,
    save_regressor,
    storable,
    write_file,
)
from ibug.persistence._format import FORMAT_VERSION, FormatProblemError
from ibug.persistence._models import load_model, save_model
from ibug.persistence._parameters import encode_parameters
from ibug.persistence._session import Loading, Saving
from ibug.persistence._values import NotStored

__all__ = [
    "FORMAT_VERSION",
    "FormatProblemError",
    "Loading",
    "NotStored",
    "Saving",
    "Store",
    "check_replaceable",
    "checksum_of",
    "encode_parameters",
    "inspect",
    "load",
    "load_model",
    "load_regressor",
    "load_with_manifest",
    "read_file",
    "replacing",
    "save",
    "save_model",
    "save_regressor",
    "storable",
    "write_file",
]
