"""The page: its parts, which are files of this package, put together with the data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._installed import how_to_install
from ibug.describe import json_values
from ibug.exceptions import MissingDependencyError

#: In the order in which the page runs them; they share one scope.
SCRIPTS = ("base.js", "charts.js", "search.js", "table.js", "width.js", "detail.js", "joint.js", "main.js")


def plotly_script() -> str:
    """Return plotly's script from its own package, or say how to install it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError(
            f"ibug.report needs plotly, which cannot be imported. Install it: {how_to_install('report')}."
        ) from error
    return str(get_plotlyjs())


def page(data: dict[str, Any], title: str, plotly: str) -> str:
    """Return the whole page.

    Nothing of the data becomes markup or script: they are JSON in a script element that does not run, and the page
    writes them as text. The browser runs no script but the two whose hashes stand in the page's policy.
    """
    script = "\n".join(_part(name) for name in SCRIPTS)
    own = f'(() => {{\n"use strict";\n{script}\n}})();\n'
    library = plotly.replace("\r\n", "\n").replace("</script", "<\\/script")
    # One pass over the template, so that marks inside the data are left alone.
    filled = {
        "title": html.escape(title),
        "policy": _policy(library, own),
        "style": _part("page.css"),
        "data": to_json(data),
        "library": library,
        "script": own,
    }
    pieces = _part("page.html").split("@@")
    return "".join(filled[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _policy(*scripts: str) -> str:
    """Return a Content-Security-Policy: these scripts and no other, no network; plotly writes styles of its own."""
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return files("ibug.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


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
