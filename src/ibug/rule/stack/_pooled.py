"""What is known before the weights: the pooled errors of validation rows, and how fine the target is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ibug._grid import DiscreteSupport
from ibug._typing import Floats
from ibug._weights import effective_rows, quantile
from ibug._weights import mean as average
from ibug.exceptions import InvalidInputError

#: The largest number of pooled errors; more are represented by their quantiles.
MOST_ERRORS = 127
_NARROWEST = 0.05  # of the kernels of pooled errors, in scales


@dataclass(frozen=True)
class Pooled:
    """What all rows share, except for weights and bandwidth.

    Parameters
    ----------
    errors : ndarray of shape (n_errors,)
        Standardised errors, ascending.
    error_bandwidth : float
        The width of their kernels.
    resolution : float
        The distance of two values of the target; see :func:`resolution`.
    support : pair of float
        The bounds of the target.
    values : ndarray of shape (n_values,)
        The values of the target, ascending, where it takes few.
    """

    errors: Floats
    error_bandwidth: float = 0.25
    resolution: float = 0.0
    support: tuple[float, float] = (-np.inf, np.inf)
    values: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def least_bandwidth(self) -> float:
        """The narrowest width of a kernel, in the unit of the target."""
        return max(self.resolution / float(np.sqrt(2 * np.pi)), float(np.finfo(float).tiny))

    @cached_property
    def grid(self) -> DiscreteSupport:
        """The values of the target, to which predictions plus residuals are moved."""
        return DiscreteSupport(self.values, self.resolution or 1.0)

    def state(self) -> dict[str, Any]:
        """Return plain values and an array that `from_state` takes."""
        return {
            "errors": self.errors,
            "error_bandwidth": self.error_bandwidth,
            "resolution": self.resolution,
            "support": list(self.support),
            "values": self.values,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Pooled:
        """Return what has this state."""
        lower, upper = (float(bound) for bound in state["support"])
        errors = np.asarray(state["errors"], np.float64)
        values = np.asarray(state.get("values", []), np.float64)  # which older files have not
        if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise InvalidInputError("The values of a target must be finite numbers that ascend.")
        return cls(errors, float(state["error_bandwidth"]), float(state["resolution"]), (lower, upper), values)


def pool(
    mean: Floats,
    scale: Floats,
    y: Floats,
    weights: Floats | None = None,
    *,
    resolution: float = 0.0,
    support: tuple[float, float] = (-np.inf, np.inf),
    values: Floats | None = None,
) -> Pooled:
    """Return the pooled errors (y − mean)/scale of the validation rows.

    Up to 127 errors are kept as they are, more of them as 127 quantiles at (i + ½)/127. The width of their kernels
    for a density is 0.9 n^(−1/5) times the smaller one of standard deviation and interquartile range/1.349 (Silverman).

    Shapes: mean, scale, y (n,); weights (n,); values (n_values,).
    """
    values = np.empty(0) if values is None else values
    unsorted = (y - mean) / scale
    errors = np.sort(unsorted)
    if not np.isfinite(errors).all():
        raise InvalidInputError("Errors can be pooled only where predictions, scales and targets are finite numbers.")
    if len(errors) == 0:
        return Pooled(errors, resolution=resolution, support=support, values=values)
    n = effective_rows(weights, len(errors))
    quartiles = quantile(unsorted, [0.25, 0.75], weights)
    deviation = float(np.sqrt(average(np.square(unsorted - average(unsorted, weights)), weights)))
    widths = [width for width in (deviation, float(quartiles[1] - quartiles[0]) / 1.349) if width > 0]
    bandwidth = max(0.9 * min(widths, default=0.0) * n**-0.2, _NARROWEST)
    if len(errors) > MOST_ERRORS or weights is not None:
        errors = quantile(unsorted, (np.arange(MOST_ERRORS) + 0.5) / MOST_ERRORS, weights)
    return Pooled(errors, bandwidth, resolution, support, values)
