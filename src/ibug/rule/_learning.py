"""A rule from validation rows, or from what was asked for where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._options import Options
from ibug._typing import Floats, Integers
from ibug._weights import quantile
from ibug.distributions import Distribution, Stack
from ibug.exceptions import InvalidInputError
from ibug.metrics import pit
from ibug.neighbors import Batch, ValidationRows
from ibug.rule._choice import Choice, select, smallest_nonzero
from ibug.rule._plan import Plan, candidates
from ibug.rule._reference import Reference, kept
from ibug.rule._rule import STACK, Rule, tuning_table, with_refused
from ibug.rule._spread import SingleSpread
from ibug.rule._stack import Stacked, too_few
from ibug.rule._stacking import stacked
from ibug.rule._statistics import Statistics
from ibug.rule._targets import TargetSummary

# The share of validation rows below the threshold of the affinity score; one row of a hundred is the least to tell it.
_SHARE_BELOW_THRESHOLD = 0.01
_LEAST_ROWS_FOR_THRESHOLD = 100


def learn(
    rows: ValidationRows, options: Options, facts: TargetSummary, *, has_residuals: bool, own_residuals: bool = False
) -> Rule:
    """Let validation rows choose spread, number of neighbours and family, and calibrate the variance."""
    known = {"has_residuals": has_residuals, "own_residuals": own_residuals}
    plan = Plan.of(options, facts, rows.source.n_neighbors, **known, share=rows.share)
    statistics = Statistics.collect(rows.batches(plan.needs), rows.y, plan, rows.weights)
    return choose(plan, statistics, rows.source.n_trees)


def choose(plan: Plan, statistics: Statistics, n_trees: int) -> Rule:
    """Return the rule of the best candidate.

    Residuals by the model itself are used only where they gain more than one validation row is worth, compared with
    targets alone.
    """
    rule, score = _chosen(plan, statistics, n_trees)
    if not plan.own_residuals or not plan.options.spread.combines:
        return rule
    plain, least = _chosen(plan.without_residuals(), statistics, n_trees)
    row = 1.0 if plan.options.score.given == "nll" else abs(least)
    if score < least - row / statistics.n_rows:
        return rule
    return replace(plain, tuning=tuning_table(_with_unused(plain, score, least)))


def _with_unused(rule: Rule, score: float, least: float) -> dict[str, list[Any]]:
    """Return the table of candidates after a row that tells why the model's own residuals are not used."""
    reason = (
        f"With residuals by the model itself the score on the validation rows is {score:.6g}, without {least:.6g}: "
        "they gain less than one row is worth."
    )
    row = {"spread": "own residuals", "distribution": rule.family.name, "k": 0, "reason": reason}
    return {name: [row.get(name, np.nan), *column] for name, column in rule.tuning.items()}


def _chosen(plan: Plan, statistics: Statistics, n_trees: int) -> tuple[Rule, float]:
    """Return the rule of the best candidate, and its score on the validation rows."""
    choice, table = select(plan, statistics)
    family = choice.candidate.family
    # Where the family looks at no neighbours, it is the spread alone that does.
    k = choice.candidate.k if family.needs_neighbors else choice.spread.usual_k
    similarity = statistics.affinities[:, statistics.ks.index(k)] / n_trees
    stack, tried = None, with_refused(table, plan.facts.refused)
    if plan.experts is not None:
        stack, tried = stacked(plan, plan.experts, statistics, choice, tried)
    elif plan.options.no_stack:
        tried = with_refused(tried, {STACK: plan.options.no_stack})
    rule = Rule(
        choice.spread,
        family,
        k,
        choice.candidate.min_variance,
        choice.gamma,
        choice.delta,
        affinity_threshold=affinity_threshold(similarity, statistics.weights),
        tuning=tuning_table(tried),
        stack=stack,
        reference=Reference(
            kept(similarity, statistics.weights),
            kept(statistics.mean[:, None], statistics.weights),
            kept(pit(statistics.y, _predicted(choice, stack, statistics)), statistics.weights),
        ),
        support=plan.facts.support.of_family(family.name) if stack is None else plan.facts.support,
    )
    return rule, choice.score if stack is None else float(rule.tuning["calibrated"][-1])


def _predicted(choice: Choice, stack: Stacked | None, statistics: Statistics) -> Distribution:
    """Return the distributions of the validation rows that the choice makes."""
    candidate, variance = choice.candidate, choice.gamma * choice.candidate.variance + choice.delta
    if stack is not None:
        return stack.distribution(statistics.evidence(variance))
    values = statistics.values.get(choice.spread.shape)
    nearest = None if values is None else values[:, : candidate.k]
    return candidate.family.distribution(statistics.mean, variance, nearest)


def affinity_threshold(similarity: Floats, weights: Floats | None) -> float:
    """Return the affinity score below which a row is called unlike the training rows; NaN of too few rows.

    Shapes: similarity (n,); weights (n,).
    """
    if len(similarity) < _LEAST_ROWS_FOR_THRESHOLD:
        return float("nan")
    return float(quantile(similarity, _SHARE_BELOW_THRESHOLD, weights))


def conformalized(rule: Rule, rows: ValidationRows, options: Options) -> Rule:
    """Return the rule with a conformal calibrator fitted to validation rows, if one was asked for."""
    if options.conformal is None:
        return rule
    features, leaves = rows.X if rows.features is None else rows.features, getattr(rows.source, "leaves_of", None)
    row_context = options.conformal_calibrator().row_context(features, leaves)
    return with_conformal(
        rule,
        [rule.distribution(batch) for batch in rows.batches(rule.needs)],
        rows.y,
        options,
        rows.weights,
        row_context,
    )


def with_conformal(
    rule: Rule,
    distributions: list[Distribution],
    y: Floats,
    options: Options,
    weights: Floats | None = None,
    row_context: Mapping[str, NDArray[Any]] | None = None,
) -> Rule:
    """Return the rule with a conformal calibrator fitted to predicted distributions.

    Shapes: y (n_rows,); weights (n_rows,).
    """
    assert options.conformal is not None, "a calibrator was asked for"
    found = joined(distributions)
    groups, ratio = (None if row_context is None else row_context.get(name) for name in ("groups", "ratio"))
    shares = weights if ratio is None else ratio if weights is None else weights * ratio
    calibrator = options.conformal_calibrator().fit(found, y, groups, shares)
    reference = replace(rule.reference, pit=kept(pit(y, calibrator.transform(found, groups, ratio)), weights))
    return replace(rule, conformal=calibrator, reference=reference)


def without_validation(options: Options, facts: TargetSummary, n_neighbors: int) -> Rule:
    """Return the rule that was asked for, not calibrated; its floor is yet to be found, see `with_floor`."""
    quantity = options.spread.quantities[0]
    k, support = candidates(options.k, n_neighbors)[0], facts.support.of_family(facts.families[0].name)
    rule = Rule(SingleSpread(quantity, k), facts.families[0], k, min_variance=0.0, support=support)
    reason = options.no_stack or (too_few(0) if options.stacks else "")
    return replace(rule, tuning=tuning_table(with_refused(rule.tuning, {STACK: reason}))) if reason else rule


def with_floor(rule: Rule, batches: Iterable[Batch], facts: TargetSummary) -> Rule:
    """Return the rule with the smallest variance among some training rows as its floor."""
    variances = np.concatenate([rule.spread.variance(batch.values, batch.weights) for batch in batches])
    return replace(rule, min_variance=smallest_nonzero(variances, facts.range.tiny_variance))


def joined(distributions: list[Any]) -> Any:
    """Return the distributions of several batches as one."""
    if not distributions:
        raise InvalidInputError("There are no rows: every partition is empty.")
    return type(distributions[0]).concatenate(distributions)


def gathered(distributions: Iterator[Any], n_rows: int) -> Any:
    """Return the distributions of several batches as one; those that take much memory are never there twice."""
    first = next(distributions, None)
    if isinstance(first, Stack) and len(first) < n_rows:
        return Stack.gather(chain([first], distributions), n_rows)
    return joined([] if first is None else [first, *distributions])


def with_neighbors(rule: Any, batches: Iterable[Batch], k: int) -> tuple[Any, NDArray[Any], Integers]:
    """Return the distributions of all batches, with affinities and training rows of the k nearest, (n_rows, k)."""
    distributions, affinities, rows = [], [], []
    for batch in batches:
        distributions.append(rule.distribution(batch))
        affinities.append(batch.affinities[:, :k])
        rows.append(batch.rows[:, :k])
    return joined(distributions), np.concatenate(affinities), np.concatenate(rows)
