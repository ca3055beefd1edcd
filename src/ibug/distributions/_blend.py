"""What all rows of a stack have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError


@dataclass(frozen=True)
class MixtureParams:
    """What all rows of a stack have in common.

    Parameters
    ----------
    weights : ndarray of shape (3,)
        The shares of the normal part, the pooled errors and the atoms; they sum to 1.
    errors : ndarray of shape (n_errors,)
        Standardised errors (y − μ)/σ of validation rows, ascending.
    bandwidth, error_bandwidth : float
        The widths of the kernels that smooth atoms and errors to a density, relative to the scale of the row.
    resolution : float
        The distance between neighbouring values that the target can take, 0 for a continuous one. No kernel is narrower
        than resolution/√(2π): with this width, the density at a value is its probability divided by the resolution.
    support : pair of float
        The bounds of the target.
    """

    weights: Floats
    errors: Floats = field(default_factory=lambda: np.empty(0))
    bandwidth: float = 0.25
    error_bandwidth: float = 0.25
    resolution: float = 0.0
    support: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        weights, errors = np.array(self.weights, np.float64), np.sort(np.array(self.errors, np.float64).reshape(-1))
        if weights.shape != (3,) or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
            raise InvalidInputError(
                "A stack needs three weights of at least zero, for the normal part, the errors and the atoms; "
                f"got {self.weights!r}."
            )
        if not np.isfinite(errors).all() or (weights[1] > 0 and errors.size == 0):
            raise InvalidInputError("A stack with a weight for errors needs errors, which must be finite.")
        widths = np.array([self.bandwidth, self.error_bandwidth])
        if not (np.all((widths > 0) & np.isfinite(widths)) and 0 <= self.resolution < np.inf):
            raise InvalidInputError("The bandwidths of a stack must be above zero, and the resolution at least zero.")
        lower, upper = (float(bound) for bound in self.support)
        if not lower < upper:
            raise InvalidInputError(f"The lower bound of the support must be below the upper one; got {self.support}.")
        object.__setattr__(self, "weights", weights / weights.sum())
        object.__setattr__(self, "errors", errors)
        object.__setattr__(self, "support", (lower, upper))

    @cached_property
    def bounds(self) -> Floats:
        """The support as an array, (2,)."""
        return np.array(self.support)

    @property
    def least_bandwidth(self) -> float:
        """The narrowest width of a kernel, in the unit of the target."""
        return max(self.resolution / float(np.sqrt(2 * np.pi)), float(np.finfo(float).tiny))

    def equals(self, other: MixtureParams) -> bool:
        """Tell whether both say the same."""
        names = ("bandwidth", "error_bandwidth", "resolution", "support")
        return (
            np.array_equal(self.weights, other.weights)
            and np.array_equal(self.errors, other.errors)
            and all(getattr(self, name) == getattr(other, name) for name in names)
        )
