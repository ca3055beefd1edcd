"""Experts: what can be said of a row, by its model or by its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError

Table = tuple[NDArray[np.int64], Floats]  # k and sharpness of each expert

_MOST = 100_000


@dataclass(frozen=True)
class Nearest:
    """An expert on neighbours: the k nearest, each with a weight ∝ exp(sharpness · affinity).

    Parameters
    ----------
    k : int
        The number of neighbours.
    sharpness : float
        How fast weights fall with the affinity, which is a share of the trees; 0 means equal weights.
    """

    k: int
    sharpness: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.k <= _MOST or not 0 <= self.sharpness < np.inf:
            raise InvalidInputError(
                f"An expert needs k of at least 1 and a finite sharpness of at least 0; got {self}."
            )

    def name(self, of: str) -> str:
        """Return the expert's name."""
        return f"{of} of {self.k}" + (f", by affinity ({self.sharpness:g})" if self.sharpness else "")


@dataclass(frozen=True)
class Experts:
    """The experts of a stack: the normal one first, then pooled errors, neighbours' targets, neighbours' residuals.

    Parameters
    ----------
    targets : tuple of Nearest
        Experts on the neighbours' targets as they are.
    residuals : tuple of Nearest
        Experts on the prediction plus the neighbours' honest residuals; none where there are no such residuals.
    errors : bool
        Whether the pooled errors of the validation rows are an expert.
    """

    targets: tuple[Nearest, ...] = (Nearest(3), Nearest(9), Nearest(63), Nearest(63, 15.0), Nearest(63, 50.0))
    residuals: tuple[Nearest, ...] = (Nearest(21, 5.0),)
    errors: bool = True

    def __len__(self) -> int:
        return 1 + self.errors + len(self.targets) + len(self.residuals)

    def without_residuals(self) -> Experts:
        """Return the experts that need no residuals."""
        return Experts(self.targets, (), self.errors)

    def up_to(self, most: int) -> Experts:
        """Return the experts that ask at most this many neighbours; those that become equal are one."""
        targets, residuals = (
            tuple(dict.fromkeys(replace(expert, k=min(expert.k, most)) for expert in experts))
            for experts in (self.targets, self.residuals)
        )
        return Experts(targets, residuals, self.errors)

    def scaled(self, factor: float, most: int = _MOST) -> Experts:
        """Return as many experts that ask this many times as many neighbours, `most` at most."""
        targets, residuals = (
            tuple(replace(expert, k=min(scaled_k(expert.k, factor), most)) for expert in experts)
            for experts in (self.targets, self.residuals)
        )
        return Experts(targets, residuals, self.errors)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each expert."""
        own = ("normal", "errors") if self.errors else ("normal",)
        on_targets = tuple(expert.name("targets") for expert in self.targets)
        return own + on_targets + tuple(expert.name("residuals") for expert in self.residuals)

    @property
    def k(self) -> tuple[int, ...]:
        """The number of neighbours that each expert asks; 0 for those that ask the model."""
        return (0,) * (1 + self.errors) + tuple(expert.k for expert in self.targets + self.residuals)

    @cached_property
    def needs(self) -> Mapping[str, int]:
        """The largest number of neighbours of which targets and residuals are needed."""
        found = {"targets": self.targets, "residuals": self.residuals}
        return {name: max((one.k for one in each), default=0) for name, each in found.items()}

    @cached_property
    def on_targets(self) -> Table:
        """The experts on targets as arrays."""
        return _table(self.targets)

    @cached_property
    def on_residuals(self) -> Table:
        """The experts on residuals as arrays."""
        return _table(self.residuals)

    def state(self) -> dict[str, Any]:
        """Return plain values that `from_state` takes."""
        return {
            "targets": [[expert.k, expert.sharpness] for expert in self.targets],
            "residuals": [[expert.k, expert.sharpness] for expert in self.residuals],
            "errors": self.errors,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Experts:
        """Return the experts that have this state."""
        targets, residuals = (
            tuple(Nearest(int(k), float(sharpness)) for k, sharpness in state[name])
            for name in ("targets", "residuals")
        )
        return cls(targets, residuals, bool(state["errors"]))


def scaled_k(k: int, factor: float) -> int:
    """Return the number of neighbours that is nearest to this many times k, at least one."""
    return max(1, int(np.floor(k * factor + 0.5)))


def _table(experts: tuple[Nearest, ...]) -> Table:
    return np.array([expert.k for expert in experts], np.int64), np.array(
        [expert.sharpness for expert in experts], float
    )
