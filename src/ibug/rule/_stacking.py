"""The stack as a candidate: its weights on validation rows, whether it is better than the normal, and its tails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug._weights import effective_rows, quantile
from ibug.distributions import Distribution
from ibug.metrics import pit, resolve_scoring
from ibug.neighbors import ValidationRows
from ibug.rule._choice import Choice
from ibug.rule._experts import Evidence, Experts, ExpertStatistics, pool, resolution, values_taken
from ibug.rule._plan import Plan
from ibug.rule._reference import kept
from ibug.rule._rule import STACK, Rule
from ibug.rule._stack import Stacked, fit
from ibug.rule._statistics import Statistics

# About how many validation rows, with their neighbours, tell how fine the target is.
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

Table = dict[str, list[Any]]


def stacked(
    plan: Plan, experts: Experts, statistics: Statistics, choice: Choice, table: Table
) -> tuple[Stacked | None, Table]:
    """Return the stack, or None where the normal distribution is no worse; and the table with one row more."""
    evidence = statistics.evidence(choice.gamma * choice.candidate.variance + choice.delta)
    weights, support = statistics.weights, plan.facts.support
    some = slice(None, None, max(1, len(statistics.y) // _ROWS_FOR_RESOLUTION))
    y, known = statistics.y[some], plan.facts.range
    near = np.append(evidence.targets[some], [known.lowest, known.highest])
    pooled = pool(
        evidence.mean,
        evidence.scale,
        statistics.y,
        weights,
        resolution=resolution(np.append(y, near)),
        support=support.given,
        values=values_taken(y, near),
    )
    seen = replace(ExpertStatistics.of(experts, pooled, evidence, statistics.y), weights=weights)
    scored = [
        (_score(plan, one, evidence, statistics), one)
        for one in (fit(experts, pooled, seen, loss) for loss in _losses(plan))
    ]
    score, best = min(scored, key=lambda pair: pair[0])
    reason = best.reason
    if not reason and not score <= choice.score:
        reason = "The normal distribution scored no worse on the validation rows."
    row = {
        "spread": choice.spread.name,
        "distribution": STACK,
        "k": max(experts.k),
        "score": score,
        "calibrated": score,
        "reason": reason,
    }
    # Bounds that were found come last: the same is learned and chosen as without them.
    return None if reason else best.bounded(support.bounds), {name: [*table[name], row[name]] for name in table}


def _losses(plan: Plan) -> tuple[str, ...]:
    """Return the scores that weights are fitted for: the one that was asked for, both for a user's own."""
    given = plan.options.score.given
    return (given,) if isinstance(given, str) else ("crps", "nll")


def _score(plan: Plan, stack: Stacked, evidence: Evidence, statistics: Statistics) -> float:
    value = float(statistics.scoring(plan.options.score.given)(statistics.y, stack.distribution(evidence)))
    return np.inf if np.isnan(value) else value


def with_calibrated_sides(rule: Rule, rows: ValidationRows, options: Options) -> Rule:
    """Return the rule whose stacks have 5 % of these rows below their 5 % quantile and above their 95 % quantile.

    A mixture of experts, each of them calibrated, is wider than it should be, and weights that are best for the CRPS
    do not make up for it: the CRPS hardly sees tails. So values below the prediction and values above it have their
    distances from it multiplied by one factor each. Where a target takes few values, or one of them often, neighbours'
    targets stay as they are: these values are known. A stack whose score would suffer is left as it is.
    """
    stack, y, weights = rule.stack, rows.y, rows.weights
    n = effective_rows(weights, len(y))
    if stack is None or n < _FEWEST_ROWS_FOR_FACTORS:
        return rule
    most = np.unique(y, return_counts=True)[1].max()
    continuous = not len(stack.pooled.values) and most <= max(1, _FREQUENT * len(y))
    batches = list(rows.batches(rule.needs))

    def made(sides: tuple[float, float]) -> tuple[Rule, Distribution]:
        changed = replace(rule, stack=replace(stack, sides=sides, moves_neighbors=continuous))
        parts = [changed.distribution(batch) for batch in batches]
        return changed, type(parts[0]).concatenate(parts)

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
    score = resolve_scoring(options.score.given, weights)
    before, after = float(score(y, whole)), float(score(y, found))
    if not after <= before + _NEGLIGIBLE * abs(before):
        return rule
    reference = replace(rule.reference, pit=kept(pit(y, found), weights))
    return replace(calibrated, reference=reference)


def _factor(before: float, away: Floats, end: Floats, weights: Floats | None) -> float:
    """Return the factor of one side with which the ends of that side leave out 5 % of the rows.

    Shapes: away, end (n,); weights (n,).
    """
    largest = _MOST_FACTOR / _LEAST_FACTOR
    needed = np.where(away > end, largest, 0.0)  # where the end is on the other side, no factor changes it
    np.divide(away, end, out=needed, where=end > 0)
    ratio = float(quantile(np.clip(needed, 0.0, largest), 1 - _TAIL, weights))
    return float(np.clip(before * ratio, _LEAST_FACTOR, _MOST_FACTOR))
