"""What a scikit-learn model in skops' format takes to be read: checked before skops reads it."""

from __future__ import annotations

import json
import math
import threading
import zipfile
from io import BytesIO
from typing import Any

import numpy as np

from ibug.persistence._budget import Budget, json_bytes
from ibug.persistence._format import FormatProblemError

_SCHEMA = "schema.json"
_MOST_HEADER_BYTES = 10_000  # of a .npy file
#: Held while NumPy or skops reads headers: Python's parser, which they use, is not safe in several threads.
READING = threading.Lock()


def check_sizes(data: bytes, budget: Budget) -> None:
    """Raise FormatProblemError where reading would take more memory than the file's size allows.

    skops compresses nothing, so that nothing in it grows when it is read, but for sparse matrices. It reads an array
    each time that it is mentioned, and makes an array as large as its header says.
    """
    with READING:
        try:
            with zipfile.ZipFile(BytesIO(data)) as archive:
                _check_plain(archive, len(data))
                sizes = {info.filename: _size(archive, info, budget) for info in archive.infolist()}
                schema = archive.read(_SCHEMA)
        except FormatProblemError:
            raise
        except Exception as error:  # of a dozen kinds
            raise FormatProblemError(f"its scikit-learn model is damaged ({error})") from error
    budget.spend(json_bytes(schema), "its scikit-learn model")
    budget.spend(_mentioned(json.loads(schema), sizes), "its scikit-learn model")


def _check_plain(archive: zipfile.ZipFile, n_bytes: int) -> None:
    infos = archive.infolist()
    plain = all(info.compress_type == zipfile.ZIP_STORED for info in infos)
    if not plain or sum(info.file_size for info in infos) > n_bytes:
        raise FormatProblemError("its scikit-learn model claims an absurd size")


def _mentioned(schema: Any, sizes: dict[str, int]) -> int:
    """Return the bytes of all members that the schema mentions, each as often as it would be read."""
    total, seen = 0, set()
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        if not isinstance(value, dict):
            continue
        waiting += value.values()
        file, number = value.get("file"), value.get("__id__")
        if isinstance(file, str) and (file, number) not in seen:
            total += sizes.get(file, 0)
            if isinstance(number, int):
                seen.add((file, number))  # which skops reads once
        if value.get("__class__") == "void":  # of one number NumPy would make as many bytes
            raise FormatProblemError("its scikit-learn model holds raw memory")
    return total


def _size(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> int:
    """Return how many bytes a member takes when it is read."""
    with archive.open(info) as file:
        head = file.read(_MOST_HEADER_BYTES)
    if info.filename.endswith(".npz"):
        with zipfile.ZipFile(BytesIO(archive.read(info))) as inner:
            size = sum(member.file_size for member in inner.infolist())
            budget.spend(size, "its scikit-learn model")
            for member in inner.infolist():
                _size(inner, member, budget)
            return size
    if head.startswith(b"\x93NUMPY"):
        _check_array(head, info.file_size)
    return info.file_size


def _check_array(head: bytes, size: int) -> None:
    file = BytesIO(head)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, _, dtype = read(file, max_header_size=_MOST_HEADER_BYTES)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise FormatProblemError("its scikit-learn model has an array that is not as long as it tells")
