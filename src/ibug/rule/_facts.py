"""All training targets together, as far as a rule has to know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.rule._family import Family, prepared

#: What stands for a variance of zero while k is being tuned (paper, Algorithm 3), for targets from 0 to 1.
TINY_VARIANCE = 1e-15
_LEAST_RANGE = 1e-153  # of the targets, unless they are all the same


@dataclass(frozen=True)
class TargetRange:
    """Number and range of some targets; those of several parts join without rounding.

    Parameters
    ----------
    n
        The number of targets.
    lowest, highest
        The smallest and the largest; infinite where there are none.
    """

    n: int
    lowest: float
    highest: float

    @classmethod
    def of(cls, targets: Floats) -> TargetRange:
        """Look at targets, (n,); there may be none."""
        return cls(len(targets), float(targets.min(initial=np.inf)), float(targets.max(initial=-np.inf)))

    @classmethod
    def join(cls, parts: Sequence[TargetRange]) -> TargetRange:
        """Return the range of all parts together."""
        n = sum(part.n for part in parts)
        return cls(n, min(part.lowest for part in parts), max(part.highest for part in parts))

    @property
    def tiny_variance(self) -> float:
        """What stands for a variance of zero, in the unit of the targets."""
        with np.errstate(over="ignore"):
            square = np.square(np.float64(self.highest) - self.lowest)
        return TINY_VARIANCE * float(min(square, np.finfo(np.float64).max) or 1.0)


@dataclass(frozen=True)
class TargetFacts:
    """The range of the training targets, and the families that can take them.

    Parameters
    ----------
    range
        Number and range.
    families
        The families to choose from, with what they have learned from all training targets.
    refused
        The families that cannot take the targets, and why.
    """

    range: TargetRange
    families: tuple[Family, ...]
    refused: dict[str, str]

    @classmethod
    def of(cls, targets: Floats, options: Options) -> TargetFacts:
        """Look at targets that are all here.

        Parameters
        ----------
        targets : ndarray of shape (n,)
            The training targets.
        options
            The families, and the support.

        Raises
        ------
        InvalidInputError
            If no chosen family can take them, or some are outside the support.
        """
        return cls.prepare(TargetRange.of(targets), targets, options)

    @classmethod
    def prepare(cls, found: TargetRange, targets: Floats | None, options: Options) -> TargetFacts:
        """Let the families look at the targets.

        Parameters
        ----------
        found
            Number and range of the targets.
        targets : ndarray of shape (n,) or None
            The targets; they may be absent unless ``options.looks_at_targets``.
        options
            The families, and the support.
        """
        options.check_support(found.lowest, found.highest, "training")
        if 0 < found.highest - found.lowest < _LEAST_RANGE:
            raise InvalidInputError(
                f"The training targets are from {found.lowest:g} to {found.highest:g}: squares of such differences are "
                "no numbers. Multiply all targets by a power of ten."
            )
        families, refused = prepared(options, targets, found.lowest)
        shaped = [family.name for family in families if family.needs_neighbors]
        if options.weight_neighbors and shaped:
            raise InvalidInputError(
                f"weight_neighbors=True counts for the spread and for stacks; the family {shaped[0]!r} is fitted to "
                'neighbours that count alike. Choose distribution="auto" or "normal", or leave weight_neighbors out.'
            )
        return cls(found, families, refused)
