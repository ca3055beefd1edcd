"""The stack as a candidate: its weights on validation rows, and whether it is better than the normal distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ibug.rule._choice import Choice
from ibug.rule._plan import Plan
from ibug.rule._rule import STACK
from ibug.rule._statistics import Statistics
from ibug.rule.stack import Evidence, Experts, ExpertStatistics, Stacked, fit, pool, resolution, values_taken

# About how many validation rows, with their neighbours, tell how fine the target is.
_ROWS_FOR_RESOLUTION = 5000

Table = dict[str, list[Any]]


def stacked(
    plan: Plan, experts: Experts, statistics: Statistics, choice: Choice, table: Table
) -> tuple[Stacked | None, Table]:
    """Return the stack, or None where the normal distribution is no worse; and the table with one row more.

    Parameters
    ----------
    plan, statistics
        What was asked for, and what the validation rows say.
    experts
        The experts.
    choice
        The normal distribution, calibrated: the first expert.
    table
        The candidates so far, as columns.
    """
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
