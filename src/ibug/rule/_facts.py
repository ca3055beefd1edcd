"""All training targets together, as far as a rule has to know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ibug._options import Options
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.rule._family import Family, prepared
from ibug.rule._support import TargetRange, TargetSupport

_LEAST_RANGE = 1e-153  # of the targets, unless they are all the same


@dataclass(frozen=True)
class TargetSummary:
    """The range of the training targets, and the families that can take them.

    Parameters
    ----------
    range
        Number and range.
    families
        The families to choose from, with what they have learned from all training targets.
    refused
        The families that cannot take the targets, and why.
    support
        The bounds of the targets.
    """

    range: TargetRange
    families: tuple[Family, ...]
    refused: dict[str, str]
    support: TargetSupport

    @classmethod
    def of(cls, targets: Floats, options: Options) -> TargetSummary:
        """Look at targets that are all here. Shapes: targets (n,)."""
        return cls.prepare(TargetRange.of(targets), targets, options)

    @classmethod
    def prepare(cls, found: TargetRange, targets: Floats | None, options: Options) -> TargetSummary:
        """Let the families look at the targets. Shapes: targets (n,)."""
        support = TargetSupport.of(options.support, found)
        if 0 < found.highest - found.lowest < _LEAST_RANGE:
            raise InvalidInputError(
                f"The training targets are from {found.lowest:g} to {found.highest:g}: squares of such differences are "
                "no numbers. Multiply all targets by a power of ten."
            )
        families, refused = prepared(options, targets, found.lowest, support.family_bounds)
        shaped = [family.name for family in families if family.needs_neighbors]
        if options.weight_neighbors and shaped:
            raise InvalidInputError(
                f"weight_neighbors=True counts for the spread and for stacks; the family {shaped[0]!r} is fitted to "
                'neighbours that count alike. Choose distribution="auto" or "normal", or leave weight_neighbors out.'
            )
        return cls(found, families, refused, support)

    @property
    def supports(self) -> tuple[TargetSupport, ...]:
        """The bounds of the target, as of one of several."""
        return (self.support,)

    def bounded(self, supports: Sequence[TargetSupport]) -> TargetSummary:
        """Return the same with other bounds."""
        (support,) = supports
        return replace(self, support=support)

    def suited(self, losses: Sequence[str], later: Sequence[TargetRange] = ()) -> TargetSummary:
        """Return the same with bounds that suit the model's loss and later targets."""
        (loss,) = losses
        support = self.support.of_model(loss, self.range)
        for targets in later:
            support = support.including(targets, "validation")
        return self if support is self.support else self.bounded((support,))
