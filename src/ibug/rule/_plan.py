"""Which candidates there are, and what has to be read of the neighbours to judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ibug._options import Options
from ibug._read_only import read_only_property
from ibug.distributions import Normal
from ibug.rule._experts import Experts, scaled_k
from ibug.rule._targets import TargetSummary

#: The paper's candidates for k (section B.2).
K_CANDIDATES = (3, 5, 7, 9, 11, 15, 31, 61, 91, 121, 151, 201, 301, 401, 501, 601, 701)

#: The neighbourhoods that a combination looks at: the nearest, the usual, and the wide one.
COMBINATION_KS = (9, 31, 301)

#: How wide the wide one may be, the narrowest first: the nearest 63 are those that experts of a stack look at.
WIDE_KS = (63, 101, 301)


@dataclass(frozen=True)
class Plan:
    """The candidates among which validation rows choose for one target."""

    options: Options
    target: TargetSummary
    quantities: tuple[str, ...]  # what neighbours are asked for
    candidates: tuple[int, ...]  # the numbers of neighbours to choose from
    combination_ks: tuple[int, ...]  # the numbers of neighbours that a combination looks at
    most: int  # the largest number of neighbours that may be looked at
    has_residuals: bool  # whether training rows have out-of-sample residuals that are to be used
    own_residuals: bool = False  # whether these were made by the model itself
    stacks: bool = False  # whether a stack is a candidate, of which the normal distribution is one expert
    # The number of training rows that are neighbours now, over that of the model which the rule is for. All numbers of
    # neighbours are this share of the usual ones.
    share: float = 1.0

    @classmethod
    def of(
        cls,
        options: Options,
        target: TargetSummary,
        n_neighbors: Callable[[str], int],
        *,
        has_residuals: bool,
        own_residuals: bool = False,
        share: float = 1.0,
    ) -> Plan:
        """Return the candidates."""
        spread = options.spread
        quantities = spread.quantities if has_residuals or not spread.combines else spread.quantities[:1]
        most = min(n_neighbors(quantity) for quantity in ("targets", *quantities))
        ks = candidates(options.k, most, share)
        largest = most if options.k is None else ks[0]
        used = has_residuals and "residuals" in quantities
        combination_ks = tuple(min(scaled_k(k, share), largest) for k in COMBINATION_KS)
        return cls(
            options,
            target,
            quantities,
            ks,
            combination_ks,
            largest,
            used,
            used and own_residuals,
            options.stacks,
            share,
        )

    @property
    def alternatives(self) -> tuple[Plan, ...]:
        """Plans that are one choice each, the families first; the stack is chosen beside the normal distribution."""
        families = self.target.families
        if not self.stacks or len(families) == 1:
            return (self,)
        normal = tuple(family for family in families if family.cls is Normal)
        return replace(self, stacks=False), replace(self, target=replace(self.target, families=normal, refused={}))

    def without_residuals(self) -> Plan:
        """Return the same candidates as far as they need targets alone."""
        return replace(self, quantities=("targets",), has_residuals=False, own_residuals=False)

    @property
    def wide_ks(self) -> tuple[int, ...]:
        """The numbers of neighbours that the wide neighbourhood of a combination may have, ascending."""
        # There is a choice for normal distributions and the CRPS only. A log likelihood is decided by the few rows that
        # are far out, for which many neighbours are safer; and a family is fitted anew for each candidate.
        if self.options.scoring != "crps" or self.keeps_values:
            return self.combination_ks[-1:]
        return tuple(sorted({min(scaled_k(k, self.share), self.combination_ks[-1]) for k in WIDE_KS}))

    @property
    def ks(self) -> tuple[int, ...]:
        """All numbers of neighbours that are looked at, ascending."""
        if not self.options.spread.combines:
            return self.candidates
        wide = {k for plan in self.alternatives for k in plan.wide_ks}
        return tuple(sorted({*self.candidates, *self.combination_ks, *wide}))

    @property
    def needs(self) -> dict[str, int]:
        """The number of neighbours to search for, by quantity; affinities are those of training rows."""
        needs = dict.fromkeys(["targets", *self.quantities], max(self.ks))
        return needs if self.experts is None else most_needed(needs, self.experts.needs)

    @read_only_property
    def experts(self) -> Experts | None:
        """The experts of a stack, if one is a candidate; those on residuals where training rows have residuals."""
        if not self.stacks:
            return None
        experts = Experts() if self.has_residuals else Experts().without_residuals()
        return experts.scaled(self.share, self.most).distinct()

    @property
    def keeps_values(self) -> bool:
        """Whether the neighbours' values themselves are needed: families are fitted to them."""
        return any(family.needs_neighbors for family in self.target.families)

    @property
    def tiny(self) -> float:
        """What stands for a variance of zero."""
        return self.target.range.tiny_variance


def most_needed(*needs: Mapping[str, int]) -> dict[str, int]:
    """Return the largest number of neighbours, by quantity; quantities of which none are needed are left out."""
    quantities = dict.fromkeys(quantity for one in needs for quantity, k in one.items() if k)
    return {quantity: max(one.get(quantity, 0) for one in needs) for quantity in quantities}


def candidates(k: int | None, most: int, share: float = 1.0) -> tuple[int, ...]:
    """Return the numbers of neighbours to choose from: the paper's, or k itself, as far as there are neighbours."""
    if k is not None:
        return (min(scaled_k(k, share), most),)
    scaled = dict.fromkeys(scaled_k(one, share) for one in K_CANDIDATES)
    return tuple(one for one in scaled if one <= most) or (most,)
