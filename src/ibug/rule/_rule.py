"""The rule: how rows with their neighbours become distributions, a part for each target and a coupling of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._frames import side_by_side
from ibug._read_only import read_only_property
from ibug._typing import Floats, LeavesOf
from ibug._validation import require
from ibug.calibration import BoxCalibrator, ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.distributions import Distribution, Stack
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._coupling import Coupling
from ibug.rule._experts import Evidence, Pooled, scaled_k
from ibug.rule._family import Family
from ibug.rule._plan import most_needed
from ibug.rule._reference import Reference
from ibug.rule._spread import Spread, around
from ibug.rule._stack import StackRule, normal_stack
from ibug.rule._targets import TargetRange, TargetSupport

Columns = dict[str, NDArray[Any]]

_TUNING: dict[str, Any] = {
    "spread": str,
    "distribution": str,
    "k": np.int64,
    "score": np.float64,
    "calibrated": np.float64,
    "reason": str,
}
_EXPERTS: dict[str, Any] = {"expert": str, "k": np.int64, "weight": np.float64, "score": np.float64}
_NUMBERS = ("k", "min_variance", "gamma", "delta")

# What a rule makes of itself when it is first asked for, and cannot be pickled.
_MADE_AGAIN = ("needs", "variance_needs")

#: What a stack is called where a family has its name.
STACK = "stack"


def tuning_table(candidates: Sequence[Mapping[str, Any]] = ()) -> Columns:
    """Return the candidates as columns, ready for a DataFrame."""
    return {name: np.array([one[name] for one in candidates], kind) for name, kind in _TUNING.items()}


def refused(distribution: str, reason: str, spread: str = "") -> dict[str, Any]:
    """Return a candidate without a score, and the reason why."""
    unknown = {"k": 0, "score": np.nan, "calibrated": np.nan}
    return {"spread": spread, "distribution": distribution, **unknown, "reason": reason}


def joined(distributions: Sequence[Any]) -> Any:
    """Return the distributions of several batches as one."""
    if not distributions:
        raise InvalidInputError("There are no rows: every partition is empty.")
    return type(distributions[0]).concatenate(distributions)


@dataclass(frozen=True, eq=False)
class TargetRule:
    """How neighbours become the distributions of one target."""

    spread: Spread
    family: Family  # of the distributions, unless there is a stack
    k: int  # the number of neighbours that stand for the rule; a family that looks at neighbours is fitted to these
    min_variance: float  # the floor ρ of the variance before calibration
    gamma: float = 1.0  # the calibration: variance ← γ · max(variance, ρ) + δ
    delta: float = 0.0
    stack: StackRule | None = None  # experts, of which the normal distribution is one, if the distributions are stacks
    conformal: ConformalCalibrator | None = None  # fitted
    tuning: Columns = field(default_factory=tuning_table)  # the candidates that validation rows chose from
    support: TargetSupport = field(default_factory=TargetSupport)  # which family and stack have

    @property
    def distribution_name(self) -> str:
        """``"stack"``, or the name of the family."""
        return self.family.name if self.stack is None else STACK

    @read_only_property
    def needs(self) -> dict[str, int]:
        """The number of neighbours that a distribution is made of, by quantity."""
        if self.stack is not None:
            return most_needed(self.spread.needs, self.stack.needs)
        return most_needed(self.spread.needs, {self.spread.quantity: self.k} if self.family.needs_neighbors else {})

    @read_only_property
    def keeps_variance(self) -> bool:
        """Whether `variance` is that of the distributions, and needs no prediction."""
        return self.conformal is None and self.stack is None and self.family.keeps_variance

    def calibrated(self, variance: Floats) -> Floats:
        """Return the calibrated variances for those that the spread makes, (n_rows,)."""
        return self.gamma * np.maximum(variance, self.min_variance) + self.delta

    def variance(self, batch: Batch) -> Floats:
        """Return the calibrated variances, (n_rows,)."""
        return self.calibrated(self.spread.variance(batch.values, batch.weights))

    def before_conformal(self, batch: Batch) -> Distribution:
        """Return the distributions of a batch of one target, without conformal calibration."""
        variance = self.variance(batch)
        if self.stack is not None:
            return self._stack(self.stack, batch, variance)
        values = None
        if self.family.needs_neighbors:
            quantity = self.spread.quantity
            values = around(quantity, batch.values[quantity][:, : self.k], batch.mean)
        return self.family.distribution(batch.mean, variance, values)

    def stack_of(self, batch: Batch, pooled: Pooled) -> Stack:
        """Return the same as stacks, also where they are normal distributions: a coupling takes these."""
        variance = self.variance(batch)
        if self.stack is None:
            return normal_stack(batch.mean, np.sqrt(variance), pooled)
        return self._stack(self.stack, batch, variance)

    @staticmethod
    def _stack(stack: StackRule, batch: Batch, variance: Floats) -> Stack:
        """Return the distributions of a stack. Shapes: variance (n_rows,)."""
        values, shares = batch.values, batch.shares(max(stack.needs.values()))
        targets = values["targets"] if "targets" in values else np.empty((batch.n_rows, 0))
        scale, residuals = np.sqrt(variance), values.get("residuals")
        return stack.distribution(Evidence(batch.mean, scale, targets, shares, residuals, batch.most_weights))

    def conformalized(self, distribution: Distribution, row_context: Mapping[str, NDArray[Any]]) -> Distribution:
        """Return the distributions with conformal calibration, if there is one."""
        if self.conformal is None:
            return distribution
        return self.conformal.transform(distribution, row_context.get("groups"), row_context.get("ratio"))

    def uncalibrated(self) -> TargetRule:
        """Return the rule with γ = 1, δ = 0, no stack and no conformal calibration; see `Rule.uncalibrated`."""
        support = self.support.of_family(self.family.name)
        plain = replace(self, gamma=1.0, delta=0.0, conformal=None, stack=None, support=support)
        if self.spread.combination is None:
            return plain
        table = self.tuning
        ours = np.flatnonzero((table["spread"] == "targets") & (table["distribution"] == self.family.name))
        k = int(table["k"][ours[np.argmin(np.nan_to_num(table["score"][ours], nan=np.inf))]])
        return replace(plain, k=k, spread=Spread.of("targets", k))

    def at_most(self, limits: Mapping[str, int]) -> TargetRule:
        """Return the same rule for rows that have fewer neighbours; the experts of a stack need theirs."""
        spread = self.spread.scaled(lambda quantity, k: min(k, limits.get(quantity, k)))
        return replace(self, k=min(self.k, limits.get(spread.quantity, self.k)), spread=spread)

    def including(self, later: TargetRange, which: str) -> TargetRule:
        """Return the same; without the bounds of the target, and with a warning, if later targets are outside."""
        support = self.support.including(later, which)
        if support is self.support:
            return self
        return replace(self, stack=None if self.stack is None else self.stack.bounded(support.bounds), support=support)

    def with_more_neighbors(self, share: float, most: int) -> TargetRule:
        """Return the rule with as many neighbours as are the same share of more training rows."""

        def number(k: int) -> int:
            return min(scaled_k(k, 1 / share), most)

        gamma, floor, before = self.gamma, self.min_variance, self.spread
        # The population variance of k targets has the expectation (1 − 1/k) σ², which the factor γ makes equal.
        if before.combination is None and before.quantity == "targets" and before.k > 1:
            ratio = (1 - 1 / before.k) / (1 - 1 / number(before.k))
            gamma, floor = gamma * ratio, floor / ratio
        return replace(
            self,
            spread=before.scaled(lambda _, k: number(k)),
            k=number(self.k),
            min_variance=floor,
            gamma=gamma,
            tuning={**self.tuning, "k": np.array([number(k) if k else 0 for k in self.tuning["k"].tolist()], np.int64)},
            stack=None if self.stack is None else self.stack.with_more_neighbors(1 / share, most),
        )

    def with_errors_times(self, factor: float) -> TargetRule:
        """Return the rule for a model whose errors are this many times as large: scales are, neighbours stay."""
        squared = float(factor) ** 2
        return replace(self, gamma=squared * self.gamma, delta=squared * self.delta)

    def with_k(self, k: int) -> TargetRule:
        """Return the rule with k neighbours."""
        spread = self.spread if self.spread.combination is not None else Spread.of(self.spread.quantity, k)
        return replace(self, k=k, spread=spread)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {
            **{name: getattr(self, name) for name in (*_NUMBERS, "tuning")},
            "spread": self.spread.state(),
            "family": self.family.state(),
            "stack": None if self.stack is None else self.stack.state(),
            "conformal": calibrator_state(self.conformal),
            "support": self.support.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TargetRule:
        """Return the rule that has this state; impossible values are refused."""
        _require_numbers(state, *_NUMBERS)
        require(isinstance(state["k"], int) and state["k"] >= 1, "its k is impossible")
        return cls(
            Spread.from_state(state["spread"]),
            Family.from_state(state["family"]),
            **{name: state[name] for name in _NUMBERS},
            stack=None if state["stack"] is None else StackRule.from_state(state["stack"]),
            support=TargetSupport.from_state(state["support"]),
            conformal=calibrator_from_state(state["conformal"]),
            tuning={str(name): np.asarray(column) for name, column in state["tuning"].items()},
        )


def _of_parts(path: str, doc: str) -> Any:
    """Return a property of a rule: what its parts have under a dotted name, as it is for one target, else an array."""
    get = attrgetter(path)

    def value(rule: Rule) -> Any:
        return get(rule.parts[0]) if rule.coupling is None else np.array([get(part) for part in rule.parts])

    return property(value, doc=doc)


@dataclass(frozen=True, eq=False)
class Rule:
    """How a batch of rows with their neighbours becomes distributions. It knows no model, no index and no data.

    Parameters
    ----------
    parts : tuple of TargetRule
        For each target the rule that it has, or would have alone.
    coupling : Coupling or None
        How the parts of several targets become one joint distribution; None for one target.
    affinity_threshold : float
        The affinity score that all but 1 % of the validation rows exceed; NaN with fewer than 100 validation rows.
    reference : Reference
        The sample of validation rows that `IBUGRegressor.monitor` compares new rows with.
    """

    parts: tuple[TargetRule, ...]
    coupling: Coupling | None = None
    affinity_threshold: float = np.nan
    reference: Reference = field(default_factory=Reference)

    @read_only_property
    def needs(self) -> Mapping[str, int]:
        """The number of neighbours that a distribution is made of, by quantity."""
        joint = {} if self.coupling is None else self.coupling.needs
        return MappingProxyType(most_needed(*(part.needs for part in self.parts), joint))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _MADE_AGAIN}

    def distribution(self, batch: Batch) -> Any:
        """Return the distributions of a batch that has the neighbours in `needs`; of several targets a JointStack.

        Those of one target have their conformal calibration. A joint distribution has none: `marginals` have it.
        """
        return self._conformalized(self._before_conformal(batch), batch.row_context)

    def _before_conformal(self, batch: Batch) -> Any:
        """Return the distributions of a batch without conformal calibration."""
        ones = [batch.of_target(j, part.needs) for j, part in enumerate(self.parts)]
        if self.coupling is None:
            return self.parts[0].before_conformal(ones[0])
        known = zip(self.parts, ones, self.coupling.pooled, strict=True)
        return self.coupling.distribution(batch, tuple(part.stack_of(one, pooled) for part, one, pooled in known))

    def _conformalized(self, distribution: Any, row_context: Mapping[str, NDArray[Any]]) -> Any:
        """Return the distributions of one target with conformal calibration; a joint distribution as it is."""
        return distribution if self.coupling is not None else self.parts[0].conformalized(distribution, row_context)

    def marginals(self, distribution: Any) -> list[Distribution]:
        """Return the distributions of each target, with conformal calibration, of what `distribution` has returned."""
        if self.coupling is None:
            return [distribution]  # which has it already
        marginals = zip(self.parts, distribution.marginals(), strict=True)
        return [part.conformalized(one, {}) for part, one in marginals]

    def ends(self, distribution: Any, coverage: Any, *, joint: bool = False) -> Floats:
        """Return the ends of intervals or boxes, (n_rows, 2) or (n_rows, 2, n_coverages).

        Those of several targets have one axis more, (n_rows, n_targets, …). Shapes: coverage () or (n_coverages,).
        """
        if joint:
            return np.stack(self.require_boxes().box(distribution.marginals(), coverage), axis=2)
        return self._by_target([side_by_side(*one.interval(coverage)) for one in self.marginals(distribution)])

    def quantiles(self, distribution: Any, probabilities: Floats) -> Floats:
        """Return quantiles, (n_rows, n_probabilities); of several targets, (n_rows, n_targets, n_probabilities).

        Shapes: probabilities (n_probabilities,).
        """
        return self._by_target([np.asarray(one.ppf(probabilities[None, :])) for one in self.marginals(distribution)])

    def _by_target(self, values: list[Floats]) -> Floats:
        return values[0] if self.coupling is None else np.stack(values, axis=1)

    @property
    def boxes(self) -> BoxCalibrator | None:
        """The fitted calibrator of joint boxes; None for one target, and where there were no validation rows."""
        return None if self.coupling is None else self.coupling.boxes

    def require_boxes(self) -> BoxCalibrator:
        """Return the calibrator of boxes, or raise InvalidInputError if there is none."""
        if self.coupling is None:
            raise InvalidInputError("Joint boxes hold several targets at once, and this rule has one: leave joint out.")
        if self.boxes is None:
            raise InvalidInputError(
                "Joint boxes need rows that the model has not seen: pass X_val and y_val to fit, or call recalibrate."
            )
        return self.boxes

    @property
    def keeps_variance(self) -> bool:
        """Whether variances need neither predictions nor distributions."""
        return self.coupling is None and self.parts[0].keeps_variance

    @property
    def spread_needs(self) -> dict[str, int]:
        """The number of neighbours that variances are made of, by quantity."""
        return most_needed(*(part.spread.needs for part in self.parts))

    @read_only_property
    def variance_needs(self) -> Mapping[str, int]:
        """The number of neighbours that `predicted_variance` looks at, by quantity."""
        return MappingProxyType(self.spread_needs) if self.keeps_variance else self.needs

    def predicted_variance(self, batch: Batch) -> Floats:
        """Return the variances of the distributions, (n_rows,), or (n_rows, n_targets) of several targets."""
        variance: Floats = self.parts[0].variance(batch) if self.keeps_variance else self.distribution(batch).var()
        return variance

    def row_context(self, X: Any, leaves: LeavesOf | None = None) -> Mapping[str, NDArray[Any]]:
        """Return what batches must have of the rows themselves: groups and likelihood ratios, if any."""
        conformal = self.parts[0].conformal
        return {} if conformal is None else conformal.row_context(X, leaves)

    @property
    def k(self) -> int:
        """The number of neighbours that stand for the rule: the largest of those of the targets."""
        return max(part.k for part in self.parts)

    @property
    def spread_name(self) -> str:
        """What variances are made of: those of all targets, each once."""
        return ", ".join(dict.fromkeys(part.spread.name for part in self.parts))

    @property
    def distribution_name(self) -> str:
        """``"stack"``, or the name of the family."""
        if self.coupling is None:
            return self.parts[0].distribution_name
        return STACK if self.coupling.weights[1] < 1 else "normal"

    @property
    def experts(self) -> Columns:
        """The experts of the stack with their weights and own scores, as columns; empty without a stack."""
        stack = self.parts[0].stack if self.coupling is None else self.coupling
        return {name: np.array([], kind) for name, kind in _EXPERTS.items()} if stack is None else stack.table()

    @property
    def tuning(self) -> Columns:
        """The candidates as columns; of several targets, the number of the ``target`` first."""
        tables = [part.tuning for part in self.parts]
        if self.coupling is None:
            return tables[0]
        numbers = np.concatenate([np.full(len(table["k"]), j) for j, table in enumerate(tables)])
        return {"target": numbers, **{name: np.concatenate([table[name] for table in tables]) for name in tables[0]}}

    min_variance = _of_parts("min_variance", "The floor of the variance, or (n_targets,).")
    gamma = _of_parts("gamma", "The factor of the variance, or (n_targets,).")
    delta = _of_parts("delta", "The summand of the variance, or (n_targets,).")
    bounds = _of_parts("support.bounds", "Lower and upper bound of the target, infinite for none, or (n_targets, 2).")

    @property
    def support_reason(self) -> Any:
        """How the bounds were found, in words; a list for several targets."""
        reasons = [part.support.reason for part in self.parts]
        return reasons[0] if self.coupling is None else reasons

    @property
    def conformal(self) -> Any:
        """The fitted conformal calibrator, or a tuple with one for each of several targets; None without."""
        calibrators = tuple(part.conformal for part in self.parts)
        return calibrators[0] if self.coupling is None or calibrators[0] is None else calibrators

    def uncalibrated(self) -> Rule:
        """Return the rule with γ = 1, δ = 0, no stack and no conformal calibration.

        A combination of spreads is a calibration of its own: in its place comes the paper's rule, the variance of the
        neighbours' targets, with the k that scores best before calibration.
        """
        plain = Rule(tuple(part.uncalibrated() for part in self.parts))
        if self.coupling is not None:  # which has the bounds in any case
            pairs = zip(plain.parts, self.parts, strict=True)
            plain = Rule(tuple(replace(one, support=part.support) for one, part in pairs), self.coupling.normal_only())
        # The threshold is that of the k that it was found with.
        return replace(plain, affinity_threshold=self.affinity_threshold if plain.k == self.k else np.nan)

    def at_most(self, limits: Mapping[str, int]) -> Rule:
        """Return the same rule for rows that have fewer neighbours; the experts of a stack need theirs."""
        return replace(self, parts=tuple(part.at_most(limits) for part in self.parts))

    def including(self, later: Sequence[TargetRange], which: str) -> Rule:
        """Return the same; without the bounds of targets, and with a warning, if later ones are outside."""
        parts = tuple(part.including(one, which) for part, one in zip(self.parts, later, strict=True))
        supports = [part.support.bounds for part in parts]
        return replace(self, parts=parts, coupling=None if self.coupling is None else self.coupling.bounded(supports))

    def with_more_neighbors(self, share: float, most: int) -> Rule:
        """Return the rule for more training rows: with as many neighbours as are the same share of these."""
        # What is learned with k of 0.8 n rows holds for k/0.8 of n: a neighbourhood is then as wide as it was.
        if share == 1:
            return self
        parts = tuple(part.with_more_neighbors(share, most) for part in self.parts)
        coupling = None if self.coupling is None else self.coupling.with_more_neighbors(1 / share, most)
        return replace(self, parts=parts, coupling=coupling)

    def with_errors_times(self, factor: Floats) -> Rule:
        """Return the rule for a model whose errors are this many times as large: scales are, neighbours stay.

        Shapes: factor () or (n_targets,).
        """
        factors = np.broadcast_to(factor, len(self.parts))
        pairs = zip(self.parts, factors, strict=True)
        return replace(self, parts=tuple(part.with_errors_times(one) for part, one in pairs))

    def with_k(self, k: int | None) -> Rule:
        """Return the rule with k neighbours; as it is for None."""
        return self if k is None else replace(self, parts=tuple(part.with_k(k) for part in self.parts))

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {
            "parts": [part.state() for part in self.parts],
            "coupling": None if self.coupling is None else self.coupling.state(),
            "affinity_threshold": self.affinity_threshold,
            "reference": self.reference.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Rule:
        """Return the rule that has this state; impossible values are refused."""
        parts = tuple(TargetRule.from_state(part) for part in state["parts"])
        coupling = None if state["coupling"] is None else Coupling.from_state(state["coupling"])
        n_targets = 1 if coupling is None else len(coupling.pooled)
        require(len(parts) == n_targets, "its numbers of targets do not agree")
        n_calibrated = sum(part.conformal is not None for part in parts)
        require(n_calibrated in (0, n_targets), "it has not one conformal calibrator for each target")
        _require_numbers(state, "affinity_threshold")
        return cls(parts, coupling, float(state["affinity_threshold"]), Reference.from_state(state["reference"]))


def _require_numbers(state: Mapping[str, Any], *names: str) -> None:
    for name in names:
        number = isinstance(state[name], (int, float)) and not isinstance(state[name], bool)
        require(number, f"its {name} is no number")


def one_target(rule: Rule, action: str) -> Rule:
    """Return the rule, or raise InvalidInputError if it is one of several targets."""
    if rule.coupling is not None:
        raise InvalidInputError(
            f"{action} is for one target, and this estimator has {len(rule.parts)}: fit an IBUGRegressor for one of "
            "them."
        )
    return rule
