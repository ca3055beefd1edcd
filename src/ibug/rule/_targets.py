"""One target or several: the same steps, by the functions of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ibug._options import Options
from ibug._typing import Floats
from ibug.neighbors import Batch, ValidationRows
from ibug.rule._facts import TargetFacts
from ibug.rule._learning import conformalized, learn, with_floor, without_validation
from ibug.rule._rule import Rule
from ibug.rule.joint import (
    JointFacts,
    JointRule,
    conformalized_joint,
    joint_with_floor,
    joint_without_validation,
    learn_joint,
)

Facts = TargetFacts | JointFacts
AnyRule = Rule | JointRule


def facts_of(y: Floats, options: Options) -> Facts:
    """Look at the training targets, (n,), or (n, d) of several targets.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, d)
        The targets.
    options
        What was asked for.
    """
    return TargetFacts.of(y, options) if y.ndim == 1 else JointFacts.of(y, options)


def learn_rule(
    rows: ValidationRows, options: Options, facts: Facts, *, has_residuals: bool, own_residuals: bool = False
) -> AnyRule:
    """Let validation rows choose and calibrate.

    Parameters
    ----------
    rows
        The validation rows, with their neighbours.
    options
        What was asked for.
    facts
        The training targets.
    has_residuals
        Whether training rows have honest residuals.
    own_residuals
        Whether these were made by the model itself.
    """
    kinds = {"has_residuals": has_residuals, "own_residuals": own_residuals}
    if isinstance(facts, JointFacts):
        return learn_joint(rows, options, facts, **kinds)
    return learn(rows, options, facts, **kinds)


def conformalize(rule: AnyRule, rows: ValidationRows, options: Options) -> AnyRule:
    """Return the rule with conformal calibration fitted to validation rows, if one was asked for.

    Parameters
    ----------
    rule
        The rule, without conformal calibration.
    rows
        Validation rows.
    options
        What was asked for.
    """
    if isinstance(rule, JointRule):
        return conformalized_joint(rule, rows, options)
    return conformalized(rule, rows, options)


def rule_without_validation(options: Options, facts: Facts, n_neighbors: int) -> AnyRule:
    """Return the rule that was asked for, not calibrated; its floor is yet to be found.

    Parameters
    ----------
    options
        What was asked for.
    facts
        The training targets.
    n_neighbors
        The number of rows that can be neighbours.
    """
    if isinstance(facts, JointFacts):
        return joint_without_validation(options, facts, n_neighbors)
    return without_validation(options, facts, n_neighbors)


def rule_with_floor(rule: AnyRule, batches: Iterable[Batch], facts: Facts) -> AnyRule:
    """Return the rule with what some training rows tell: the floors of its variances.

    Parameters
    ----------
    rule
        The rule without a floor.
    batches
        Some training rows, with their neighbours.
    facts
        The training targets.
    """
    if isinstance(rule, JointRule):
        assert isinstance(facts, JointFacts), "rule and facts are of the same targets"
        return joint_with_floor(rule, batches, facts)
    assert isinstance(facts, TargetFacts), "rule and facts are of the same target"
    return with_floor(rule, batches, facts)


def rule_from_state(state: Mapping[str, Any]) -> AnyRule:
    """Return the rule that has this state, of one target or of several.

    Parameters
    ----------
    state : dict
        What the rule's `state` has returned.
    """
    return JointRule.from_state(state) if "joint" in state else Rule.from_state(state)
