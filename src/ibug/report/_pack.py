"""Arrays as short text, and JSON that cannot end the script element it stands in."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.describe import json_values

#: What is escaped inside a script element: `<`, `>` and `&` could end it or begin a comment; U+2028 and U+2029 end
#: lines in old scripts.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_INTEGERS = ("uint8", "int16", "uint16", "int32")
_EXACT_IN_FLOAT32 = 2**24


def pack(values: NDArray[Any], dtype: str | None = None) -> dict[str, Any]:
    """Return an array as base64 with its type and shape, for the page's ``unpack``; bytes are little-endian."""
    name = dtype or shortest(values)
    data = np.ascontiguousarray(values, np.dtype(name).newbyteorder("<"))
    return {"dtype": name, "shape": list(values.shape), "data": base64.b64encode(data.tobytes()).decode("ascii")}


def shortest(values: NDArray[Any]) -> str:
    """Return the name of the shortest type that shows the same numbers."""
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    whole = bool(np.all(finite == np.floor(finite)))
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if whole and finite.size == numbers.size:
        for name in _INTEGERS:
            if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
                return name
        return "float64"
    largest = max(abs(low), abs(high))
    smallest = np.abs(finite[finite != 0]).min(initial=1.0)
    fits = largest < (_EXACT_IN_FLOAT32 if whole else 1e37) and smallest > 1e-37
    return "float32" if fits else "float64"


def to_json(data: Any) -> str:
    """Return JSON for a script element; NaN and infinity become null."""
    return json.dumps(json_values(data), ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)
