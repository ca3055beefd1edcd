"""From mean, variance and neighbours to a distribution of the chosen family (paper, Eq. 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ibug._options import LOCATIONS, Options, Support
from ibug._typing import Floats
from ibug.distributions import Distribution, Normal, Shifted, Truncated, families, learns_from_targets, resolve_family
from ibug.exceptions import InvalidInputError, NotStorableError


@dataclass(frozen=True)
class Family:
    """A family of distributions, ready to be fitted to neighbours."""

    name: str  # in the registry, or that of the class
    cls: type[Distribution]
    location: str = "model"  # whether mean and variance are kept, or fitted to the "neighbors"
    support: Support | None = None  # bounds of the target
    learned: dict[str, Any] = field(default_factory=dict)  # from all training targets
    lowest: float = -np.inf  # the smallest training target

    @property
    def needs_neighbors(self) -> bool:
        """Whether mean and variance are not enough."""
        return self.cls is not Normal or self.location != "model"

    @property
    def keeps_variance(self) -> bool:
        """Whether its distributions have the variance that they are given; those above a shift have a least one."""
        return self.location == "model" and self.support is None and not issubclass(self.cls, Shifted)

    @property
    def needs_own_calibration(self) -> bool:
        """Whether a variance that is calibrated for the normal distribution may not be the best one."""
        return self.location == "model" and (self.cls is not Normal or self.support is not None)

    def distribution(self, mean: Floats, variance: Floats, values: Floats | None) -> Distribution:
        """Return the distributions, inside the support. Shapes: mean, variance (n,); values (n, k)."""
        fitted = self._fit(mean, variance, values)
        return fitted if self.support is None else Truncated(fitted, *self.support)

    def _fit(self, mean: Floats, variance: Floats, values: Floats | None) -> Distribution:
        if values is None or not self.needs_neighbors:
            return Normal(mean, np.sqrt(variance))
        if issubclass(self.cls, Shifted):  # a prediction plus a residual may be below the family's support
            values = np.maximum(values, self.lowest)
        if self.location == "model":
            return self.cls.fit(values, loc=mean, scale=np.sqrt(variance), **self.learned)
        return self.cls.fit(values, **self.learned)

    def state(self) -> dict[str, Any]:
        """Return what `from_state` needs: strings and numbers."""
        if self.name not in families() or resolve_family(self.name)[1] is not self.cls:
            raise NotStorableError(
                f"The distributions are of the class {self.cls.__module__}.{self.cls.__qualname__}, which cannot be "
                "saved without pickle. Give it a name, ibug.distributions.register(name, family), before it is fitted, "
                "and again before the file is loaded."
            )
        return {
            "name": self.name,
            "location": self.location,
            "support": self.support,
            "options": self.learned,
            "lowest": self.lowest,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Family:
        """Return the family that has this state."""
        if state["name"] not in families():
            raise InvalidInputError(
                f"The distributions are of the family {state['name']!r:.100}, which is not known here. If it is one of "
                "your own, make it known first: ibug.distributions.register(name, family)."
            )
        name, distribution = resolve_family(state["name"])
        support = None
        if state["support"] is not None:
            lower, upper = (float(bound) for bound in state["support"])
            support = lower, upper
        if state["location"] not in LOCATIONS or (support is not None and not support[0] < support[1]):
            raise InvalidInputError("The location or the support of the distributions is impossible.")
        learned = {str(key): value for key, value in state["options"].items()}
        return cls(name, distribution, state["location"], support, learned, float(state["lowest"]))


def prepared(
    options: Options, targets: Floats | None, lowest: float, support: Support | None
) -> tuple[tuple[Family, ...], dict[str, str]]:
    """Return the families to choose from, and for those that cannot take the targets the reason.

    Shapes: targets (n_train,).
    """
    ready, refused = [], {}
    for name, family in options.families:
        try:
            learned = {}
            if learns_from_targets(family):
                assert targets is not None, "the targets are at hand if a family looks at them"
                learned = family.prepare(targets)
            ready.append(Family(name, family, options.location, support, learned, lowest))
        except InvalidInputError as error:
            if not options.chooses_family:
                raise
            refused[name] = str(error)
    if not ready:
        raise InvalidInputError(f"No family can take these targets: {refused}")
    return tuple(ready), refused
