"""The values of a target that takes few."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ibug._typing import Floats


@dataclass(frozen=True, eq=False)
class Grid:
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

    def __len__(self) -> int:
        return len(self.values)

    def nearest(self, places: Floats) -> Floats:
        """Return the nearest value for each place, the lower one of two that are as near.

        From a place that is far from all values, as between the rare large ones of a count, it is whole steps to the
        nearest value. Without values, places stay where they are.

        Parameters
        ----------
        places : ndarray
            Any numbers.
        """
        if len(self.values) == 0:
            return places
        between = self.values[:-1] / 2 + self.values[1:] / 2
        found = self.values[np.searchsorted(between, places)]
        away = places - found
        far = np.abs(away) > self.step * (0.5 + 1e-9)
        return np.asarray(np.where(far, found + np.rint(away / self.step) * self.step, found))
