"""Honest residuals: how far off the model would be at a row, had it not seen it; and who has made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ibug._inputs import require
from ibug._typing import Floats
from ibug.neighbors._checks import plain_floats

# The kinds that a model makes of its own training rows; their level is too low.
_OWN = ("leave-one-out", "out-of-bag")
_KINDS = ("none", "clones", *_OWN, "validation")


def root_mean_square(errors: Floats) -> Any:
    """Return the root mean square of errors; of several targets one for each, (n_targets,).

    Shapes: errors (n_rows,).
    """
    found = np.sqrt(np.mean(np.square(errors), axis=0))
    return float(found) if errors.ndim == 1 else found


@dataclass(frozen=True, eq=False)
class Residuals:
    """Honest residuals of rows, or the reason why there are none.

    Parameters
    ----------
    values : ndarray of shape (n_rows,) or None; (n_rows, n_targets) of several targets
        Target minus prediction.
    kind : {"none", "clones", "leave-one-out", "out-of-bag", "validation"}
        Who has made them: clones that have not seen the row, the model itself without the row in its leaves, those of
        its trees that have not seen the row, or the model on validation rows.
    reason
        Why the model itself could not make them, if it was asked; else empty.
    """

    values: Floats | None = None
    kind: str = "none"
    reason: str = ""

    @property
    def are_own(self) -> bool:
        """Whether the model itself has made them: their level is too low."""
        return self.kind in _OWN

    @property
    def level(self) -> Any:
        """Their root mean square, (n_targets,) of several targets; NaN without values."""
        return np.nan if self.values is None else root_mean_square(self.values)

    def at_level(self, level: Any) -> Residuals:
        """Return them with another root mean square; as they are where there are none, or all are zero."""
        size = self.level
        if self.values is None or not np.any(size > 0):
            return self
        if self.values.ndim > 1:
            return replace(self, values=self.values * np.where(size > 0, level / np.where(size > 0, size, 1.0), 1.0))
        return replace(self, values=self.values * (level / size))

    def state(self) -> dict[str, Any]:
        """Return plain values, which `from_state` takes."""
        return {"residuals": self.values, "residual_kind": self.kind, "residual_reason": self.reason}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, of_validation: bool) -> Residuals:
        """Return the residuals that have this state."""
        values = None if state["residuals"] is None else plain_floats(state["residuals"], several=True)
        usual = "none" if values is None else "validation" if of_validation else "clones"
        kind, reason = state.get("residual_kind", usual), state.get("residual_reason", "")
        known = kind in _KINDS and isinstance(reason, str)
        fits = (kind == "none") == (values is None) and (kind == "validation") == of_validation
        require(known and fits, "its kind of residuals is impossible")
        return cls(values, kind, reason)
