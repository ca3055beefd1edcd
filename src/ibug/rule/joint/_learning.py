"""A joint rule from validation rows, or from what was asked for where there are none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug.calibration import BoxCalibrator
from ibug.distributions.joint import JointStack
from ibug.neighbors import Batch, ValidationRows
from ibug.rule._experts import Experts, Pooled, pool, resolution
from ibug.rule._learning import affinity_threshold, choose, with_floor, without_validation
from ibug.rule._plan import Plan, most_needed
from ibug.rule._reference import Reference, kept
from ibug.rule._rule import Rule
from ibug.rule._spread import CombinedSpread, SingleSpread, prefix_means
from ibug.rule._stack import too_few
from ibug.rule._statistics import Statistics
from ibug.rule.joint._facts import JointFacts
from ibug.rule.joint._fit import JointEvidence, fit_joint, normal_only_joint
from ibug.rule.joint._joint_rule import JointRule
from ibug.rule.joint._joint_stacked import JointStacked

_NORMAL_ONLY = Experts((), (), False)


def learn_joint(
    rows: ValidationRows, options: Options, facts: JointFacts, *, has_residuals: bool, own_residuals: bool = False
) -> JointRule:
    """Let validation rows choose and calibrate the spread of each target, and weigh joint experts."""
    known = {"has_residuals": has_residuals, "own_residuals": own_residuals}
    plans = [Plan.of(options, one, rows.source.n_neighbors, **known, share=rows.share) for one in facts.targets]
    seen = _Seen.of(rows, plans)
    rules = tuple(
        replace(choose(plan, own, n_trees), support=plan.facts.support)  # which the joint stack has in any case
        for plan, own, n_trees in zip(plans, seen.statistics, seen.n_trees, strict=True)
    )
    stack = _stacked(plans[0], rules, seen, rows, facts)
    k = max(rule.k for rule in rules)
    similarity = seen.affinities[:, plans[0].ks.index(k)] / rows.source.n_trees
    threshold = affinity_threshold(similarity, rows.weights)
    means = np.stack([one.mean for one in seen.statistics], axis=1)
    reference = Reference(kept(similarity, rows.weights), kept(means, rows.weights))
    rule = JointRule(rules, stack, k, (), None, threshold, reference)
    # Without conformal calibration the same rows tell the size of boxes, which is then an approximation.
    return rule if options.conformal is not None else _with_boxes(rule, rows)


def conformalized_joint(rule: JointRule, rows: ValidationRows, options: Options) -> JointRule:
    """Return the rule with conformal calibration fitted to validation rows, if one was asked for: targets and boxes."""
    if options.conformal is None:
        return rule
    found = _predicted(rule, rows)
    calibrators = tuple(
        options.conformal_calibrator().fit(one, rows.y[:, j], None, rows.weights)
        for j, one in enumerate(found.marginals())
    )
    boxes = BoxCalibrator.fit(found.marginals(), rows.y, rows.weights)
    return replace(rule, conformal_of=calibrators, boxes=boxes)


def joint_without_validation(options: Options, facts: JointFacts, n_neighbors: int) -> JointRule:
    """Return the rule that was asked for, not calibrated: normal, with the neighbours' spread of each target.

    Its floors and correlations are yet to be found, see `joint_with_floor`.
    """
    rules = tuple(replace(without_validation(options, one, n_neighbors), support=one.support) for one in facts.targets)
    d = len(rules)
    pooled = tuple(Pooled(np.empty(0), support=one.support.bounds) for one in facts.targets)
    stack = normal_only_joint(_NORMAL_ONLY, pooled, np.empty((0, d)), np.eye(d), np.eye(d), facts.unit)
    stack = replace(stack, reason=too_few(0))
    return JointRule(rules, stack, rules[0].k)


def joint_with_floor(rule: JointRule, batches: Iterable[Batch], facts: JointFacts) -> JointRule:
    """Return the rule with floors of the variances, and with the correlations of targets within neighbourhoods."""
    some = list(batches)
    rules = tuple(
        with_floor(one, [batch.of_target(j, one.spread.n_neighbors) for batch in some], facts.targets[j])
        for j, one in enumerate(rule.rules)
    )
    total = np.zeros((len(rules), len(rules)))
    for batch in some:
        quantity, k = next(iter(rule.rules[0].spread.n_neighbors.items()))
        vectors = batch.tables[quantity][batch.rows[:, :k]] / facts.unit
        away = vectors - vectors.mean(axis=1, keepdims=True)
        total += np.einsum("nki,nkj->ij", away, away)
    deviation = np.sqrt(np.diag(total))
    size = np.outer(deviation, deviation)
    correlation = total / np.where(size > 0, size, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return replace(rule, rules=rules, stack=replace(rule.stack, correlation=correlation))


@dataclass(frozen=True, eq=False)
class _Seen:
    """What the neighbours of all validation rows say: of each target by itself, and of all together."""

    statistics: list[Statistics]  # by target, of the neighbours in its own trees
    n_trees: list[int]  # by target
    affinities: Floats  # (n_rows, len(ks)), the mean affinity of the first k in all trees
    nearest: dict[str, Floats]  # ``targets``, ``residuals`` (n_rows, k, d) and ``shares`` (n_rows, k) in all trees

    @classmethod
    def of(cls, rows: ValidationRows, plans: list[Plan]) -> _Seen:
        """Read the neighbours once."""
        needs = most_needed(*(plan.needs for plan in plans))
        parts: list[list[Statistics]] = [[] for _ in plans]
        affinities, nearest = [], []
        for batch in rows.batches(needs):
            ones = [batch.of_target(j, plan.needs) for j, plan in enumerate(plans)]
            for one, plan, some, y in zip(ones, plans, parts, rows.y.T, strict=True):
                some.append(Statistics.collect([one], y, plan))
            n_trees = [one.n_trees for one in ones]
            affinities.append(prefix_means(batch.affinities, plans[0].ks))
            nearest.append({} if plans[0].experts is None else _nearest(batch, plans[0].experts))
        return cls(
            [replace(Statistics.join(some), weights=rows.weights) for some in parts],
            n_trees,
            np.concatenate(affinities),
            {name: np.concatenate([one[name] for one in nearest]) for name in nearest[0]},
        )


def _nearest(batch: Batch, experts: Experts) -> dict[str, Floats]:
    """Return what joint experts look at."""
    needs = experts.needs
    most = max(needs.values())  # copulas of rows look at as many residuals as experts look at neighbours
    vectors = {name: batch.tables[name][batch.rows[:, :most]] for name, k in needs.items() if k}
    return {**vectors, "shares": batch.shares(most)}


def _stacked(plan: Plan, rules: tuple[Rule, ...], seen: _Seen, rows: ValidationRows, facts: JointFacts) -> JointStacked:
    mean = np.stack([own.mean for own in seen.statistics], axis=1)
    scale = np.sqrt(np.stack([_variance(rule, own) for rule, own in zip(rules, seen.statistics, strict=True)], axis=1))
    pooled = tuple(
        _pooled(rule, own.mean, scale[:, j], own.y, rows.weights)
        for j, (rule, own) in enumerate(zip(rules, seen.statistics, strict=True))
    )
    plain = normal_only_joint(_NORMAL_ONLY, pooled, np.empty((0, len(rules))), np.eye(1), np.eye(1), facts.unit)
    own = tuple(
        plain.plain(j, mean[:, j], scale[:, j])
        if rule.stack is None
        else rule.stack.distribution(seen.statistics[j].evidence(np.square(scale[:, j])))
        for j, rule in enumerate(rules)
    )
    experts = plan.experts
    if experts is None:  # "normal" was asked for, or no calibration
        evidence = JointEvidence(mean, scale, np.empty((len(mean), 0, len(rules))), np.empty((len(mean), 0)))
        found = fit_joint(_NORMAL_ONLY, evidence, own, pooled, rows.y, facts.unit, rows.weights)
        return replace(found, reason=plan.options.no_stack)
    near = seen.nearest
    evidence = JointEvidence(mean, scale, near["targets"], near["shares"], near.get("residuals"))
    given = (evidence, own, pooled, rows.y, facts.unit, rows.weights)
    found = fit_joint(experts, *given)
    if not plan.own_residuals or not experts.residuals:
        return found
    # Residuals by the model itself are used only where they gain more than one validation row is worth.
    less = fit_joint(experts.without_residuals(), *given)
    return found if found.score < less.score - abs(less.score) / seen.statistics[0].n_rows else less


def _pooled(rule: Rule, mean: Floats, scale: Floats, y: Floats, weights: Floats | None) -> Pooled:
    """Return the pooled errors of one target: those of its own stack, if it has one."""
    if rule.stack is not None:
        return rule.stack.pooled
    return pool(mean, scale, y, weights, resolution=resolution(y), support=rule.support.bounds)


def _variance(rule: Rule, statistics: Statistics) -> Floats:
    """Return the calibrated variances of the validation rows, (n_rows,)."""
    spread = rule.spread
    if isinstance(spread, CombinedSpread):
        columns = [statistics.columns(quantity, [k])[:, 0] for quantity, k in spread.features]
        raw = spread.combine(np.stack(columns, axis=1))
    else:
        assert isinstance(spread, SingleSpread), "there are two kinds of spreads"
        raw = statistics.columns(spread.quantity, [spread.k])[:, 0]
    return rule.gamma * np.maximum(raw, rule.min_variance) + rule.delta


def _predicted(rule: JointRule, rows: ValidationRows) -> JointStack:
    return JointStack.concatenate([rule.distribution(batch) for batch in rows.batches(rule.needs)])


def _with_boxes(rule: JointRule, rows: ValidationRows) -> JointRule:
    return replace(rule, boxes=BoxCalibrator.fit(_predicted(rule, rows).marginals(), rows.y, rows.weights))
