"""Scores in words, and how far chance alone moves a share."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ibug.describe._numbers import with_unit


def chance_band(n: int, probability: ArrayLike) -> tuple[Any, Any]:
    """Return the ends of the range in which the share of n rows lies in 95 % of all cases, by chance alone."""
    from scipy.stats import binom  # takes long to import

    return binom.ppf(0.025, n, probability) / n, binom.ppf(0.975, n, probability) / n


def scoring_label(scoring: Any, unit: str | None) -> str:
    """Return the label of a score's axis."""
    if not isinstance(scoring, str):
        return str(getattr(scoring, "__name__", type(scoring).__name__))
    return {"crps": with_unit("CRPS", unit), "nll": "NLL"}.get(scoring, scoring)
