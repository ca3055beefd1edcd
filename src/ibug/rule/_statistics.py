"""What the neighbours of validation rows say, for all candidates at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibug._typing import Floats
from ibug._weights import effective_rows
from ibug.metrics import Scoring, resolve_scoring
from ibug.neighbors import Batch
from ibug.rule._experts import Evidence, Experts
from ibug.rule._plan import Plan
from ibug.rule._spread import QUANTITIES, prefix_means


@dataclass(frozen=True)
class Statistics:
    """Variances and mean affinities of the validation rows' neighbours; those of several parts join exactly.

    Parameters
    ----------
    mean, y : ndarray of shape (n_rows,)
        Predictions and observed values.
    ks
        The numbers of neighbours.
    variances : dict of ndarray of shape (n_rows, len(ks))
        By quantity.
    affinities : ndarray of shape (n_rows, len(ks))
        The mean affinity of the first k.
    values : dict of ndarray of shape (n_rows, max(ks))
        By quantity, where families need them; else empty.
    nearest : dict of ndarray
        The neighbours' ``targets``, ``shares`` and ``residuals`` that experts look at, and ``weights`` where they have
        some; empty without a stack.
    weights : ndarray of shape (n_rows,) or None
        Of the validation rows, all above zero; None where they count alike.
    """

    mean: Floats
    y: Floats
    ks: tuple[int, ...]
    variances: dict[str, Floats]
    affinities: Floats
    values: dict[str, Floats]
    nearest: dict[str, Floats]
    weights: Floats | None = None

    @classmethod
    def collect(cls, batches: Iterable[Batch], y: Floats, plan: Plan, weights: Floats | None = None) -> Statistics:
        """Read the neighbours of all validation rows once. Shapes: y (n_rows,); weights (n_rows,)."""
        return replace(cls.join([cls._of(batch, y[batch.where], plan) for batch in batches]), weights=weights)

    @classmethod
    def _of(cls, batch: Batch, y: Floats, plan: Plan) -> Statistics:
        variances = {
            name: QUANTITIES[name].prefix_variances(batch.values[name], plan.ks, batch.weights.get(name))
            for name in plan.quantities
        }
        values = {}
        if plan.keeps_values:
            values = {name: QUANTITIES[name].around(batch.values[name], batch.mean) for name in plan.quantities}
        nearest = {} if plan.experts is None else _nearest(batch, plan.experts)
        return cls(batch.mean, y, plan.ks, variances, prefix_means(batch.affinities, plan.ks), values, nearest)

    @classmethod
    def join(cls, parts: Sequence[Statistics]) -> Statistics:
        """Put the rows of several parts together, in their order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.y for part in parts]),
            parts[0].ks,
            _joined([part.variances for part in parts]),
            np.concatenate([part.affinities for part in parts]),
            _joined([part.values for part in parts]),
            _joined([part.nearest for part in parts]),
        )

    @property
    def n_rows(self) -> float:
        """The number of validation rows, as far as they count."""
        return effective_rows(self.weights, len(self.y))

    def scoring(self, given: str | Scoring) -> Scoring:
        """Return the score of ``(y, distribution)`` in which the validation rows have their weights."""
        return resolve_scoring(given, self.weights)

    def evidence(self, variance: Floats) -> Evidence:
        """Return what experts look at, for calibrated variances, (n_rows,)."""
        near = self.nearest
        values = near["targets"], near["shares"], near.get("residuals"), near.get("weights")
        return Evidence(self.mean, np.sqrt(variance), *values)

    def columns(self, quantity: str, ks: Sequence[int]) -> Floats:
        """Return the variances of a quantity for some k, (n_rows, len(ks))."""
        return self.variances[quantity][:, [self.ks.index(k) for k in ks]]


def _nearest(batch: Batch, experts: Experts) -> dict[str, Floats]:
    needs = experts.needs
    found = {quantity: batch.values[quantity][:, :k] for quantity, k in needs.items() if k or quantity == "targets"}
    weights = batch.most_weights
    if weights is not None:
        found["weights"] = weights[:, : max(needs.values())]
    return {**found, "shares": batch.shares(max(needs.values()))}


def _joined(parts: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
