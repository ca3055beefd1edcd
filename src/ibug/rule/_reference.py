"""What validation rows were like: what later rows are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ibug._inputs import require
from ibug._typing import Floats
from ibug._weights import effective_rows, quantile

#: More values than this are represented by as many quantiles.
MOST_KEPT = 1000


@dataclass(frozen=True, eq=False)
class Reference:
    """Affinity scores and probability integral transforms of validation rows, each ascending; empty where unknown.

    Parameters
    ----------
    familiarity : ndarray of shape (n,)
        Affinity scores, at most 1,000.
    pit : ndarray of shape (n,)
        F(y), at most 1,000.
    """

    familiarity: Floats = field(default_factory=lambda: np.empty(0))
    pit: Floats = field(default_factory=lambda: np.empty(0))

    def state(self) -> dict[str, Any]:
        """Return the arrays, which `from_state` takes."""
        return {"familiarity": self.familiarity, "pit": self.pit}

    @classmethod
    def from_state(cls, state: Mapping[str, Any] | None) -> Reference:
        """Return the reference that has this state; an empty one for None, as older files have it."""
        if state is None:
            return cls()
        arrays = [np.asarray(state[name], np.float64) for name in ("familiarity", "pit")]
        for array in arrays:
            fits = array.ndim == 1 and len(array) <= MOST_KEPT and np.all((array >= 0) & (array <= 1))
            require(fits and np.all(np.diff(array) >= 0), "what it keeps of its validation rows is impossible")
        return cls(*arrays)


def kept(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the values in ascending order, or 1,000 quantiles of more.

    With weights, they are as many quantiles as the rows are worth.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Affinity scores, or transforms.
    weights : ndarray of shape (n,) or None
        Of the rows.
    """
    n = min(max(1, round(effective_rows(weights, len(values)))), MOST_KEPT)
    if weights is None and len(values) <= MOST_KEPT:
        return np.sort(values)
    return np.asarray(quantile(values, (np.arange(n) + 0.5) / n, weights))
