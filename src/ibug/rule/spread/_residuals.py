"""The errors that honest predictions of the neighbours made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ibug._typing import Floats
from ibug.rule.spread._quantity import Quantity
from ibug.rule.spread._targets import compiled_variances, prefix_means


class Residuals(Quantity):
    """The neighbours' residuals: target minus the prediction of a model that was not trained on the neighbour.

    The spread is their mean square around zero, not around their mean: a model that errs to one side among all
    neighbours will err there again, and that is part of how far a prediction may be off.
    """

    name: ClassVar[str] = "residuals"

    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the mean square, (n_rows,)."""
        if weights is not None:
            return np.asarray(np.average(np.square(values), axis=1, weights=weights))
        return np.asarray(np.mean(np.square(values), axis=1))

    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the mean square of the first k, (n_rows, len(ks))."""
        if weights is None:
            return compiled_variances(values, ks, centered=False)
        return prefix_means(np.square(values), ks, weights)

    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return the model's prediction plus each neighbour's residual."""
        return np.asarray(mean[:, None] + values)
