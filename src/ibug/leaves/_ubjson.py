"""Universal Binary JSON, the format of XGBoost's model files: objects become dicts, typed arrays NumPy arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

# By the marker of the type: the format of a number, all of them with the most significant byte first.
_NUMBERS = {b"i": "b", b"U": "B", b"I": "h", b"l": "i", b"L": "q", b"d": "f", b"D": "d"}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}


def parse(content: bytes) -> Any:
    """Return what the bytes describe."""
    try:
        value, _ = _value(content, 1, content[:1])
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError("these bytes are no Universal Binary JSON") from error
    return value


def _value(content: bytes, at: int, marker: bytes) -> tuple[Any, int]:
    """Return the value that begins at a place, behind its marker, and the place behind it."""
    if marker == b"{":
        return _object(content, at)
    if marker == b"[":
        return _array(content, at)
    if marker == b"S":
        return _text(content, at)
    if marker in _CONSTANTS:
        return _CONSTANTS[marker], at
    kind = _NUMBERS[marker]
    (number,) = struct.unpack_from(f">{kind}", content, at)
    return number, at + struct.calcsize(kind)


def _object(content: bytes, at: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    while content[at : at + 1] != b"}":
        name, at = _text(content, at)
        members[name], at = _value(content, at + 1, content[at : at + 1])
    return members, at + 1


def _array(content: bytes, at: int) -> tuple[Any, int]:
    kind = None
    if content[at : at + 1] == b"$":
        kind, at = np.dtype(f">{_NUMBERS[content[at + 1 : at + 2]]}"), at + 2
    if content[at : at + 1] == b"#":
        length, at = _value(content, at + 2, content[at + 1 : at + 2])
        if kind is not None:
            end = at + length * kind.itemsize
            return np.frombuffer(content[at:end], kind, length), end
        values = []
        for _ in range(length):
            value, at = _value(content, at + 1, content[at : at + 1])
            values.append(value)
        return values, at
    values = []
    while content[at : at + 1] != b"]":
        value, at = _value(content, at + 1, content[at : at + 1])
        values.append(value)
    return values, at + 1


def _text(content: bytes, at: int) -> tuple[str, int]:
    length, at = _value(content, at + 1, content[at : at + 1])
    if at + length > len(content):
        raise IndexError
    return content[at : at + length].decode(), at + length
