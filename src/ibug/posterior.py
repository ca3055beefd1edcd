"""From mean, variance and neighbours to a law of the chosen family (paper, Eq. 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.distributions import Distribution, Normal, Shifted, Truncated, families, resolve_family
from ibug.exceptions import InvalidInputError, NotStorableError
from ibug.targets import TargetFacts

Floats = NDArray[np.float64]
Support = tuple[float, float]

LOCATIONS = ("model", "neighbors")


@dataclass(frozen=True)
class Posterior:
    """A family of laws, ready to be fitted to neighbours."""

    name: str
    family: type[Distribution]
    location: str = "model"
    support: Support | None = None
    options: dict[str, Any] = field(default_factory=dict)  # what the family has learned from all training targets
    lowest: float = -np.inf  # the smallest training target

    @property
    def needs_neighbors(self) -> bool:
        """Whether mean and variance are not enough."""
        return self.family is not Normal or self.location != "model"

    @property
    def needs_own_calibration(self) -> bool:
        """Whether a variance that is calibrated for the normal law may not be the best one."""
        return self.location == "model" and (self.family is not Normal or self.support is not None)

    def law(self, mean: Floats, variance: Floats, values: Floats | None) -> Distribution:
        """Return the laws, inside the support; see :meth:`fit` and :meth:`inside_support`."""
        return self.inside_support(self.fit(mean, variance, values))

    def fit(self, mean: Floats, variance: Floats, values: Floats | None) -> Distribution:
        """Return the laws as if there were no bounds of the target.

        Parameters
        ----------
        mean, variance : ndarray of shape (n,)
            The model's predictions and the calibrated variances: kept by the law unless ``location="neighbors"``.
        values : ndarray of shape (n, k) or None
            What the neighbours say the target may be: their targets, or the prediction plus their residuals. Needed
            if `needs_neighbors`.
        """
        if values is None or not self.needs_neighbors:
            return Normal(mean, np.sqrt(variance))
        if issubclass(self.family, Shifted):  # a prediction plus a residual may be below the family's support
            values = np.maximum(values, self.lowest)
        if self.location == "model":
            return self.family.fit(values, loc=mean, scale=np.sqrt(variance), **self.options)
        return self.family.fit(values, **self.options)

    def inside_support(self, law: Distribution) -> Distribution:
        """Return the laws given that the target is inside its bounds."""
        return law if self.support is None else Truncated(law, *self.support)

    def state(self) -> dict[str, Any]:
        """Return what `from_state` needs: strings and numbers.

        Raises
        ------
        NotStorableError
            For a family that is not registered by its name.
        """
        if self.name not in families() or resolve_family(self.name)[1] is not self.family:
            raise NotStorableError(
                f"The laws are of the class {self.family.__module__}.{self.family.__qualname__}, which cannot be saved "
                "without pickle. Give it a name, ibug.distributions.register(name, family), before it is fitted, and "
                "again before the file is loaded."
            )
        names = ("name", "location", "support", "options", "lowest")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Posterior:
        """Return the posterior that has this state."""
        if state["name"] not in families():
            raise InvalidInputError(
                f"The laws are of the family {state['name']!r:.100}, which is not known here. If it is one of your "
                "own, make it known first: ibug.distributions.register(name, family)."
            )
        name, family = resolve_family(state["name"])
        support = None
        if state["support"] is not None:
            lower, upper = (float(bound) for bound in state["support"])
            support = lower, upper
        if state["location"] not in LOCATIONS or (support is not None and not support[0] < support[1]):
            raise InvalidInputError("The location or the support of the laws is impossible.")
        options = {str(key): value for key, value in state["options"].items()}
        return cls(name, family, state["location"], support, options, float(state["lowest"]))


def prepare(
    distribution: Any, targets: TargetFacts, location: str = "model", support: Support | None = None
) -> tuple[list[Posterior], dict[str, str]]:
    """Return the posteriors to choose from, and for families that cannot take the targets the reason.

    Parameters
    ----------
    distribution
        A family's name or class, ``"tune"`` for all families, or several.
    targets
        What is known of all training targets; with their values, if `looks_at_targets`.
    """
    chosen, several = _chosen(distribution)
    posteriors, refused = [], {}
    for name, family in chosen:
        try:
            posteriors.append(Posterior(name, family, location, support, _options(family, targets), targets.lowest))
        except InvalidInputError as error:
            if not several:
                raise
            refused[name] = str(error)
    if not posteriors:
        raise InvalidInputError(f"No family can take these targets: {refused}")
    return posteriors, refused


def looks_at_targets(distribution: Any) -> bool:
    """Tell whether some family learns from all training targets before it is fitted to neighbours."""
    return any(_prepares(family) for _, family in _chosen(distribution)[0])


def _prepares(family: type[Distribution]) -> bool:
    return next(cls for cls in family.__mro__ if "prepare" in vars(cls)) is not Distribution


def _options(family: type[Distribution], targets: TargetFacts) -> dict[str, Any]:
    if not _prepares(family):
        return {}
    assert targets.values is not None, "the targets are at hand if a family looks at them"
    return family.prepare(targets.values)


def _chosen(distribution: Any) -> tuple[list[tuple[str, type[Distribution]]], bool]:
    """Return the families to choose from, and whether there may be several."""
    several = distribution == "tune" if isinstance(distribution, str) else isinstance(distribution, (list, tuple))
    chosen: Iterable[Any] = (families() if distribution == "tune" else distribution) if several else [distribution]
    return [resolve_family(family) for family in chosen], several
