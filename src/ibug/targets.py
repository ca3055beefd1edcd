"""What is known of all training targets together, whether they are in one place or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import InvalidInputError

Floats = NDArray[np.float64]

# A sum is a whole number of these units, 2 to the power of minus this: even the smallest float is one.
_BITS = 1126
_CHUNK = 2**24  # so many halves of mantissas add up exactly in double precision


@dataclass(frozen=True)
class TargetFacts:
    """What families and floors need to know of the targets."""

    n: int
    lowest: float
    highest: float
    variance: float
    values: Floats | None = None  # (n,) the targets themselves, where somebody asks for them

    @classmethod
    def of(cls, targets: Floats) -> TargetFacts:
        """Look at targets that are all here, (n,)."""
        return cls.join([PartFacts.of(targets)], [squares(targets, mean_of([PartFacts.of(targets)]))], targets)

    @classmethod
    def join(cls, parts: Sequence[PartFacts], sums: Sequence[int], values: Floats | None = None) -> TargetFacts:
        """Put together what was found in several parts; `sums` are those of `squares` around `mean_of` all parts.

        Sums are exact, so that the result does not depend on how the targets are divided.
        """
        n = sum(part.n for part in parts)
        lowest, highest = min(part.lowest for part in parts), max(part.highest for part in parts)
        return cls(n, lowest, highest, _quotient(sum(sums), n), values)

    @property
    def tiny_unit(self) -> float:
        """The variance, or 1 where there is none: the unit of what counts as no variance at all."""
        return self.variance or 1.0


@dataclass(frozen=True)
class PartFacts:
    """The same of a part of the targets, which may be empty."""

    n: int
    lowest: float
    highest: float
    total: int  # the exact sum

    @classmethod
    def of(cls, targets: Floats) -> PartFacts:
        """Look at some of the targets, (n,)."""
        lowest, highest = targets.min(initial=np.inf), targets.max(initial=-np.inf)
        return cls(len(targets), float(lowest), float(highest), _exact_sum(targets))


def mean_of(parts: Sequence[PartFacts]) -> float:
    """Return the mean of all parts, rounded once."""
    return _quotient(sum(part.total for part in parts), sum(part.n for part in parts))


def squares(targets: Floats, mean: float) -> int:
    """Return the exact sum of the squares around a mean."""
    total = 0
    for start in range(0, len(targets), _CHUNK):
        with np.errstate(over="ignore"):
            square = np.square(targets[start : start + _CHUNK] - mean)
        total += _exact_sum(np.minimum(square, np.finfo(np.float64).max))
    return total


def check_support(support: Any, targets: TargetFacts) -> tuple[float, float] | None:
    """Return the bounds of the target as floats, and check that all training targets are inside."""
    if support is None:
        return None
    try:
        lower, upper = (float(bound) for bound in support)
    except (TypeError, ValueError):
        lower = upper = np.nan
    if not lower < upper:
        raise InvalidInputError(
            f"support must be a pair (lower, upper), lower below upper, (0, inf) say; got {support!r}."
        )
    if targets.lowest < lower or targets.highest > upper:
        raise InvalidInputError(
            f"Some training targets are outside the support {support!r}: they are from {targets.lowest:g} to "
            f"{targets.highest:g}."
        )
    return lower, upper


def _exact_sum(values: Floats) -> int:
    """Return the sum of finite numbers, without any rounding, in units of 2 ** -_BITS."""
    total = 0
    for start in range(0, len(values), _CHUNK):
        mantissa, exponent = np.frexp(values[start : start + _CHUNK])
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        least = int(exponent.min())
        high = np.bincount(exponent - least, weights=whole >> 27)
        low = np.bincount(exponent - least, weights=whole & (2**27 - 1))
        for shift in np.flatnonzero((high != 0) | (low != 0)).tolist():
            total += ((int(high[shift]) << 27) + int(low[shift])) << (shift + least - 53 + _BITS)
    return total


def _quotient(total: int, n: int) -> float:
    try:
        return total / (n << _BITS)  # Python rounds the quotient of whole numbers once
    except OverflowError:
        return np.inf
