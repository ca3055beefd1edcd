"""The header of a .npy file, read strictly, and without Python's parser: that one is not safe in several threads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# Python's parser counts how deep it is once for all threads, and complains where two of them use it at a time
# (https://github.com/python/cpython/issues/106905); NumPy reads headers with it. What NumPy writes is this:
_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufU][0-9]{1,9})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}, )*[0-9]{1,18},?|)\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"
_MOST_BYTES = 10_000


def read_header(buffer: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, type, and length of the header of a .npy file.

    Only what ibug writes is known: format 1.0, and numbers, truth values and text.
    """
    start = bytes(buffer[: len(_MAGIC) + 2])
    if start[: len(_MAGIC)] != _MAGIC or len(start) != len(_MAGIC) + 2:
        raise ValueError("it does not begin as a .npy file of version 1.0 does")
    n_bytes = len(start) + int.from_bytes(start[len(_MAGIC) :], "little")
    text = bytes(buffer[len(start) : n_bytes])
    found = _HEADER.fullmatch(text) if n_bytes <= min(_MOST_BYTES, len(buffer)) else None
    if found is None:
        raise ValueError(f"its header is none that ibug writes: {text[:100]!r}")
    descr, fortran, shape = found.groups()
    sizes = tuple(int(size) for size in shape.replace(b",", b" ").split())
    if len(sizes) == 1 and not shape.endswith(b","):
        raise ValueError("its shape is no tuple")
    return sizes, fortran == b"True", np.dtype(descr.decode("ascii")), n_bytes
