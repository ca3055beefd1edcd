"""What workers do with the neighbours that were found for one partition of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ibug._options import Options
from ibug._typing import Floats
from ibug.distributions import Distribution
from ibug.neighbors import Batch
from ibug.rule import Plan, Rule, Statistics, TargetSummary, choose, joined, with_conformal, with_floor
from ibug.training import with_own_threshold


def as_targets(y: Any) -> Floats:
    """Return the targets of one partition, which have been checked, (n_rows,)."""
    return np.asarray(y, np.float64).ravel()


def statistics_of(batch: Batch, y: Any, plan: Plan) -> Statistics | None:
    """Return what the neighbours of one partition's validation rows say; None of an empty partition."""
    return Statistics.collect([batch], as_targets(y), [plan]) if batch.n_rows else None


def tuned(plan: Plan, parts: list[Statistics | None], n_trees: int) -> Rule:
    """Return the rule that the validation rows of all partitions choose."""
    return choose([plan], Statistics.join([part for part in parts if part is not None]), n_trees)


def conformalized(rule: Rule, distributions: list[Distribution | None], y: list[Any], options: Options) -> Rule:
    """Return the rule with a conformal calibrator fitted to the distributions of held-out rows."""
    some = [one for one in distributions if one is not None]
    return with_conformal(rule, some, np.concatenate([as_targets(part) for part in y]), options)


def floored(rule: Rule, batch: Batch, facts: TargetSummary) -> Rule:
    """Return the rule with the smallest variance of some training rows as its floor."""
    return with_floor(rule, [batch], [facts])


def distribution_of(rule: Rule, batch: Batch) -> Distribution | None:
    """Return the distributions of one partition; None of an empty one, as no family is fitted to no rows."""
    return rule.distribution(batch) if batch.n_rows else None


def join_distributions(parts: list[Distribution | None]) -> Distribution:
    """Return the distributions of all partitions as one batch."""
    found: Distribution = joined([part for part in parts if part is not None])
    return found


def answer(function: Callable[..., Any], rule: Rule, batch: Batch, width: int | None, *arguments: Any) -> Any:
    """Return what a function says of one partition: one number per row, or `width` of them."""
    if not batch.n_rows:
        return np.empty(0 if width is None else (0, width))
    return function(rule, batch, *arguments)


def interval_of(rule: Rule, batch: Batch, coverage: float) -> Floats:
    """Return the central intervals, (n_rows, 2)."""
    return rule.ends(rule.distribution(batch), coverage)


def quantiles_of(rule: Rule, batch: Batch, probabilities: Floats) -> Floats:
    """Return the quantiles, (n_rows, n_probabilities)."""
    return rule.quantiles(rule.distribution(batch), probabilities)


def variance_of(rule: Rule, batch: Batch) -> Floats:
    """Return the variances, (n_rows,)."""
    return rule.predicted_variance(batch)


def affinity_score_of(rule: Rule, batch: Batch, n_trees: int) -> Floats:
    """Return the mean affinity of the rule's neighbours as a share of the trees, (n_rows,)."""
    return np.asarray(batch.affinities[:, : rule.k].mean(axis=1) / n_trees)


def own_threshold(rule: Rule, batch: Batch, k: int, numbers: Any, n_trees: int) -> Rule:
    """Return the rule with the affinity threshold of training rows, by their k nearest, themselves among them."""
    return with_own_threshold(rule, *nearest_of(batch, k), numbers, n_trees)


def nearest_of(batch: Batch, k: int) -> tuple[Any, Any]:
    """Return affinities and training rows, (n_rows, k) each."""
    return batch.affinities[:, :k], batch.rows[:, :k]


def density_of(sizes: Any, n_rows: int) -> Floats:
    """Return the mean share of the training rows in the same leaf, (n_rows,)."""
    return np.asarray(sizes.mean(axis=1) / n_rows)


def density_by_tree(sizes: Any) -> tuple[int, Any]:
    """Return the number of rows, and the training rows in their leaves added up for each tree, (n_trees,)."""
    return len(sizes), sizes.sum(axis=0)
