"""One target or several: the same steps, by the functions of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ibug._options import Options
from ibug._typing import Floats
from ibug.rule._learning import conformalized, learn, with_floor, without_validation
from ibug.rule._rule import Rule
from ibug.rule._targets import TargetRange, TargetSummary
from ibug.rule.joint._facts import JointFacts
from ibug.rule.joint._joint_rule import JointRule
from ibug.rule.joint._learning import conformalized_joint, joint_with_floor, joint_without_validation, learn_joint

Facts = TargetSummary | JointFacts
AnyRule = Rule | JointRule


@dataclass(frozen=True)
class RuleMaker:
    """The steps that make a rule; their parameters are those of the functions in `_learning`.

    Parameters
    ----------
    learn : function of (rows, options, facts, has_residuals, own_residuals)
        Lets validation rows choose and calibrate.
    conformalized : function of (rule, rows, options)
        Adds conformal calibration, if one was asked for.
    without_validation : function of (options, facts, n_neighbors)
        Makes the rule that was asked for, not calibrated; its floor is yet to be found.
    with_floor : function of (rule, batches, facts)
        Adds what some training rows tell: the floors of variances.
    """

    learn: Callable[..., AnyRule]
    conformalized: Callable[..., AnyRule]
    without_validation: Callable[..., AnyRule]
    with_floor: Callable[..., AnyRule]


_OF_ONE = RuleMaker(learn, conformalized, without_validation, with_floor)
_OF_SEVERAL = RuleMaker(learn_joint, conformalized_joint, joint_without_validation, joint_with_floor)


def maker_of(facts: Facts) -> RuleMaker:
    """Return the steps that make a rule of such targets: one, or several."""
    return _OF_SEVERAL if isinstance(facts, JointFacts) else _OF_ONE


def facts_of(y: Floats, options: Options) -> Facts:
    """Look at the training targets, (n,), or (n, d) of several targets. Shapes: y (n,)."""
    return TargetSummary.of(y, options) if y.ndim == 1 else JointFacts.of(y, options)


def ranges_of(y: Floats) -> list[TargetRange]:
    """Return the range of each target. Shapes: y (n,)."""
    return [TargetRange.of(column) for column in y.reshape(len(y), -1).T]


def rule_from_state(state: Mapping[str, Any]) -> AnyRule:
    """Return the rule that has this state, of one target or of several."""
    return JointRule.from_state(state) if "joint" in state else Rule.from_state(state)
