"""What a joint distribution does not offer, and samples that cannot be drawn: errors that say what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibug.exceptions import InvalidInputError

_OF_ONE_TARGET = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "isf")


def no_attribute(name: str) -> AttributeError:
    """Return the error of an attribute that a JointStack does not have: densities, say, which one target has."""
    if name not in _OF_ONE_TARGET:
        return AttributeError(f"'JointStack' object has no attribute {name!r}")
    return AttributeError(
        f"A JointStack has no {name}: density and distribution function of all targets together are not offered. Use "
        f"marginal(j).{name} for one target, conditional(j, given) for one once others are known, and energy_score(y) "
        "to score all together."
    )


def check_size(size: Any) -> None:
    """Raise InvalidInputError for an impossible number of samples."""
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise InvalidInputError(
            f"size must be None or one number m, for samples of shape (m, n, d); got {size!r}. Reshape what one number "
            "gives."
        )
