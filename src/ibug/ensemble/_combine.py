"""Several distributions per row become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.distributions import Distribution, LocationScale, Mixture
from ibug.exceptions import InvalidInputError


def average(distributions: Sequence[Distribution], weights: Floats) -> Distribution:
    """Return the distributions of the members' family with the mean of their means and of their standard deviations.

    That is how the paper's IBUG+CBU is made (section 5.2). For one family whose members differ in location and scale
    only, it averages the quantiles of every level.

    Shapes: weights (m,).
    """
    families = {type(distribution) for distribution in distributions}
    family = type(distributions[0])
    if len(families) > 1 or not issubclass(family, LocationScale) or len(family.parameters) > 2:
        names = ", ".join(type(distribution).__name__ for distribution in distributions)
        raise InvalidInputError(
            'combine="average" averages means and standard deviations, so the members must predict one family '
            f"that has no other parameter (normal, laplace, logistic or gumbel); theirs are {names}. Use "
            'combine="mixture", which takes any, or fit each IBUGRegressor with distribution="normal", as the paper '
            "does. Conformal calibration is for the ensemble, not for its members."
        )
    mean = sum(weight * distribution.mean() for weight, distribution in zip(weights, distributions, strict=True))
    std = sum(weight * distribution.std() for weight, distribution in zip(weights, distributions, strict=True))
    return family.from_moments(np.asarray(mean), np.asarray(std))


def mixture(distributions: Sequence[Distribution], weights: Floats) -> Distribution:
    """Return the mixtures of the members' distributions; see `average`."""
    return Mixture(distributions, weights)


COMBINATIONS: dict[str, Callable[[Sequence[Distribution], Floats], Distribution]] = {
    "average": average,
    "mixture": mixture,
}


def resolve_combination(combine: Any) -> Callable[[Sequence[Distribution], Floats], Distribution]:
    """Return the function for a name."""
    if not isinstance(combine, str) or combine not in COMBINATIONS:
        raise InvalidInputError(f"combine must be one of {tuple(COMBINATIONS)}; got {combine!r}.")
    return COMBINATIONS[combine]
