"""All training targets together, where each row has several; and which parameters go with several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.rule._targets import TargetRange, TargetSummary, TargetSupport


@dataclass(frozen=True, eq=False)
class JointFacts:
    """What a joint rule has to know of the training targets.

    Parameters
    ----------
    targets : tuple of TargetFacts
        Those of each target.
    unit : ndarray of shape (d,)
        The standard deviations, in which distances are measured; 1 for a target that does not vary.
    """

    targets: tuple[TargetSummary, ...]
    unit: Floats

    @classmethod
    def of(cls, targets: Floats, options: Options) -> JointFacts:
        """Look at the targets, (n, d), after checking that the options are such that several targets can have.

        Shapes: targets (n, d).
        """
        check_options(options)
        deviation = targets.std(axis=0)
        tiny = np.finfo(np.float64).eps * np.abs(targets).max(axis=0, initial=0.0)
        unit = np.where(deviation > tiny, deviation, 1.0)
        return cls(tuple(TargetSummary.of(column, options) for column in targets.T), unit)

    @property
    def supports(self) -> tuple[TargetSupport, ...]:
        """The bounds of each target."""
        return tuple(one.support for one in self.targets)

    def bounded(self, supports: Sequence[TargetSupport]) -> JointFacts:
        """Return the same with other bounds."""
        targets = zip(self.targets, supports, strict=True)
        return replace(self, targets=tuple(one.bounded([support]) for one, support in targets))

    def suited(self, losses: Sequence[str], later: Sequence[TargetRange] = ()) -> JointFacts:
        """Return the same with bounds that suit the losses of the targets' models and later targets."""
        ranges = [[one] for one in later] or [[] for _ in self.targets]
        targets = zip(self.targets, losses, ranges, strict=True)
        return replace(self, targets=tuple(one.suited([loss], range) for one, loss, range in targets))


def check_options(options: Options) -> None:
    """Raise InvalidInputError for parameters that only one target can have."""
    if options.weight_neighbors:
        raise InvalidInputError(
            "weight_neighbors=True is for one target: neighbours of several targets count alike. Leave it out."
        )
    if options.sampling.tunes_trees or options.sampling.takes_gains:
        raise InvalidInputError(
            f"tree_fraction={options.sampling.tree_fraction!r} with tree_order={options.sampling.tree_order!r} is for "
            'one target. With several, give tree_fraction a number and tree_order="first" or "random".'
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
        f"scoring={options.score.given!r} (their score is the energy score, of which the CRPS is the form for one)": (
            options.score.given != "crps"
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
