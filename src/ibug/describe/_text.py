"""Numbers, scores and groups as people read them, and results as JSON can hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def percent(share: float, digits: int | None = 0) -> str:
    """Return a share as text: 0.9 as "90 %"."""
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number as text, rounded; very large and very small ones as a power of ten, and "–" for none.

    Examples
    --------
    >>> number(1234.5678), number(0.00001234), number(None)
    ('1,235', '1.234e-05', '–')
    """
    if value is None or not np.isfinite(value):
        return "–" if value is None or np.isnan(value) else f"{value}"
    magnitude = abs(value)
    if magnitude and (magnitude >= 10 ** (digits + 3) or magnitude < 1e-4):
        return f"{value:.{digits - 1}e}"
    before = len(str(int(magnitude))) if magnitude >= 1 else 0
    return f"{value:,.{max(0, digits - before)}f}"


def with_unit(label: str, unit: str | None) -> str:
    """Return the label of an axis, with the unit in brackets where there is one."""
    return label if unit is None else f"{label} ({unit})"


def chance_band(n: int, probability: ArrayLike) -> tuple[Any, Any]:
    """Return the ends of the range in which the share of n rows lies in 95 % of all cases, by chance alone."""
    from scipy.stats import binom  # takes long to import

    return binom.ppf(0.025, n, probability) / n, binom.ppf(0.975, n, probability) / n


def scoring_label(scoring: Any, unit: str | None) -> str:
    """Return the label of a score's axis."""
    if not isinstance(scoring, str):
        return str(getattr(scoring, "__name__", type(scoring).__name__))
    return {"crps": with_unit("CRPS", unit), "nll": "NLL"}.get(scoring, scoring)


def ordered_scores(names: Iterable[str], coverage: float) -> list[str]:
    """Return the names of scores for a table: CRPS and the width at this coverage first, without other intervals."""
    first = ["crps", f"width_{100 * coverage:g}"]
    return [*first, *(name for name in names if name not in first and not name.startswith(("coverage_", "width_")))]


def group_lines(table: Mapping[str, Any], coverage: float) -> list[dict[str, str]]:
    """Return a line for each group: name, ``rows``, share ``inside``, mean ``width``, range of ``chance``, and a mark.

    The mark is ``"▼"`` where intervals hold fewer observed values than chance explains, ``"▲"`` where more, else empty.
    By chance alone, one of twenty groups has one.
    """
    level = f"{100 * coverage:g}"
    columns = (table[name].tolist() for name in ("group", "rows", f"coverage_{level}", f"width_{level}"))
    lines = []
    for name, n, inside, width in zip(*columns, strict=True):
        low, high = (float(share) for share in chance_band(n, coverage))
        mark = "▼" if inside < low else "▲" if inside > high else ""
        texts = {"group": name, "rows": f"{n:,}", "inside": percent(inside, 1), "width": number(width), "mark": mark}
        lines.append({**texts, "chance": f"{percent(low)} to {percent(high)}"})
    return lines


def json_values(value: Any) -> Any:
    """Return a result as JSON can hold it.

    Arrays and numbers of NumPy become lists and numbers of Python; NaN and infinity become None. Text that cannot be
    encoded gets a question mark in its place.
    """
    if isinstance(value, dict):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_values(item) for item in value]
    if hasattr(value, "tolist"):
        return json_values(value.tolist())
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be written
    return value
