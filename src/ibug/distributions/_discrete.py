"""The values of a target that takes few."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ibug._read_only import read_only_property
from ibug._typing import Floats

_ROUNDING = 1e-6  # by which whole steps may differ from whole numbers


@dataclass(frozen=True, eq=False)
class DiscreteSupport:
    """The values of a target that takes few: grades, counts, readings of a scale.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        The values that were seen, ascending; none of a target that takes many.
    step : float
        The usual distance of two values, above zero.
    """

    values: Floats = field(default_factory=lambda: np.empty(0))
    step: float = 1.0

    @read_only_property
    def is_regular(self) -> bool:
        """Whether it is whole steps from each value to the next, as between the rare large ones of a count."""
        steps = np.diff(self.values / self.step)
        return bool(np.all(np.abs(steps - np.rint(steps)) < _ROUNDING * np.maximum(steps, 1)))

    def __len__(self) -> int:
        return len(self.values)

    def nearest(self, places: Floats) -> Floats:
        """Return the nearest value for each place, the lower one of two that are as near.

        On a regular grid a place that is far from all values, and between two of them, is moved to whole steps from the
        nearest. Nothing is moved beyond the lowest and the highest value. Without values, places stay where they are.
        """
        if len(self.values) == 0:
            return places
        between = self.values[:-1] / 2 + self.values[1:] / 2
        places = np.clip(places, self.values[0], self.values[-1])  # NaN stays NaN
        found = self.values[np.minimum(np.searchsorted(between, places), len(self.values) - 1)]
        away = places - found
        far = ~(np.abs(away) <= (self.step * (0.5 + _ROUNDING) if self.is_regular else np.inf))
        return np.asarray(np.where(far, found + np.rint(away / self.step) * self.step, found))
