"""A fitted joint stack: the weights of its experts, and the joint distributions that they make of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug.distributions import DiscreteSupport, MixtureParams, Stack
from ibug.distributions.joint import JointMixtureParams, JointStack, Neighborhood, local_copulas
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._experts import Experts, Nearest, Pooled
from ibug.rule._stack import USUAL_BANDWIDTH
from ibug.rule.joint._masses import combined_masses

#: What the first expert is called: each target as if it were the only one, and their dependence beside.
OWN = "own, by copula"


@dataclass(frozen=True, eq=False)
class JointStacked:
    """What is learned of joint experts on validation rows; see :func:`fit_joint`.

    Parameters
    ----------
    experts : Experts
        The joint experts, J of them: the same as for one target, on vectors.
    weights : ndarray of shape (1 + J,)
        The weight of the targets' own distributions, coupled by a copula, and those of the experts; they sum to 1.
    scores : ndarray of shape (1 + J,)
        The energy score of each expert alone on the validation rows, NaN where there were none.
    score : float
        The energy score of the stack on the validation rows.
    pooled : tuple of Pooled
        For each target its pooled errors and resolution.
    errors : ndarray of shape (n_errors, d)
        The pooled error vectors, whose columns are the errors of `pooled` in another order.
    correlation, copula : ndarray of shape (d, d)
        The correlations of the normal expert, and those of the copula.
    unit : ndarray of shape (d,)
        The standard deviations of the training targets.
    reason : str
        Why the stack is the normal expert alone; empty where it is not.
    pseudo_rows : float or None
        The number of neighbours that `copula` counts for where each row has a copula of its own, by the residuals of
        its neighbours; None where one copula serves all rows.
    """

    experts: Experts
    weights: Floats
    scores: Floats
    score: float
    pooled: tuple[Pooled, ...]
    errors: Floats
    correlation: Floats
    copula: Floats
    unit: Floats
    reason: str = ""
    pseudo_rows: float | None = None

    @property
    def n_targets(self) -> int:
        """The number of targets, d."""
        return len(self.pooled)

    @property
    def grids(self) -> tuple[DiscreteSupport, ...]:
        """The values that each target takes; empty if all take many."""
        grids = tuple(one.grid for one in self.pooled)
        return grids if any(len(grid) for grid in grids) else ()

    @read_only_property
    def active(self) -> tuple[tuple[tuple[Nearest, float], ...], tuple[tuple[Nearest, float], ...]]:
        """The experts on targets and on residuals that have a weight, with it."""
        first = 2 + self.experts.errors
        middle = first + len(self.experts.targets)
        pairs = (
            zip(self.experts.targets, self.weights[first:middle], strict=True),
            zip(self.experts.residuals, self.weights[middle:], strict=True),
        )
        on_targets, on_residuals = (tuple((one, float(weight)) for one, weight in some if weight > 0) for some in pairs)
        return on_targets, on_residuals

    @property
    def needs(self) -> dict[str, int]:
        """The number of neighbours whose targets and residuals make the distributions."""
        vectors = self._vectors
        return {**vectors, "residuals": max(vectors["residuals"], self.n_local)}

    @property
    def n_local(self) -> int:
        """The number of neighbours whose residuals make the copula of a row; 0 where one serves all."""
        return 0 if self.pseudo_rows is None else max(self.experts.needs.values())

    @property
    def _vectors(self) -> dict[str, int]:
        """The number of neighbours whose vectors have a weight."""
        names = ("targets", "residuals")
        return {name: max((one.k for one, _ in some), default=0) for name, some in zip(names, self.active, strict=True)}

    def table(self) -> dict[str, NDArray[Any]]:
        """Return each expert with its weight and its own score as columns, ready for a DataFrame."""
        return {
            "expert": np.array([OWN, *self.experts.names]),
            "k": np.array([0, *self.experts.k]),
            "weight": self.weights,
            "score": self.scores,
        }

    def plain(self, target: int, loc: Floats, scale: Floats) -> Stack:
        """Return normal distributions of one target in the form of a stack. Shapes: loc, scale (n,)."""
        one, nothing = self.pooled[target], np.empty((len(loc), 0))
        weights = np.array([1.0, 0.0, 0.0])
        mixture = MixtureParams(weights, one.errors, USUAL_BANDWIDTH, one.error_bandwidth, one.resolution, one.support)
        return Stack.of_sorted(loc, scale, nothing, nothing.astype(np.float32), mixture)

    def distribution(self, batch: Batch, own: tuple[Stack, ...]) -> JointStack:
        """Return the joint distributions of a batch of rows."""
        vectors = self._vectors
        k = max(vectors.values())
        masses = combined_masses(*self.active, batch.shares(k))
        targets = batch.tables.get("targets", np.empty((0, self.n_targets)))
        residuals = batch.tables.get("residuals") if vectors["residuals"] else None
        # Row numbers need no more than four bytes each.
        near = Neighborhood(
            batch.rows[:, :k].astype(np.int32), masses, targets, residuals, vectors["targets"], self.grids
        )
        scale = np.stack([one.scale for one in own], axis=1)
        copulas = None
        if self.pseudo_rows is not None:
            nearest = batch.tables["residuals"][batch.rows[:, : self.n_local]]
            copulas = local_copulas(self.copula, nearest, self.pseudo_rows)
        return JointStack(batch.mean, scale, near, own, self.mixture(tuple(one.mixture for one in own)), copulas)

    def mixture(self, own: tuple[MixtureParams, ...]) -> JointMixtureParams:
        """Return what all rows of the distributions have in common."""
        neighbors = sum(weight for some in self.active for _, weight in some)
        errors = self.weights[2] if self.experts.errors else 0.0
        weights = np.array([self.weights[0], self.weights[1], errors, neighbors])
        return JointMixtureParams(weights, own, self.errors, self.correlation, self.copula, self.unit)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays that `from_state` takes."""
        names = ("weights", "scores", "score", "errors", "correlation", "copula", "unit", "reason", "pseudo_rows")
        return {
            "experts": self.experts.state(),
            "pooled": [one.state() for one in self.pooled],
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> JointStacked:
        """Return the stack that has this state; impossible values are refused."""
        experts = Experts.from_state(state["experts"])
        weights, scores = (np.asarray(state[name], np.float64) for name in ("weights", "scores"))
        if weights.shape != (1 + len(experts),) or scores.shape != weights.shape:
            raise InvalidInputError(f"A joint stack of {len(experts)} experts needs one weight and one score more.")
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise InvalidInputError("The weights of a stack must be at least zero and sum to 1.")
        errors, correlation, copula, unit = (
            np.asarray(state[name], np.float64) for name in ("errors", "correlation", "copula", "unit")
        )
        pseudo_rows = state.get("pseudo_rows")  # which older files have not
        is_number = isinstance(pseudo_rows, (int, float)) and not isinstance(pseudo_rows, bool)
        if pseudo_rows is not None and not (is_number and 0 < pseudo_rows < np.inf and experts.needs["residuals"]):
            raise InvalidInputError("Copulas of rows need residuals of neighbours, and a finite number of pseudo-rows.")
        stacked = cls(
            experts,
            weights,
            scores,
            float(state["score"]),
            tuple(Pooled.from_state(one) for one in state["pooled"]),
            errors,
            correlation,
            copula,
            unit,
            str(state["reason"]),
            None if pseudo_rows is None else float(pseudo_rows),
        )
        nothing = np.empty(0)
        own = tuple(stacked.plain(j, nothing, nothing).mixture for j in range(stacked.n_targets))
        stacked.mixture(own)  # impossible values are refused now, not when a row is predicted
        return stacked
