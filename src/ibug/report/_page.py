"""The page: its parts, which are files of this package, put together with the data."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from typing import Any

from ibug.exceptions import MissingDependencyError
from ibug.report._pack import to_json

#: In the order in which the page runs them; they share one scope.
SCRIPTS = ("base.js", "charts.js", "search.js", "table.js", "width.js", "detail.js", "joint.js", "main.js")


def plotly_script() -> str:
    """Return plotly's script from its own package, or say how to install it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError(
            'ibug.report needs plotly, which cannot be imported. Install it: pip install "ibug-learn[report]".'
        ) from error
    return str(get_plotlyjs())


def page(data: dict[str, Any], title: str, plotly: str) -> str:
    """Return the whole page.

    Nothing of the data becomes markup or script: they are JSON in a script element that is no script, and the page
    writes them as text. The browser runs no script but the two whose hashes stand in the page's policy.
    """
    own = _wrapped("\n".join(_part(name) for name in SCRIPTS))
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


def _wrapped(script: str) -> str:
    return f'(() => {{\n"use strict";\n{script}\n}})();\n'


def _policy(*scripts: str) -> str:
    """Return a Content-Security-Policy: these scripts and no other, no network; plotly writes styles of its own."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _part(name: str) -> str:
    return files("ibug.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
