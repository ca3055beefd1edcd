"""Numbers as people read them."""

from __future__ import annotations

import numpy as np


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
