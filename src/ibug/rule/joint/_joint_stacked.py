"""A fitted joint stack: the weights of its experts, and the joint distributions that they make of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.distributions import Blend
from ibug.distributions.joint import JointBlend, JointStack, Neighborhood
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule.joint._masses import combined_masses
from ibug.rule.stack import Experts, Nearest, Pooled


@dataclass(frozen=True, eq=False)
class JointStacked:
    """What is learned of joint experts on validation rows; see :func:`fit_joint`.

    Parameters
    ----------
    experts : Experts
        The experts, J of them, the normal one first: the same as for one target, on vectors.
    weights : ndarray of shape (J,)
        Their weights, which sum to 1; all targets have the same.
    scores : ndarray of shape (J,)
        The energy score of each expert alone on the validation rows, NaN where there were none.
    score : float
        The energy score of the stack on the validation rows.
    pooled : tuple of Pooled
        For each target its pooled errors and resolution.
    errors : ndarray of shape (n_errors, d)
        The pooled error vectors, whose columns are the errors of `pooled` in another order.
    correlation : ndarray of shape (d, d)
        The correlations of the normal expert.
    bandwidths : tuple of float
        For each target the width of the kernels that make a density of atoms.
    unit : ndarray of shape (d,)
        The standard deviations of the training targets.
    reason : str
        Why the stack is the normal expert alone; empty where it is not.
    """

    experts: Experts
    weights: Floats
    scores: Floats
    score: float
    pooled: tuple[Pooled, ...]
    errors: Floats
    correlation: Floats
    bandwidths: tuple[float, ...]
    unit: Floats
    reason: str = ""

    @property
    def n_targets(self) -> int:
        """The number of targets, d."""
        return len(self.pooled)

    @cached_property
    def active(self) -> tuple[tuple[tuple[Nearest, float], ...], tuple[tuple[Nearest, float], ...]]:
        """The experts on targets and on residuals that have a weight, with it."""
        first = 1 + self.experts.errors
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
        names = ("targets", "residuals")
        return {name: max((one.k for one, _ in some), default=0) for name, some in zip(names, self.active, strict=True)}

    def table(self) -> dict[str, NDArray[Any]]:
        """Return each expert with its weight and its own score as columns, ready for a DataFrame."""
        return {
            "expert": np.array(self.experts.names),
            "k": np.array(self.experts.k),
            "weight": self.weights,
            "score": self.scores,
        }

    def distribution(self, batch: Batch, scale: Floats) -> JointStack:
        """Return the joint distributions of a batch of rows.

        Parameters
        ----------
        batch : Batch
            The rows, with at least as many neighbours as `needs` says, and tables of what training rows have.
        scale : ndarray of shape (n, d)
            The scales of the normal expert.
        """
        k = max(self.needs.values())
        masses = combined_masses(*self.active, batch.shares(k))
        targets = batch.tables.get("targets", np.empty((0, self.n_targets)))
        residuals = batch.tables.get("residuals") if self.needs["residuals"] else None
        # Row numbers need no more than four bytes each.
        near = Neighborhood(batch.rows[:, :k].astype(np.int32), masses, targets, residuals, self.needs["targets"])
        return JointStack(batch.mean, scale, near, self._blend)

    @cached_property
    def _blend(self) -> JointBlend:
        has_errors = self.experts.errors and len(self.errors) > 0
        shares = np.array(
            [
                self.weights[0],
                self.weights[1] if has_errors else 0.0,
                sum(weight for some in self.active for _, weight in some),
            ]
        )
        marginals = tuple(
            Blend(shares, one.errors, bandwidth, one.error_bandwidth, one.resolution, one.support)
            for one, bandwidth in zip(self.pooled, self.bandwidths, strict=True)
        )
        return JointBlend(marginals, self.errors, self.correlation, self.unit)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays that `from_state` takes."""
        names = ("weights", "scores", "score", "errors", "correlation", "unit", "reason")
        return {
            "experts": self.experts.state(),
            "pooled": [one.state() for one in self.pooled],
            "bandwidths": list(self.bandwidths),
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> JointStacked:
        """Return the stack that has this state; impossible values are refused."""
        experts = Experts.from_state(state["experts"])
        weights, scores = (np.asarray(state[name], np.float64) for name in ("weights", "scores"))
        if weights.shape != (len(experts),) or scores.shape != weights.shape:
            raise InvalidInputError(f"A stack of {len(experts)} experts needs as many weights and scores.")
        if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
            raise InvalidInputError("The weights of a stack must be at least zero and sum to 1.")
        errors, correlation, unit = (np.asarray(state[name], np.float64) for name in ("errors", "correlation", "unit"))
        stacked = cls(
            experts,
            weights,
            scores,
            float(state["score"]),
            tuple(Pooled.from_state(one) for one in state["pooled"]),
            errors,
            correlation,
            tuple(float(one) for one in state["bandwidths"]),
            unit,
            str(state["reason"]),
        )
        stacked._blend  # noqa: B018 - impossible values are refused now, not when a row is predicted
        return stacked
