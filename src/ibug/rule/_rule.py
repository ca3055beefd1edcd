"""The rule: what is made of neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._frames import side_by_side
from ibug._options import Support
from ibug._read_only import read_only_property
from ibug._typing import Floats, LeavesOf
from ibug._validation import require
from ibug.calibration import ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._experts import Evidence, scaled_k
from ibug.rule._family import Family
from ibug.rule._plan import most_needed
from ibug.rule._reference import Reference
from ibug.rule._spread import QUANTITIES, SingleSpread, Spread, spread_from_state
from ibug.rule._stack import Stacked
from ibug.rule._targets import TargetRange, TargetSupport

_TUNING_COLUMNS: dict[str, Any] = {
    "spread": str,
    "distribution": str,
    "k": np.int64,
    "score": np.float64,
    "calibrated": np.float64,
    "reason": str,
}

Table = dict[str, NDArray[Any]]

#: What a stack is called where a family has its name.
STACK = "stack"


def tuning_table(columns: Mapping[str, Sequence[Any]] | None = None) -> Table:
    """Return the candidates as columns, ready for a DataFrame; without any, columns of their type."""
    if columns is None:
        return {name: np.array([], kind) for name, kind in _TUNING_COLUMNS.items()}
    return {name: np.array([*columns[name]], kind) for name, kind in _TUNING_COLUMNS.items()}


def with_refused(table: Mapping[str, Iterable[Any]], refused: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the table of candidates with one row more for each that has no score, and the reason why."""
    n = len(refused)
    rest: dict[str, list[Any]] = {"distribution": list(refused), "reason": list(refused.values())}
    rest |= {"spread": [""] * n, "k": [0] * n, "score": [np.nan] * n, "calibrated": [np.nan] * n}
    return {name: [*table[name], *rest[name]] for name in rest}


def expert_table() -> Table:
    """Return the columns of a stack's experts without a row."""
    kinds: dict[str, Any] = {"expert": str, "k": np.int64, "weight": np.float64, "score": np.float64}
    return {name: np.array([], kind) for name, kind in kinds.items()}


@dataclass(frozen=True, eq=False)
class Rule:
    """How a batch of rows with their neighbours becomes a distribution. It knows no model, no index and no data.

    Parameters
    ----------
    spread
        Makes a variance of neighbours.
    family
        The family of the distributions, unless there is a stack.
    k
        The number of neighbours that stand for the rule; a family that looks at neighbours is fitted to these.
    min_variance
        The floor ρ of the variance before calibration.
    gamma, delta
        The calibration: variance ← γ · max(variance, ρ) + δ.
    conformal
        The fitted conformal calibrator, if there is one.
    affinity_threshold
        The affinity score that all but 1 % of the validation rows exceed; NaN with fewer than 100 validation rows.
    tuning
        The candidates that validation rows chose from, as columns.
    stack
        The weights of experts, of which the normal distribution is one, if the distributions are stacks.
    reference
        The sample of validation rows that `IBUGRegressor.monitor` compares new rows with.
    support
        The bounds of the target, which family and stack have.
    """

    spread: Spread
    family: Family
    k: int
    min_variance: float
    gamma: float = 1.0
    delta: float = 0.0
    conformal: ConformalCalibrator | None = None
    affinity_threshold: float = np.nan
    tuning: Table = field(default_factory=tuning_table)
    stack: Stacked | None = None
    reference: Reference = field(default_factory=Reference)
    support: TargetSupport = field(default_factory=TargetSupport)

    @property
    def bounds(self) -> Support:
        """Lower and upper bound of the target, infinite where there is none."""
        return self.support.bounds

    @property
    def support_reason(self) -> str:
        """How the bounds were found, in words."""
        return self.support.reason

    @property
    def distribution_name(self) -> str:
        """``"stack"``, or the name of the family."""
        return self.family.name if self.stack is None else STACK

    @property
    def experts(self) -> Table:
        """The experts of the stack with their weights and own scores, as columns; empty without a stack."""
        return expert_table() if self.stack is None else self.stack.table()

    @read_only_property
    def needs(self) -> Mapping[str, int]:
        """The number of neighbours that a distribution is made of, by quantity."""
        if self.stack is not None:
            return MappingProxyType(most_needed(self.spread.n_neighbors, self.stack.needs))
        shape = {self.spread.shape: self.k} if self.family.needs_neighbors else {}
        return MappingProxyType(most_needed(self.spread.n_neighbors, shape))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "needs"}  # which is made again

    def variance(self, batch: Batch) -> Floats:
        """Return the calibrated variances, (n_rows,)."""
        raw = self.spread.variance(batch.values, batch.weights)
        return self.gamma * np.maximum(raw, self.min_variance) + self.delta

    @property
    def keeps_variance(self) -> bool:
        """Whether `variance` tells the variance of the distributions, which needs no prediction."""
        return self.conformal is None and self.stack is None and self.family.keeps_variance

    @property
    def variance_needs(self) -> Mapping[str, int]:
        """The number of neighbours that `predicted_variance` looks at, by quantity."""
        return self.spread.n_neighbors if self.keeps_variance else self.needs

    def predicted_variance(self, batch: Batch) -> Floats:
        """Return the variances of the distributions, (n_rows,): without making these where `variance` tells them."""
        return self.variance(batch) if self.keeps_variance else self.distribution(batch).var()

    def distribution(self, batch: Batch) -> Distribution:
        """Return the distributions of a batch of rows; the batch has at least the neighbours that `needs` tells."""
        distribution = self._of_family(batch) if self.stack is None else self._of_stack(batch, self.stack)
        if self.conformal is None:
            return distribution
        return self.conformal.transform(distribution, batch.row_context.get("groups"), batch.row_context.get("ratio"))

    def ends(self, distribution: Any, coverage: Any, *, joint: bool = False) -> Floats:
        """Return the ends of the intervals of distributions, (n_rows, 2) or (n_rows, 2, n_coverages)."""
        if joint:
            self.require_boxes()
        return side_by_side(*distribution.interval(coverage))

    def require_boxes(self) -> None:
        """Raise InvalidInputError: boxes are of several targets."""
        raise InvalidInputError("joint=True makes boxes of several targets, and this estimator has one.")

    def quantiles(self, distribution: Any, probabilities: Floats) -> Floats:
        """Return quantiles of distributions, (n_rows, n_probabilities). Shapes: probabilities (n_probabilities,)."""
        return np.asarray(distribution.ppf(probabilities[None, :]))

    def row_context(self, X: Any, leaves: LeavesOf | None = None) -> Mapping[str, NDArray[Any]]:
        """Return what batches of rows must have beside neighbours: groups and likelihood ratios, if any."""
        return {} if self.conformal is None else self.conformal.row_context(X, leaves)

    def _of_family(self, batch: Batch) -> Distribution:
        values = None
        if self.family.needs_neighbors:
            shape = self.spread.shape
            values = QUANTITIES[shape].around(batch.values[shape][:, : self.k], batch.mean)
        return self.family.distribution(batch.mean, self.variance(batch), values)

    def _of_stack(self, batch: Batch, stack: Stacked) -> Distribution:
        k = max(stack.needs.values())
        targets, residuals = batch.values.get("targets"), batch.values.get("residuals")
        if targets is None:  # no expert looks at them
            targets = np.empty((batch.n_rows, 0))
        scale, weights = np.sqrt(self.variance(batch)), batch.most_weights
        evidence = Evidence(batch.mean, scale, targets, batch.shares(k), residuals, weights)
        return stack.distribution(evidence)

    def uncalibrated(self) -> Rule:
        """Return the rule with γ = 1, δ = 0, no stack and no conformal calibration.

        A combination of spreads is a calibration of its own: in its place comes the paper's rule, the variance of the
        neighbours' targets, with the k that scores best before calibration.
        """
        support = self.support.of_family(self.family.name)
        plain = replace(self, gamma=1.0, delta=0.0, conformal=None, stack=None, reference=Reference(), support=support)
        if isinstance(self.spread, SingleSpread):
            return plain
        table = self.tuning
        ours = np.flatnonzero((table["spread"] == "targets") & (table["distribution"] == self.family.name))
        best = ours[np.argmin(np.nan_to_num(table["score"][ours], nan=np.inf))]
        k = int(table["k"][best])
        threshold = plain.affinity_threshold if k == plain.k else np.nan  # which is of the k that it was found with
        return replace(plain, k=k, spread=SingleSpread("targets", k), affinity_threshold=threshold)

    def at_most(self, limits: Mapping[str, int]) -> Rule:
        """Return the same rule for rows that have fewer neighbours; the experts of a stack need theirs."""
        k = min(self.k, limits.get(self.spread.shape, self.k))
        return replace(self, k=k, spread=self.spread.at_most(limits))

    def including(self, later: Sequence[TargetRange], which: str) -> Rule:
        """Return the same; without the bounds of the target, and with a warning, if later targets are outside."""
        (targets,) = later
        support = self.support.including(targets, which)
        if support is self.support:
            return self
        stack = None if self.stack is None else self.stack.bounded(support.bounds)
        return replace(self, stack=stack, support=support)

    def widened(self, share: float, most: int) -> Rule:
        """Return the rule for more training rows: with as many neighbours as are the same share of these.

        What is learned with k of 0.8 n rows holds for k/0.8 of n: a neighbourhood is then as wide as it was. The
        population variance of k targets has the expectation (1 − 1/k) σ², which the factor γ makes equal.
        """
        if share == 1:
            return self

        def number(k: int) -> int:
            return min(scaled_k(k, 1 / share), most)

        gamma, floor, spread = self.gamma, self.min_variance, self.spread.scaled(number)
        if isinstance(self.spread, SingleSpread) and self.spread.quantity == "targets" and self.spread.k > 1:
            ratio = (1 - 1 / self.spread.k) / (1 - 1 / number(self.spread.k))
            gamma, floor = gamma * ratio, floor / ratio
        stack = None if self.stack is None else self.stack.widened(1 / share, most)
        table = {**self.tuning, "k": np.array([number(k) if k else 0 for k in self.tuning["k"].tolist()], np.int64)}
        return replace(
            self, spread=spread, k=number(self.k), min_variance=floor, gamma=gamma, tuning=table, stack=stack
        )

    def with_errors_times(self, factor: Floats) -> Rule:
        """Return the rule for a model whose errors are this many times as large: scales are, neighbours stay.

        Shapes: factor ().
        """
        squared = float(factor) ** 2
        return replace(self, gamma=squared * self.gamma, delta=squared * self.delta)

    def with_k(self, k: int | None) -> Rule:
        """Return the rule with k neighbours; as it is for None."""
        if k is None:
            return self
        spread = replace(self.spread, k=k) if isinstance(self.spread, SingleSpread) else self.spread
        return replace(self, k=k, spread=spread)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {
            "k_": self.k,
            "min_variance_": self.min_variance,
            "gamma_": self.gamma,
            "delta_": self.delta,
            "affinity_threshold_": self.affinity_threshold,
            "spread": self.spread.state(),
            "posterior": self.family.state(),
            "conformal": calibrator_state(self.conformal),
            "tuning": self.tuning,
            "stack": None if self.stack is None else self.stack.state(),
            "reference": self.reference.state(),
            "support": self.support.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Rule:
        """Return the rule that has this state."""
        for name in ("k_", "min_variance_", "gamma_", "delta_", "affinity_threshold_"):
            number = isinstance(state[name], (int, float)) and not isinstance(state[name], bool)
            require(number, f"its {name} is no number")
        require(isinstance(state["k_"], int) and state["k_"] >= 1, "its k is impossible")
        stack = state["stack"]
        return cls(
            spread_from_state(state["spread"]),
            Family.from_state(state["posterior"]),
            state["k_"],
            state["min_variance_"],
            state["gamma_"],
            state["delta_"],
            calibrator_from_state(state["conformal"]),
            state["affinity_threshold_"],
            {str(name): np.asarray(column) for name, column in state["tuning"].items()},
            None if stack is None else Stacked.from_state(stack),
            Reference.from_state(state["reference"]),
            TargetSupport.from_state(state["support"]),
        )
