"""A rule from validation rows, or from what was asked for where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._options import Options
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_quantile
from ibug.calibration import BoxCalibrator
from ibug.distributions import Distribution, Stack
from ibug.metrics import pit, resolve_scoring
from ibug.neighbors import Batch, ValidationRows
from ibug.rule._choice import Choice, select, single, smallest_nonzero
from ibug.rule._coupling import NORMAL_ONLY, Coupling, correlation_within, fit_coupling, normal_coupling
from ibug.rule._experts import Evidence, ExpertStatistics, Pooled, pool, resolution, values_taken
from ibug.rule._plan import Plan, candidates, most_needed
from ibug.rule._reference import Reference, order_correlation, ordered_sample
from ibug.rule._rule import STACK, Rule, TargetRule, joined, refused, tuning_table
from ibug.rule._spread import Spread
from ibug.rule._stack import StackRule, fit, normal_stack, too_few
from ibug.rule._statistics import Statistics, TargetStatistics
from ibug.rule._targets import TargetSummary

# The share of validation rows below the threshold of the affinity score; fewer rows than 100 cannot show it.
_SHARE_BELOW_THRESHOLD = 0.01
_LEAST_ROWS_FOR_THRESHOLD = 100

# About the number of validation rows whose neighbours show how fine the target is.
_ROWS_FOR_RESOLUTION = 5000

# The tails whose share of rows the two sides of stacks are calibrated on: the ends of 90 % intervals.
_TAIL = 0.05
# The range of a factor, and how often both are found anew, since neither is quite independent of the other.
_LEAST_FACTOR, _MOST_FACTOR, _ROUNDS = 0.5, 2.0, 5
# The pull of a factor towards 1, in rows. With n rows its logarithm has a standard error of about 1.3/√n, and from one
# dataset to another it differs by about 0.1, so that n/(n + 1.3²/0.1²) of it is the best guess.
_ROWS_PER_FACTOR = 170.0
_FEWEST_ROWS_FOR_FACTORS = 100
# A target of which one value is more frequent than this has atoms that belong where they are.
_FREQUENT = 0.01
# The share by which the score on these rows may be higher with calibrated sides.
_NEGLIGIBLE = 5e-4


def learn(
    rows: ValidationRows,
    options: Options,
    targets: Sequence[TargetSummary],
    *,
    has_residuals: bool,
    own_residuals: bool = False,
) -> Rule:
    """Let validation rows choose spread, number of neighbours and family and calibrate; several targets are coupled."""
    known: dict[str, Any] = {"has_residuals": has_residuals, "own_residuals": own_residuals, "share": rows.share}
    plans = [Plan.of(options, one, rows.source.n_neighbors, **known) for one in targets]
    needs = most_needed(*(plan.needs for plan in plans))
    rule = choose(plans, Statistics.collect(rows.batches(needs), rows.y, plans, rows.weights), rows.source.n_trees)
    if rule.coupling is None or options.conformal is not None:
        return rule
    # Without conformal calibration the same rows give the size of boxes, which is then an approximation.
    marginals = joined([rule.distribution(batch) for batch in rows.batches(rule.needs)]).marginals()
    return replace(rule, coupling=replace(rule.coupling, boxes=BoxCalibrator.fit(marginals, rows.y, rows.weights)))


def choose(plans: Sequence[Plan], statistics: Statistics, n_trees: int) -> Rule:
    """Return the rule of the best candidates of each target."""
    targets, weights = statistics.targets, statistics.weights
    parts = tuple(_chosen(plan, one) for plan, one in zip(plans, targets, strict=True))
    coupling, transforms, order = None, np.empty(0), np.nan
    if len(parts) > 1:  # a joint stack has the bounds in any case
        parts = tuple(replace(part, support=plan.target.support) for part, plan in zip(parts, plans, strict=True))
        coupling = _coupled(plans, parts, statistics)
    else:
        unordered = pit(targets[0].y, _predicted(parts[0], targets[0]))
        transforms, order = ordered_sample(unordered, weights), order_correlation(unordered)
    rule = Rule(parts, coupling)
    similarity = statistics.affinities[:, plans[0].ks.index(rule.k)] / n_trees
    means = np.stack([one.mean for one in targets], axis=1)
    reference = Reference(ordered_sample(similarity, weights), ordered_sample(means, weights), transforms, order=order)
    return replace(rule, affinity_threshold=affinity_threshold(similarity, weights), reference=reference)


def _chosen(plan: Plan, statistics: TargetStatistics) -> TargetRule:
    """Return the rule of the best candidate for one target, after a choice among families and one of a stack."""
    found = [_with_or_without_residuals(one, statistics) for one in plan.alternatives]
    best, _ = min(found, key=lambda pair: pair[1])
    if len(found) == 1:
        return best
    families, beside = (rule.tuning for rule, _ in found)
    is_stack = beside["distribution"] == STACK  # the normal distribution is a family, too
    reason = np.where(beside["reason"] != "", beside["reason"], f"The family {best.family.name} scored no worse.")
    if best.stack is None:
        beside = {**beside, "reason": reason}
    tuning = {name: np.append(column, beside[name][is_stack]) for name, column in families.items()}
    return replace(best, tuning=tuning)


def _with_or_without_residuals(plan: Plan, statistics: TargetStatistics) -> tuple[TargetRule, float]:
    """Return the rule of the best candidate and its score, with residuals by the model itself if they gain enough."""
    singles = {quantity: single(quantity, plan, statistics) for quantity in plan.quantities}
    rule, score = _best(plan, statistics, singles)
    if not plan.own_residuals or not plan.options.spread.combines:
        return rule, score
    # Such residuals are used only where they gain more than one validation row is worth. Combination and stack are
    # fitted a second time: without residuals variances are others, and with them the scale that errors are pooled by
    # and experts are compared with.
    plain, least = _best(plan.without_residuals(), statistics, singles)
    row = 1.0 if plan.options.scoring == "nll" else abs(least)
    if score < least - row / statistics.n_rows:
        return rule, score
    reason = (
        f"With residuals by the model itself the score on the validation rows is {score:.6g}, without {least:.6g}: "
        "they gain less than one row is worth."
    )
    first = refused(plain.family.name, reason, spread="own residuals")
    tuning = {name: np.append(first[name], column) for name, column in plain.tuning.items()}
    return replace(plain, tuning=tuning), least


def _best(plan: Plan, statistics: TargetStatistics, singles: Mapping[str, Choice]) -> tuple[TargetRule, float]:
    """Return the rule of the best candidate of a plan, and its score on the validation rows."""
    choice, table = select(plan, statistics, singles)
    family, target = choice.candidate.family, plan.target
    # Where the family looks at no neighbours, it is the spread alone that does.
    k = choice.candidate.k if family.needs_neighbors else choice.spread.k
    stack, score = None, choice.score
    tried = [*table, *(refused(name, reason) for name, reason in target.refused.items())]
    if plan.experts is not None:
        stack_score, found = _stacked(plan, statistics, choice)
        reason = found.reason
        if not reason and not stack_score <= choice.score:
            reason = "The normal distribution scored no worse on the validation rows."
        row = {"spread": choice.spread.name, "distribution": STACK, "k": max(plan.experts.k), "reason": reason}
        tried.append({**row, "score": stack_score, "calibrated": stack_score})
        if not reason:
            stack, score = found, stack_score
    elif plan.options.no_stack:
        tried.append(refused(STACK, plan.options.no_stack))
    rule = TargetRule(
        choice.spread,
        family,
        k,
        choice.candidate.min_variance,
        choice.gamma,
        choice.delta,
        # Bounds that were found come last: the same is learned and chosen as without them.
        stack=None if stack is None else stack.bounded(target.support.bounds),
        tuning=tuning_table(tried),
        support=target.support.of_family(family.name) if stack is None else target.support,
    )
    return rule, score


def _stacked(plan: Plan, statistics: TargetStatistics, choice: Choice) -> tuple[float, StackRule]:
    """Return the stack whose normal expert is the chosen distribution, after its score on the validation rows."""
    assert plan.experts is not None, "the stack is a candidate"
    evidence = statistics.evidence(choice.gamma * choice.candidate.variance + choice.delta)
    weights, range = statistics.weights, plan.target.range
    some = slice(None, None, max(1, len(statistics.y) // _ROWS_FOR_RESOLUTION))
    y, near = statistics.y[some], np.append(evidence.targets[some], [range.lowest, range.highest])
    pooled = pool(
        evidence.mean,
        evidence.scale,
        statistics.y,
        weights,
        resolution=resolution(np.append(y, near)),
        support=plan.target.support.given,
        values=values_taken(y, near),
    )
    seen = ExpertStatistics.of(plan.experts, pooled, evidence, statistics.y, weights)
    given = plan.options.scoring
    score = statistics.scoring(given)
    scored = []
    for loss in (given,) if isinstance(given, str) else ("crps", "nll"):  # both for a score of the user's own
        stack = fit(plan.experts, pooled, seen, loss)
        value = float(score(statistics.y, stack.distribution(evidence)))
        scored.append((np.inf if np.isnan(value) else value, stack))
    return min(scored, key=lambda pair: pair[0])


def _predicted(part: TargetRule, statistics: TargetStatistics) -> Distribution:
    """Return the distributions that a rule makes of the validation rows."""
    variance = part.calibrated(statistics.variance(part.spread))
    if part.stack is not None:
        return part.stack.distribution(statistics.evidence(variance))
    values = statistics.values.get(part.spread.quantity)
    return part.family.distribution(statistics.mean, variance, None if values is None else values[:, : part.k])


def _coupled(plans: Sequence[Plan], parts: Sequence[TargetRule], statistics: Statistics) -> Coupling:
    """Return the coupling of several targets with the best energy score on the validation rows."""
    targets, weights, experts = statistics.targets, statistics.weights, plans[0].experts
    y, mean = (np.stack([getattr(one, name) for one in targets], axis=1) for name in ("y", "mean"))
    scales, pooled, own = [], [], []
    for part, one in zip(parts, targets, strict=True):
        scales.append(np.sqrt(part.calibrated(one.variance(part.spread))))
        if part.stack is not None:
            pooled.append(part.stack.pooled)
            own.append(part.stack.distribution(one.evidence(np.square(scales[-1]))))
            continue
        known: dict[str, Any] = {"resolution": resolution(one.y), "support": part.support.bounds}
        pooled.append(pool(one.mean, scales[-1], one.y, weights, **known))
        own.append(normal_stack(one.mean, scales[-1], pooled[-1]))
    scale = np.stack(scales, axis=1)
    unit = np.array([plan.target.unit for plan in plans])
    if experts is None:  # "normal" was asked for, or no calibration
        evidence = Evidence(mean, scale, np.empty((len(mean), 0, len(parts))), np.empty((len(mean), 0)))
        found = fit_coupling(NORMAL_ONLY, evidence, tuple(own), tuple(pooled), y, unit, weights)
        return replace(found, reason=plans[0].options.no_stack)
    near = statistics.vectors
    evidence = Evidence(mean, scale, near["targets"], near["shares"], near.get("residuals"))
    given = (evidence, tuple(own), tuple(pooled), y, unit, weights)
    found = fit_coupling(experts, *given)
    if not plans[0].own_residuals or not experts.residuals:
        return found
    # Residuals by the model itself are used only where they gain more than one validation row is worth.
    less = fit_coupling(experts.without_residuals(), *given)
    return found if found.score < less.score - abs(less.score) / targets[0].n_rows else less


def affinity_threshold(similarity: Floats, weights: Floats | None) -> float:
    """Return the affinity score below which a row is called dissimilar to the training rows; NaN of too few rows.

    Shapes: similarity (n,); weights (n,).
    """
    if len(similarity) < _LEAST_ROWS_FOR_THRESHOLD:
        return float("nan")
    return float(weighted_quantile(similarity, _SHARE_BELOW_THRESHOLD, weights))


def without_validation(options: Options, targets: Sequence[TargetSummary], n_neighbors: int) -> Rule:
    """Return the rule that was asked for, not calibrated; floors are yet to be found, see `with_floor`."""
    k, reason = candidates(options.k, n_neighbors)[0], options.no_stack or (too_few(0) if options.stacks else "")
    tuning = tuning_table([refused(STACK, reason)] if reason else [])
    spread, d = Spread.of(options.spread.quantities[0], k), len(targets)
    parts = []
    for one in targets:
        family = one.families[0]
        support = one.support.of_family(family.name) if d == 1 else one.support
        parts.append(TargetRule(spread, family, k, min_variance=0.0, tuning=tuning, support=support))
    coupling = None
    if d > 1:
        pooled = tuple(Pooled(np.empty(0), support=one.support.bounds) for one in targets)
        unit = np.array([one.unit for one in targets])
        coupling = normal_coupling(NORMAL_ONLY, pooled, np.empty((0, d)), np.eye(d), np.eye(d), unit, too_few(0))
    return Rule(tuple(parts), coupling)


def with_floor(rule: Rule, batches: Iterable[Batch], targets: Sequence[TargetSummary]) -> Rule:
    """Return the rule with the smallest variance among some training rows as the floor of each target.

    Several targets are coupled by their correlations within the neighbourhoods of these rows.
    """
    some, parts, coupling = list(batches), [], rule.coupling
    for j, (part, target) in enumerate(zip(rule.parts, targets, strict=True)):
        ones = [batch.of_target(j, part.spread.needs) for batch in some]
        variances = np.concatenate([part.spread.variance(one.values, one.weights) for one in ones])
        parts.append(replace(part, min_variance=smallest_nonzero(variances, target.range.tiny_variance)))
    if coupling is not None:
        spread = rule.parts[0].spread
        near = [batch.vectors(spread.quantity, spread.k) for batch in some]
        coupling = replace(coupling, correlation=correlation_within(near, coupling.unit))
    return replace(rule, parts=tuple(parts), coupling=coupling)


def conformalized(rule: Rule, rows: ValidationRows, options: Options) -> Rule:
    """Return the rule with conformal calibration fitted to validation rows, if it was asked for."""
    if options.conformal is None:
        return rule
    features = rows.X if rows.features is None else rows.features
    row_context = options.conformal_calibrator().row_context(features, rows.source.leaves_of)
    distributions = [rule.distribution(batch) for batch in rows.batches(rule.needs)]
    return with_conformal(rule, distributions, rows.y, options, rows.weights, row_context)


def with_conformal(
    rule: Rule,
    distributions: list[Any],
    y: Floats,
    options: Options,
    weights: Floats | None = None,
    row_context: Mapping[str, NDArray[Any]] | None = None,
) -> Rule:
    """Return the rule with conformal calibration of each target, and of boxes, fitted to predicted distributions.

    Shapes: y (n_rows,) or (n_rows, n_targets); weights (n_rows,).
    """
    assert options.conformal is not None, "a calibrator was asked for"
    found = joined(distributions)
    marginals, columns = rule.marginals(found), y.reshape(len(y), -1).T
    groups, ratio = (None if row_context is None else row_context.get(name) for name in ("groups", "ratio"))
    shares = weights if ratio is None else ratio if weights is None else weights * ratio
    parts, coupling, reference = [], rule.coupling, rule.reference
    for part, *known in zip(rule.parts, marginals, columns, strict=True):
        parts.append(replace(part, conformal=options.conformal_calibrator().fit(*known, groups, shares)))
    if coupling is None:
        transforms = pit(y, parts[0].conformalized(found, {} if row_context is None else row_context))
        reference = replace(reference, pit=ordered_sample(transforms, weights))
    else:
        coupling = replace(coupling, boxes=BoxCalibrator.fit(marginals, y, weights))
    return replace(rule, parts=tuple(parts), coupling=coupling, reference=reference)


def with_calibrated_sides(rule: Rule, rows: ValidationRows, options: Options) -> Rule:
    """Return the rule whose stacks have 5 % of these rows below their 5 % quantile and above their 95 % quantile.

    A mixture of experts, each of them calibrated, is wider than it should be, and weights that are best for the CRPS
    do not make up for it: the CRPS hardly sees tails. So values below the prediction and values above it have their
    distances from it multiplied by one factor each. Where a target takes few values, or one of them often, neighbours'
    targets stay as they are: these values are known. A stack whose score would suffer is left as it is; so are those of
    several targets, whose weights have the best energy score as they are.
    """
    stack, y, weights = rule.parts[0].stack, rows.y, rows.weights
    n = effective_rows(weights, len(y))
    if rule.coupling is not None or stack is None or n < _FEWEST_ROWS_FOR_FACTORS:
        return rule
    most = np.unique(y, return_counts=True)[1].max()
    continuous = not len(stack.pooled.values) and most <= max(1, _FREQUENT * len(y))
    batches = list(rows.batches(rule.needs))

    def made(sides: tuple[float, float]) -> tuple[Rule, Stack]:
        part = replace(rule.parts[0], stack=replace(stack, sides=sides, moves_neighbors=continuous))
        changed = replace(rule, parts=(part,))
        return changed, joined([changed.distribution(batch) for batch in batches])

    center = np.concatenate([batch.mean for batch in batches])
    whole = found = made((1.0, 1.0))[1]
    sides = 1.0, 1.0
    for _ in range(_ROUNDS):
        lower, upper = found.interval(1 - 2 * _TAIL)
        sides = (
            _factor(sides[0], center - y, center - lower, weights),
            _factor(sides[1], y - center, upper - center, weights),
        )
        found = made(sides)[1]
    pull = n / (n + _ROWS_PER_FACTOR)
    calibrated, found = made((sides[0] ** pull, sides[1] ** pull))
    score = resolve_scoring(options.scoring, weights)
    before, after = float(score(y, whole)), float(score(y, found))
    if not after <= before + _NEGLIGIBLE * abs(before):
        return rule
    return replace(calibrated, reference=replace(rule.reference, pit=ordered_sample(pit(y, found), weights)))


def _factor(before: float, away: Floats, end: Floats, weights: Floats | None) -> float:
    """Return the factor of one side with which the ends of that side leave out 5 % of the rows.

    Shapes: away, end (n,); weights (n,).
    """
    largest = _MOST_FACTOR / _LEAST_FACTOR
    needed = np.where(away > end, largest, 0.0)  # where the end is on the other side, no factor changes it
    np.divide(away, end, out=needed, where=end > 0)
    ratio = float(weighted_quantile(np.clip(needed, 0.0, largest), 1 - _TAIL, weights))
    return float(np.clip(before * ratio, _LEAST_FACTOR, _MOST_FACTOR))
