"""A fitted stack: the weights of its experts, and the distributions that they make of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.distributions import MixtureParams, Stack
from ibug.exceptions import InvalidInputError
from ibug.rule.stack._load import kernel
from ibug.rule.stack._pooled import Pooled
from ibug.rule.stack._statistics import Evidence
from ibug.rule.stack._views import Experts


@dataclass(frozen=True)
class Stacked:
    """What is learned of experts on validation rows; see :func:`fit`.

    Parameters
    ----------
    experts : Experts
        The experts, J of them, the normal one first.
    weights : ndarray of shape (J,)
        Their weights, which sum to 1.
    scores : ndarray of shape (J,)
        The score of each expert alone on the validation rows, NaN where there were none.
    score : float
        The score of the stack on the validation rows.
    scoring : {"crps", "nll"}
        Which score it is.
    pooled : Pooled
        The pooled errors, the resolution and the support of the target.
    bandwidth : float
        The width of the kernels that make a density of atoms, relative to the scale of the row.
    reason : str
        Why the stack is the normal expert alone; empty where it is not.
    sides : pair of float
        What distances from the prediction are multiplied by, of values below it and above it: those of pooled errors
        and of neighbours. The scale of the normal expert, which has both sides, is multiplied by the geometric mean.
    moves_neighbors : bool
        Whether neighbours' values have sides, too; not where they are values that the target often takes.
    """

    experts: Experts
    weights: Floats
    scores: Floats
    score: float
    scoring: str
    pooled: Pooled
    bandwidth: float
    reason: str = ""
    sides: tuple[float, float] = (1.0, 1.0)
    moves_neighbors: bool = True

    @property
    def needs(self) -> Mapping[str, int]:
        """The number of neighbours whose targets and residuals make the distributions."""
        return self._active[0].needs

    @property
    def blend(self) -> MixtureParams:
        """What all rows of the distributions have in common."""
        return self._blend

    def table(self) -> dict[str, NDArray[Any]]:
        """Return each expert with its weight and its own score as columns, ready for a DataFrame."""
        return {
            "expert": np.array(self.experts.names),
            "k": np.array(self.experts.k),
            "weight": self.weights,
            "score": self.scores,
        }

    def bounded(self, support: tuple[float, float]) -> Stacked:
        """Return the same stack with other bounds of the target."""
        return replace(self, pooled=replace(self.pooled, support=support))

    def widened(self, factor: float, most: int) -> Stacked:
        """Return the same stack of experts that ask this many times as many neighbours, `most` at most."""
        return replace(self, experts=self.experts.scaled(factor, most))

    def distribution(self, evidence: Evidence) -> Stack:
        """Return the distributions of rows."""
        experts, on_targets, on_residuals = self._active
        loc, targets, moved, shares, counts = evidence.arrays(experts, self.pooled.grid)
        n, k = len(loc), targets.shape[1] + moved.shape[1]
        atoms, masses = np.empty((n, k)), np.empty((n, k), np.float32)
        kernel.combine(
            loc,
            targets,
            moved,
            shares,
            counts,
            *experts.on_targets,
            on_targets,
            *experts.on_residuals,
            on_residuals,
            0,
            n,
            atoms,
            masses,
        )
        scale = np.ascontiguousarray(evidence.scale, np.float64)
        if self.sides != (1.0, 1.0):
            scale = scale * self._middle
            if self.moves_neighbors:
                atoms = loc[:, None] + _stretched(atoms - loc[:, None], self.sides)
        return Stack.of_sorted(loc, scale, atoms, masses, self._blend)

    @property
    def _middle(self) -> float:
        """The factor of the scale: the geometric mean of both sides."""
        return float(np.sqrt(self.sides[0] * self.sides[1]))

    @cached_property
    def _active(self) -> tuple[Experts, Floats, Floats]:
        """The experts on neighbours whose weights are above zero, and these weights."""
        first = 1 + self.experts.errors
        middle = first + len(self.experts.targets)
        on_targets, on_residuals = self.weights[first:middle], self.weights[middle:]
        experts = Experts(
            tuple(e for e, w in zip(self.experts.targets, on_targets, strict=True) if w > 0),
            tuple(e for e, w in zip(self.experts.residuals, on_residuals, strict=True) if w > 0),
            self.experts.errors,
        )
        return experts, on_targets[on_targets > 0], on_residuals[on_residuals > 0]

    @cached_property
    def _blend(self) -> MixtureParams:
        pooled, errors = self.pooled, self.weights[1] if self.experts.errors else 0.0
        atoms = self.weights[1 + self.experts.errors :].sum()
        return MixtureParams(
            np.array([self.weights[0], errors, atoms]),
            _stretched(pooled.errors, self.sides) / self._middle,  # the scale, which they are relative to, has it, too
            self.bandwidth,
            pooled.error_bandwidth,
            pooled.resolution,
            pooled.support,
        )

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays that `from_state` takes."""
        names = ("weights", "scores", "score", "scoring", "bandwidth", "reason")
        return {
            "experts": self.experts.state(),
            "pooled": self.pooled.state(),
            **{name: getattr(self, name) for name in names},
            "sides": list(self.sides),
            "moves_neighbors": self.moves_neighbors,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Stacked:
        """Return the stack that has this state."""
        experts = Experts.from_state(state["experts"])
        weights, scores = (np.asarray(state[name], np.float64) for name in ("weights", "scores"))
        if weights.shape != (len(experts),) or scores.shape != weights.shape:
            raise InvalidInputError(f"A stack of {len(experts)} experts needs as many weights and scores.")
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise InvalidInputError("The weights of a stack must be at least zero and sum to 1.")
        below, above = (float(factor) for factor in state.get("sides", (1.0, 1.0)))
        if not (0 < below < np.inf and 0 < above < np.inf):
            raise InvalidInputError("Both sides of a stack are multiplied by finite factors above zero.")
        stacked = cls(
            experts,
            weights,
            scores,
            float(state["score"]),
            str(state["scoring"]),
            Pooled.from_state(state["pooled"]),
            float(state["bandwidth"]),
            str(state["reason"]),
            (below, above),
            bool(state.get("moves_neighbors", True)),
        )
        stacked._blend  # noqa: B018 - impossible values are refused now, not when a row is predicted
        return stacked


def _stretched(distances: Floats, sides: tuple[float, float]) -> Floats:
    """Return distances from the prediction, times one factor below it and another above it."""
    return np.asarray(distances * np.where(distances < 0, *sides))
