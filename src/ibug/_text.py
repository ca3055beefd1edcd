"""Numbers as people read them."""

from __future__ import annotations

import numpy as np


def percent(share: float, digits: int = 0) -> str:
    """Return a share as text."""
    return f"{100 * share:.{digits}f} %"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits that matter."""
    if value is None or not np.isfinite(value):
        return "–" if value is None or np.isnan(value) else f"{value}"
    magnitude = abs(value)
    if magnitude and (magnitude >= 10 ** (digits + 3) or magnitude < 1e-4):
        return f"{value:.{digits - 1}e}"
    before = len(str(int(magnitude))) if magnitude >= 1 else 0
    return f"{value:,.{max(0, digits - before)}f}"
