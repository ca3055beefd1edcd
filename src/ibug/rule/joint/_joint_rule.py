"""The rule for several targets: what is made of neighbours, jointly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._read_only import read_only_property
from ibug._typing import Floats, LeavesOf
from ibug._validation import require
from ibug.calibration import BoxCalibrator, ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.distributions import Distribution, Stack
from ibug.distributions.joint import JointStack
from ibug.exceptions import InvalidInputError
from ibug.neighbors import Batch
from ibug.rule._plan import most_needed
from ibug.rule._reference import Reference
from ibug.rule._rule import STACK, Rule, Table
from ibug.rule._targets import TargetRange
from ibug.rule.joint._joint_stacked import JointStacked


@dataclass(frozen=True, eq=False)
class JointRule:
    """How a batch of rows with their neighbours becomes a joint distribution. It knows no model, no index and no data.

    Parameters
    ----------
    rules : tuple of Rule
        For each target the rule that it would have alone.
    stack : JointStacked
        The weights of these, coupled by a copula, and of joint experts.
    k : int
        The number of neighbours that stand for the rule: the largest of those of the targets.
    conformal_of : tuple of ConformalCalibrator
        The fitted conformal calibrator of each target; empty without.
    boxes : BoxCalibrator or None
        The fitted calibrator of joint boxes; None where there were no validation rows.
    affinity_threshold : float
        The affinity score that all but 1 % of the validation rows exceed; NaN with fewer than 100 validation rows.
    reference : Reference
        What the validation rows were like.
    """

    rules: tuple[Rule, ...]
    stack: JointStacked
    k: int
    conformal_of: tuple[ConformalCalibrator, ...] = ()
    boxes: BoxCalibrator | None = None
    affinity_threshold: float = np.nan
    reference: Reference = field(default_factory=Reference)

    @property
    def n_targets(self) -> int:
        """The number of targets, d."""
        return len(self.rules)

    @property
    def conformal(self) -> tuple[ConformalCalibrator, ...] | None:
        """The conformal calibrators of the targets; None without."""
        return self.conformal_of or None

    @property
    def distribution_name(self) -> str:
        """``"stack"``, or ``"normal"`` where the normal expert has all the weight."""
        return STACK if self.stack.weights[1] < 1 else "normal"

    @property
    def spread(self) -> SimpleNamespace:
        """What variances are made of, with a ``name``: those of all targets, each once."""
        return SimpleNamespace(name=", ".join(dict.fromkeys(rule.spread.name for rule in self.rules)))

    @property
    def min_variance(self) -> Floats:
        """The floors of the variances, (d,)."""
        return np.array([rule.min_variance for rule in self.rules])

    @property
    def gamma(self) -> Floats:
        """The factors of the variances, (d,)."""
        return np.array([rule.gamma for rule in self.rules])

    @property
    def delta(self) -> Floats:
        """The summands of the variances, (d,)."""
        return np.array([rule.delta for rule in self.rules])

    @property
    def tuning(self) -> Table:
        """The candidates of all targets as columns, the number of the ``target`` first."""
        tables = [rule.tuning for rule in self.rules]
        numbers = np.concatenate([np.full(len(table["k"]), j) for j, table in enumerate(tables)])
        return {"target": numbers, **{name: np.concatenate([table[name] for table in tables]) for name in tables[0]}}

    @property
    def experts(self) -> Table:
        """The experts of the stack with their weights and own scores, as columns."""
        return self.stack.table()

    @read_only_property
    def needs(self) -> Mapping[str, int]:
        """The number of neighbours that a distribution is made of, by quantity."""
        return MappingProxyType(most_needed(*(rule.needs for rule in self.rules), self.stack.needs))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "needs"}  # which is made again

    def row_context(self, X: Any, leaves: LeavesOf | None = None) -> Mapping[str, NDArray[Any]]:
        """Return what batches must have beside neighbours: nothing."""
        return {}

    def own(self, batch: Batch) -> tuple[Stack, ...]:
        """Return the targets' own distributions, each as its rule makes them of its neighbours."""
        found: list[Stack] = []
        for j, rule in enumerate(self.rules):
            one = batch.of_target(j, rule.needs)
            made = rule.distribution(one)
            if not isinstance(made, Stack):
                made = self.stack.plain(j, one.mean, np.sqrt(rule.variance(one)))
            found.append(made)
        return tuple(found)

    def distribution(self, batch: Batch) -> JointStack:
        """Return the joint distributions of a batch of rows; conformal calibration is in `marginals` and `box`."""
        return self.stack.distribution(batch, self.own(batch))

    def marginals(self, distribution: JointStack) -> list[Distribution]:
        """Return the distributions of each target, with its conformal calibration if there is one."""
        plain = distribution.marginals()
        if not self.conformal_of:
            return list(plain)
        return [calibrator.transform(one) for calibrator, one in zip(self.conformal_of, plain, strict=True)]

    def box(self, distribution: JointStack, coverage: Any) -> tuple[Floats, Floats]:
        """Return the ends of boxes that hold all targets at once, (n_rows, d) each, or (n_rows, d, m).

        Shapes: coverage (m,).
        """
        return self.require_boxes().box(distribution.marginals(), coverage)

    def require_boxes(self) -> BoxCalibrator:
        """Return the calibrator of boxes, or raise InvalidInputError if there is none."""
        if self.boxes is None:
            raise InvalidInputError(
                "Joint boxes need rows that the model has not seen: pass X_val and y_val to fit, or call recalibrate."
            )
        return self.boxes

    def ends(self, distribution: Any, coverage: Any, *, joint: bool = False) -> Floats:
        """Return the ends of intervals or boxes, (n_rows, d, 2) or (n_rows, d, 2, n_coverages).

        Shapes: coverage (m,).
        """
        if joint:
            return np.stack(self.box(distribution, coverage), axis=2)
        ends = [np.stack(one.interval(coverage), axis=1) for one in self.marginals(distribution)]
        return np.stack(ends, axis=1)

    def quantiles(self, distribution: Any, probabilities: Floats) -> Floats:
        """Return quantiles of each target, (n_rows, d, n_probabilities). Shapes: probabilities (n_probabilities,)."""
        return np.stack([one.ppf(probabilities[None, :]) for one in self.marginals(distribution)], axis=1)

    @property
    def bounds(self) -> Floats:
        """Lower and upper bound of each target, (d, 2), infinite where there is none."""
        return np.array([rule.bounds for rule in self.rules])

    @property
    def support_reason(self) -> list[str]:
        """How the bounds of each target were found, in words."""
        return [rule.support_reason for rule in self.rules]

    def including(self, later: Sequence[TargetRange], which: str) -> JointRule:
        """Return the same; without the bounds of targets, and with a warning, if later ones are outside."""
        rules = tuple(rule.including([one], which) for rule, one in zip(self.rules, later, strict=True))
        pooled = zip(self.stack.pooled, rules, strict=True)
        bounded = tuple(replace(one, support=rule.bounds) for one, rule in pooled)
        return replace(self, rules=rules, stack=replace(self.stack, pooled=bounded))

    @property
    def keeps_variance(self) -> bool:
        """Whether variances can be told without the distributions: they cannot."""
        return False

    @property
    def variance_needs(self) -> Mapping[str, int]:
        """The number of neighbours that `predicted_variance` looks at, by quantity."""
        return self.needs

    def predicted_variance(self, batch: Batch) -> Floats:
        """Return the variances of the distributions, (n_rows, d)."""
        return self.distribution(batch).var()

    def uncalibrated(self) -> JointRule:
        """Return the rule without calibration: the normal expert alone, γ = 1 and δ = 0."""
        weights = np.eye(len(self.stack.weights))[1]
        plain = tuple(replace(rule.uncalibrated(), support=rule.support) for rule in self.rules)
        stack = replace(self.stack, weights=weights, pseudo_rows=None)
        return JointRule(plain, stack, max(rule.k for rule in plain))

    def widened(self, share: float, most: int) -> JointRule:
        """Return the rule for more training rows, as `Rule.widened` does."""
        if share == 1:
            return self
        rules = tuple(rule.widened(share, most) for rule in self.rules)
        stack = replace(self.stack, experts=self.stack.experts.scaled(1 / share, most))
        return replace(self, rules=rules, stack=stack, k=max(rule.k for rule in rules))

    def with_errors_times(self, factor: Floats) -> JointRule:
        """Return the rule for a model whose errors are this many times as large, (d,), as `Rule.with_errors_times`."""
        rules = (
            rule.with_errors_times(one)
            for rule, one in zip(self.rules, np.broadcast_to(factor, self.n_targets), strict=True)
        )
        return replace(self, rules=tuple(rules))

    def with_k(self, k: int | None) -> JointRule:
        """Return the rule with k neighbours; as it is for None."""
        if k is None:
            return self
        return replace(self, k=k, rules=tuple(rule.with_k(k) for rule in self.rules))

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {
            "joint": {
                "rules": [rule.state() for rule in self.rules],
                "stack": self.stack.state(),
                "k_": self.k,
                "conformal": [calibrator_state(one) for one in self.conformal_of],
                "boxes": None if self.boxes is None else self.boxes.state(),
                "affinity_threshold_": self.affinity_threshold,
                "reference": self.reference.state(),
            }
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> JointRule:
        """Return the rule that has this state."""
        own = state["joint"]
        rules = tuple(Rule.from_state(one) for one in own["rules"])
        stack = JointStacked.from_state(own["stack"])
        require(len(rules) == stack.n_targets, "its numbers of targets do not agree")
        k, threshold = own["k_"], own["affinity_threshold_"]
        require(isinstance(k, int) and not isinstance(k, bool) and k >= 1, "its k is impossible")
        require(isinstance(threshold, (int, float)), "its affinity_threshold_ is no number")
        found = [calibrator_from_state(one) for one in own["conformal"]]
        calibrators = tuple(one for one in found if one is not None)
        require(len(calibrators) in (0, len(rules)), "it has not one conformal calibrator for each target")
        boxes = None if own["boxes"] is None else BoxCalibrator.from_state(own["boxes"])
        reference = Reference.from_state(own["reference"])
        return cls(rules, stack, k, calibrators, boxes, float(threshold), reference)
