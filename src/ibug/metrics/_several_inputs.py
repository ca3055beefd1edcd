"""What metrics of several targets accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.distributions.joint import JointStack
from ibug.exceptions import InvalidInputError


def as_several_targets(y: ArrayLike) -> Floats:
    """Return the observed values of several targets, (n, d), all finite. Shapes: y (n, d)."""
    if hasattr(y, "energy_score"):
        raise InvalidInputError("The observed values come first, then the distribution: metric(y, distribution).")
    values = np.asarray(y, np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise InvalidInputError(f"y must have shape (n, d), with two targets at least; got shape {values.shape}.")
    if not np.all(np.isfinite(values)):
        raise InvalidInputError(f"y contains {np.sum(~np.isfinite(values))} NaN or infinite values.")
    return values


def as_samples(given: Any, shape: tuple[int, ...]) -> Floats:
    """Return samples of joint predictions, (m, n, d), two at least. Shapes: given (m, n, d)."""
    samples = np.asarray(given, np.float64)
    if samples.ndim != 3 or samples.shape[1:] != shape or len(samples) < 2:
        raise InvalidInputError(
            f"A JointStack as predict_dist returns it, or samples of shape (m, {shape[0]}, {shape[1]}) with m of at "
            f"least 2, are expected; got {type(given).__name__} of shape {samples.shape}."
        )
    return samples


def as_unit(distribution: JointStack, unit: ArrayLike | None) -> JointStack:
    """Return a distribution that measures distances in another unit, if one is given. Shapes: unit (d,)."""
    if unit is None:
        return distribution
    blend = replace(distribution.blend, unit=np.asarray(unit, np.float64))
    return JointStack(distribution.loc, distribution.scale, distribution.neighbors, distribution.own, blend)
