"""What a rule knows of all training targets: range, bounds, and the families that can take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ibug._options import Options, Support
from ibug._typing import Floats
from ibug._validation import require
from ibug._warnings import warn_user
from ibug.exceptions import InvalidInputError, OutsideSupportWarning
from ibug.rule._family import Family, prepared

#: The bounds where there are none.
UNBOUNDED: Support = (-np.inf, np.inf)

# What stands for a variance of zero while k is being tuned (paper, Algorithm 3), for targets from 0 to 1.
TINY_VARIANCE = 1e-15

# The range of the training targets is at least this, unless they are all the same.
_LEAST_RANGE = 1e-153

# A bound is taken for one if this number of targets lie within this share of their scale from it, and none beyond it.
# Where the targets of a smooth distribution went on beyond the bound, about as many would be on the other side.
_NEAR_ROWS = 10
_NEAR_SHARE = 0.02


@dataclass(frozen=True)
class TargetRange:
    """Number and range of some targets; those of several parts join without rounding."""

    n: int
    smallest: tuple[float, ...] = ()  # ten of them, ascending; all, where there are fewer
    largest: tuple[float, ...] = ()  # ten of them, descending

    @classmethod
    def of(cls, targets: Floats) -> TargetRange:
        """Look at targets, (n,); there may be none."""
        return cls(len(targets), _first(targets), tuple(-value for value in _first(-targets)))

    @classmethod
    def join(cls, parts: Sequence[TargetRange]) -> TargetRange:
        """Return the range of all parts together."""
        smallest = _first(np.array([value for part in parts for value in part.smallest]))
        largest = _first(-np.array([value for part in parts for value in part.largest]))
        return cls(sum(part.n for part in parts), smallest, tuple(-value for value in largest))

    @property
    def lowest(self) -> float:
        """The smallest target; infinite where there is none."""
        return self.smallest[0] if self.smallest else np.inf

    @property
    def highest(self) -> float:
        """The largest target; minus infinity where there is none."""
        return self.largest[0] if self.largest else -np.inf

    @property
    def tiny_variance(self) -> float:
        """What stands for a variance of zero, in the unit of the targets."""
        with np.errstate(over="ignore"):
            square = np.square(np.float64(self.highest) - self.lowest)
        return TINY_VARIANCE * float(min(square, np.finfo(np.float64).max) or 1.0)

    @property
    def reaches_zero(self) -> bool:
        """Whether no target is below 0, and ten are near it: within 2 % of the largest target."""
        enough = len(self.smallest) == _NEAR_ROWS and self.highest > 0
        return enough and self.lowest >= 0 and self.smallest[-1] <= _NEAR_SHARE * self.highest

    @property
    def reaches_one(self) -> bool:
        """Whether all targets are from 0 to 1, and ten are near 1: within 2 % of the range."""
        if len(self.largest) < _NEAR_ROWS or not 0 <= self.lowest < self.highest <= 1:
            return False
        return 1 - self.largest[-1] <= _NEAR_SHARE * (self.highest - self.lowest)


def _first(values: Floats) -> tuple[float, ...]:
    """Return the smallest values, ascending."""
    some = np.partition(values, _NEAR_ROWS - 1)[:_NEAR_ROWS] if len(values) > _NEAR_ROWS else values
    return tuple(np.sort(some).tolist())


@dataclass(frozen=True)
class TargetSupport:
    """The bounds of a target, and how they were found."""

    bounds: Support = UNBOUNDED
    reason: str = "support=None"  # how they were found, in words
    automatic: bool = False  # whether support="auto" found them, so that later targets outside change them

    @classmethod
    def of(cls, given: Support | str | None, targets: TargetRange) -> TargetSupport:
        """Return what was asked for, after checking that the training targets are inside."""
        if isinstance(given, str):
            return cls._found(targets)
        if given is None:
            return cls()
        return cls(given, "given").including(targets, "training")

    @classmethod
    def _found(cls, targets: TargetRange) -> TargetSupport:
        if targets.reaches_one:
            return cls((0.0, 1.0), "all training targets are from 0 to 1, and at least ten are near 1", True)
        if targets.reaches_zero:
            near = f"at least ten are below {_NEAR_SHARE * targets.highest:g}, {_NEAR_SHARE:.0%} of the largest"
            return cls((0.0, np.inf), f"no training target is below 0, and {near}", True)
        if targets.lowest < 0:
            return cls(reason=f"the training targets go down to {targets.lowest:g}", automatic=True)
        return cls(reason="few training targets are near 0", automatic=True)

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound."""
        return self.bounds != UNBOUNDED

    @property
    def given(self) -> Support:
        """The bounds that the user gave, which everything is learned with; those found are applied afterwards."""
        # Then they cannot make a prediction worse: a stack moves what is outside to the bound, so that its CRPS for any
        # target inside is the same or smaller, and its intervals hold the same targets as before.
        return UNBOUNDED if self.automatic else self.bounds

    def of_family(self, name: str) -> TargetSupport:
        """Return the same for a family of distributions: it is truncated only where that was asked for."""
        if not (self.automatic and self.is_bounded):
            return self
        reason = f"distributions of the family {name} keep their shape; support={self.bounds!r} truncates them"
        return replace(self, bounds=UNBOUNDED, reason=reason)

    def of_model(self, loss: str, targets: TargetRange) -> TargetSupport:
        """Return the same, or bounds from the model's loss, if it is for targets from 0 on and none are found yet."""
        if not (loss and self.automatic) or self.is_bounded or not targets.lowest >= 0:
            return self
        return replace(self, bounds=(0.0, np.inf), reason=f"the model's loss, {loss}, is for targets from 0 on")

    def including(self, targets: TargetRange, which: str) -> TargetSupport:
        """Return the same if some targets are inside; if not, no bounds, with a warning where these were automatic."""
        lower, upper = self.bounds
        if lower <= targets.lowest and targets.highest <= upper:
            return self
        given = f"from {targets.lowest:g} to {targets.highest:g}"
        if not self.automatic:
            raise InvalidInputError(
                f"Some {which} targets are outside the support {self.bounds!r}: they are {given}. Correct or remove "
                "them, or widen the support."
            )
        warn_user(
            f'support="auto" bounds the distributions to {self.bounds!r} because {self.reason}; but some {which} '
            f"targets are outside, {given}, so that the distributions have no bounds. Correct these targets if they "
            "are mistakes; else set support=None, or give the bounds.",
            OutsideSupportWarning,
        )
        return replace(self, bounds=UNBOUNDED, reason=f"some {which} targets are outside {self.bounds!r}")

    def state(self) -> dict[str, Any]:
        """Return plain values, which `from_state` takes."""
        return {"bounds": list(self.bounds), "reason": self.reason, "automatic": self.automatic}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TargetSupport:
        """Return the support that has this state."""
        lower, upper = (float(bound) for bound in state["bounds"])
        require(lower < upper and isinstance(state["reason"], str), "the support of its target is impossible")
        return cls((lower, upper), state["reason"], bool(state["automatic"]))


@dataclass(frozen=True)
class TargetSummary:
    """One target of all training rows together, as far as a rule has to know it."""

    range: TargetRange
    families: tuple[Family, ...]  # to choose from, with what they have learned from all training targets
    refused: dict[str, str]  # the families that cannot take the targets, and why
    support: TargetSupport
    unit: float = 1.0  # in which distances are measured where there are several targets: the standard deviation

    @classmethod
    def of(cls, targets: Floats, options: Options) -> TargetSummary:
        """Look at targets that are all here. Shapes: targets (n,)."""
        return cls.prepare(TargetRange.of(targets), targets, options)

    @classmethod
    def prepare(cls, found: TargetRange, targets: Floats | None, options: Options) -> TargetSummary:
        """Let the families look at the targets, None where none of them has to. Shapes: targets (n,)."""
        support = TargetSupport.of(options.support, found)
        if 0 < found.highest - found.lowest < _LEAST_RANGE:
            raise InvalidInputError(
                f"The training targets are from {found.lowest:g} to {found.highest:g}: squares of such differences are "
                "no numbers. Multiply all targets by a power of ten."
            )
        given = None if support.given == UNBOUNDED else support.given
        families, refused = prepared(options, targets, found.lowest, given)
        shaped = [family.name for family in families if family.needs_neighbors]
        if options.sampling.weight_neighbors and shaped:
            raise InvalidInputError(
                f"weight_neighbors=True counts for the spread and for stacks; the family {shaped[0]!r} is fitted to "
                'neighbours that count equally. Choose distribution="auto" or "normal", or leave weight_neighbors out.'
            )
        return cls(found, families, refused, support)


def summarize(y: Floats, options: Options) -> tuple[TargetSummary, ...]:
    """Return what a rule has to know of each target. Shapes: y (n,) or (n, n_targets)."""
    if y.ndim == 1:
        return (TargetSummary.of(y, options),)
    _check_multioutput(options)
    deviation = y.std(axis=0)
    tiny = np.finfo(np.float64).eps * np.abs(y).max(axis=0, initial=0.0)
    units = np.where(deviation > tiny, deviation, 1.0)  # 1 for a target that does not vary
    return tuple(
        replace(TargetSummary.of(column, options), unit=float(unit)) for column, unit in zip(y.T, units, strict=True)
    )


def suited(
    targets: Sequence[TargetSummary], losses: Sequence[str], later: Sequence[TargetRange] | None = None
) -> tuple[TargetSummary, ...]:
    """Return the same with bounds that suit the losses of the targets' models and later targets."""
    supports = [one.support.of_model(loss, one.range) for one, loss in zip(targets, losses, strict=True)]
    if later is not None:
        supports = [support.including(own, "validation") for support, own in zip(supports, later, strict=True)]
    return tuple(replace(one, support=support) for one, support in zip(targets, supports, strict=True))


def ranges_of(y: Floats) -> list[TargetRange]:
    """Return the range of each target. Shapes: y (n,) or (n, n_targets)."""
    return [TargetRange.of(column) for column in y.reshape(len(y), -1).T]


def _check_multioutput(options: Options) -> None:
    """Raise InvalidInputError for parameters that only one target can have."""
    if options.sampling.weight_neighbors:
        raise InvalidInputError(
            "weight_neighbors=True is for one target: neighbours of several targets count equally. Leave it out."
        )
    if options.sampling.takes_gains:
        raise InvalidInputError(
            'tree_order="gain" is for one target. With several, choose tree_order="first", "last" or "random".'
        )
    name = options.distribution
    if not isinstance(name, str) or name not in ("auto", "normal"):
        raise InvalidInputError(
            f'Several targets have the joint distribution "auto", a stack, or "normal"; got distribution={name!r}. '
            "Families are for one target: fit one IBUGRegressor for each."
        )
    problems = {
        f"location={options.location!r}": options.location != "model",
        f"support={options.support!r}": options.support not in (None, "auto"),
        f"scoring={options.scoring!r} (their score is the energy score, of which the CRPS is the form for one)": (
            options.scoring != "crps"
        ),
    }
    found = [problem for problem, there in problems.items() if there]
    calibrator = options.conformal_calibrator()
    if calibrator is not None and (calibrator.groups is not None or calibrator.ratio is not None):
        found.append("a conformal calibrator with groups or likelihood ratios")
    if found:
        raise InvalidInputError(
            f"Several targets cannot have {' and '.join(found)}: leave it out, or fit an IBUGRegressor for each target."
        )
