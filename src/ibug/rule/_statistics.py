"""What the neighbours of validation rows say, for all candidates at once; statistics of several parts join exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibug._typing import Floats
from ibug._weights import effective_rows
from ibug.metrics import Scoring, resolve_scoring
from ibug.neighbors import Batch
from ibug.rule._experts import Evidence, Experts
from ibug.rule._plan import Plan
from ibug.rule._spread import Spread, around, prefix_means, prefix_variances


@dataclass(frozen=True, eq=False)
class TargetStatistics:
    """What the neighbours of validation rows say of one target."""

    mean: Floats  # (n_rows,) predictions
    y: Floats  # (n_rows,) observed values
    ks: tuple[int, ...]  # the numbers of neighbours
    variances: Mapping[str, Floats]  # by quantity, (n_rows, len(ks))
    values: Mapping[str, Floats]  # by quantity, (n_rows, max(ks)), where families need them; else empty
    # The neighbours' "targets", "shares" and "residuals" that experts look at, and "weights" where they have some, each
    # (n_rows, k); empty without a stack.
    nearest: Mapping[str, Floats]
    weights: Floats | None = None  # (n_rows,) of the rows, all above zero; None where they count equally

    @classmethod
    def of(cls, batch: Batch, y: Floats, plan: Plan) -> TargetStatistics:
        """Read the neighbours of a batch of rows. Shapes: y (n_rows,)."""
        variances = {
            name: prefix_variances(name, batch.values[name], plan.ks, batch.weights.get(name))
            for name in plan.quantities
        }
        values = {}
        if plan.keeps_values:
            values = {name: around(name, batch.values[name], batch.mean) for name in plan.quantities}
        nearest = {} if plan.experts is None else _nearest(batch, plan.experts)
        return cls(batch.mean, y, plan.ks, variances, values, nearest)

    @classmethod
    def join(cls, parts: Sequence[TargetStatistics], weights: Floats | None) -> TargetStatistics:
        """Put the rows of several parts together, in their order. Shapes: weights (n_rows,)."""
        return cls(
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.y for part in parts]),
            parts[0].ks,
            _joined([part.variances for part in parts]),
            _joined([part.values for part in parts]),
            _joined([part.nearest for part in parts]),
            weights,
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

    def variance(self, spread: Spread) -> Floats:
        """Return the variances that a spread makes, before calibration, (n_rows,)."""
        return spread.combine(np.stack([self.columns(quantity, [k])[:, 0] for quantity, k in spread.features], axis=1))


@dataclass(frozen=True, eq=False)
class Statistics:
    """What the neighbours of validation rows say of each target, and of several together."""

    targets: tuple[TargetStatistics, ...]
    affinities: Floats  # (n_rows, len(ks)) the mean affinity of the first k, in all trees
    # What experts on several targets look at: "targets" and "residuals" (n_rows, k, d), and "shares" (n_rows, k) in all
    # trees; empty for one target.
    vectors: Mapping[str, Floats]

    @classmethod
    def collect(
        cls, batches: Iterable[Batch], y: Floats, plans: Sequence[Plan], weights: Floats | None = None
    ) -> Statistics:
        """Read the neighbours of all validation rows once. Shapes: y (n_rows,) or (n_rows, d); weights (n_rows,)."""
        columns = y.reshape(len(y), -1).T
        return cls.join([cls._of(batch, columns[:, batch.where], plans) for batch in batches], weights)

    @classmethod
    def _of(cls, batch: Batch, columns: Floats, plans: Sequence[Plan]) -> Statistics:
        targets = tuple(
            TargetStatistics.of(batch.of_target(j, plan.needs), column, plan)
            for j, (plan, column) in enumerate(zip(plans, columns, strict=True))
        )
        experts = plans[0].experts
        vectors = {} if experts is None or len(plans) == 1 else _vectors(batch, experts)
        return cls(targets, prefix_means(batch.affinities, plans[0].ks), vectors)

    @classmethod
    def join(cls, parts: Sequence[Statistics], weights: Floats | None = None) -> Statistics:
        """Put the rows of several parts together, in their order. Shapes: weights (n_rows,)."""
        if len(parts) == 1:
            targets = tuple(replace(one, weights=weights) for one in parts[0].targets)
            return replace(parts[0], targets=targets)
        by_target = zip(*(part.targets for part in parts), strict=True)
        targets = tuple(TargetStatistics.join(some, weights) for some in by_target)
        affinities = np.concatenate([part.affinities for part in parts])
        return cls(targets, affinities, _joined([part.vectors for part in parts]))

    @property
    def weights(self) -> Floats | None:
        """The weights of the validation rows, (n_rows,); None where they count equally."""
        return self.targets[0].weights


def _nearest(batch: Batch, experts: Experts) -> dict[str, Floats]:
    """Return what the experts of one target look at."""
    needs = experts.needs
    most = max(needs.values())
    found = {quantity: batch.values[quantity][:, :k] for quantity, k in needs.items() if k or quantity == "targets"}
    weights = batch.most_weights
    if weights is not None:
        found["weights"] = weights[:, :most]
    return {**found, "shares": batch.shares(most)}


def _vectors(batch: Batch, experts: Experts) -> dict[str, Floats]:
    """Return what experts on several targets look at."""
    most = max(experts.needs.values())  # copulas of rows look at as many residuals as experts look at neighbours
    found = {quantity: batch.vectors(quantity, most) for quantity, k in experts.needs.items() if k}
    return {**found, "shares": batch.shares(most)}


def _joined(parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
