"""From distributions of rows to distributions of totals, batch after batch of rows.

Given the factors, rows are independent. So each block's share of a total has a mean and a variance for each value of
its factor, and these add up: over rows, batches and machines. They are kept on a grid of values of the factor. Groups
of few rows, whose sum is not nearly normal, are sampled row by row, with the same draws of the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import t as student_t

from ibug._typing import Floats
from ibug.totals._blocks import Codes, coded_together
from ibug.totals._dependence import Dependence
from ibug.totals._distribution import TotalDistribution

# Quantiles of rows are taken at these normal scores, and interpolated between them; and at the ends of the support.
_SCORES = np.linspace(-4.0, 4.0, 41)
_PROBABILITIES = np.r_[0.0, ndtr(_SCORES), 1.0]
# The values of the sum of the factors, in standard deviations, for which means and variances are kept.
_NODES = np.linspace(-5.0, 5.0, 33)
# Draws of the factors, each with a mean and a variance of the total; as many as a byte has values, see `row_draws`.
N_DRAWS = 256
_ROUND_KEYS = np.arange(1, 5, dtype=np.uint64)
# Sums of so many rows are nearly normal, given the factors; those of fewer are sampled.
MOST_SAMPLED = 30
# The width of the kernels of sampled totals, relative to the standard deviation.
_BANDWIDTH = 0.1
# The least standard deviation, of a total that is certain: small, and its square is a number, too.
_LEAST_SCALE = 1e-100


@dataclass(frozen=True, eq=False)
class Plan:
    """Which row is in which group and which block, and the draws of the blocks' factors."""

    groups: NDArray[Any]  # (n_groups,) labels, ascending
    group_of_row: Codes  # (n_rows,)
    weights: Floats  # (n_rows,)
    correlations: Floats  # (n_kinds,) of the kinds of blocks
    cell_of_row: Codes  # (n_rows,) rows of a cell are in the same group and the same blocks
    cells: NDArray[np.intp]  # (n_cells, 1 + n_kinds) the group and the blocks of each cell
    factors: tuple[Floats, ...]  # of each kind of block: (n_blocks, n_draws) draws of its factor
    is_sampled: NDArray[np.bool_]  # (n_groups,) whether a group is sampled
    seed: int = 0

    @classmethod
    def of(
        cls,
        groups: tuple[NDArray[Any], Codes],
        weights: Floats,
        blocks: Sequence[Codes],
        dependence: Dependence | None,
        seed: int = 0,
    ) -> Plan:
        """Return the plan for groups and blocks of rows; without dependence, rows are independent."""
        labels, group_of_row = groups
        correlations = np.empty(0) if dependence is None else dependence.correlation
        cell_of_row, cells = coded_together([group_of_row, *blocks])
        rng = np.random.RandomState(seed)
        factors = (
            ()
            if dependence is None
            else tuple(
                draws_of_factor(int(codes.max()) + 1, n, rng)
                for codes, n in zip(blocks, dependence.n_blocks, strict=True)
            )
        )
        sizes = np.bincount(group_of_row, minlength=len(labels))
        sampled = sizes < MOST_SAMPLED
        return cls(labels, group_of_row, weights, correlations, cell_of_row, cells, factors, sampled, seed)

    @property
    def shared(self) -> float:
        """The share of the variance of normal scores that blocks have in common."""
        return float(self.correlations.sum())

    def factor_sums(self, cells: NDArray[np.intp]) -> Floats:
        """Return the sums of the factors of cells in standard deviations, (n_cells, n_draws)."""
        total = np.zeros((len(cells), N_DRAWS))
        for kind, (correlation, draws) in enumerate(zip(self.correlations, self.factors, strict=True)):
            total += np.sqrt(correlation) * draws[self.cells[cells, 1 + kind]]
        return total / np.sqrt(self.shared) if self.shared else total


def draws_of_factor(n_blocks: int, n_learned: int, rng: np.random.RandomState) -> Floats:
    """Return draws of the factors of new blocks, evenly spread and in another order for each, (n_blocks, n_draws).

    Their mean and variance were learned from a number of blocks; with n of them, a new one has a Student's t with n - 1
    degrees of freedom, which is wider by the error of the mean.
    """
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    values = student_t(max(n_learned - 1, 2)).ppf(levels) * np.sqrt(1.0 + 1.0 / n_learned)
    return np.stack([values[rng.permutation(N_DRAWS)] for _ in range(n_blocks)])


@dataclass(eq=False)
class Sums:
    """What is known of totals after some batches of rows: sums, which those of other batches are added to."""

    plan: Plan
    means: Floats = field(init=False)  # (n_cells, n_nodes)
    variances: Floats = field(init=False)
    samples: Floats = field(init=False)  # (n_groups, n_draws) of the groups that are sampled
    bounds: Floats = field(init=False)  # (n_groups, 2)

    def __post_init__(self) -> None:
        plan = self.plan
        self.means = np.zeros((len(plan.cells), len(_NODES)))
        self.variances = np.zeros_like(self.means)
        self.samples = np.zeros((len(plan.groups), N_DRAWS))
        self.bounds = np.zeros((len(plan.groups), 2))

    def add(self, where: slice, distribution: Any) -> None:
        """Add some rows, with their distributions."""
        plan = self.plan
        table, ends = quantile_table(distribution)
        weights = plan.weights[where]
        sampled = plan.is_sampled[plan.group_of_row[where]]
        self._add_bounds(where, ends, weights)
        mean, variance = conditional_moments(table, plan.shared)
        for total, values in (
            (self.means, weights[:, None] * mean),
            (self.variances, weights[:, None] ** 2 * variance),
        ):
            _add_rows(total, plan.cell_of_row[where], values)
        if sampled.any():
            numbers = np.arange(where.start, where.stop)[sampled]
            for start in range(0, len(numbers), 4096):
                some = numbers[start : start + 4096]
                draws = weights[some - where.start, None] * self._samples_of(some, table[some - where.start])
                _add_rows(self.samples, plan.group_of_row[some], draws)

    def values(self) -> tuple[Floats, ...]:
        """Return all sums; those of other rows of the same plan, of another machine say, are added to them."""
        return self.means, self.variances, self.samples, self.bounds

    def plus(self, values: Sequence[Floats]) -> Sums:
        """Add the values of other sums."""
        for own, others in zip(self.values(), values, strict=True):
            own += others
        return self

    def _samples_of(self, rows: NDArray[np.intp], table: Floats) -> Floats:
        """Return a value of each row for each draw of the factors, (n_rows, n_draws)."""
        plan = self.plan
        own = row_draws(rows, plan.seed)
        shared = plan.shared
        if shared:
            factors = plan.factor_sums(plan.cell_of_row[rows])
            own = np.sqrt(shared) * factors + np.sqrt(1.0 - shared) * own
        return values_at(table, own)

    def _add_bounds(self, where: slice, ends: Floats, weights: Floats) -> None:
        """Add the least and the largest value that rows can have, (n_rows, 2); weights below zero exchange them."""
        with np.errstate(invalid="ignore"):
            weighted = weights[:, None] * ends
        weighted[weights == 0] = 0.0
        _add_rows(self.bounds, self.plan.group_of_row[where], np.sort(weighted, axis=1))

    def distribution(self) -> TotalDistribution:
        """Return the distributions of the totals."""
        plan = self.plan
        loc, scale = np.empty((2, len(plan.groups), N_DRAWS))
        order = np.argsort(plan.cells[:, 0], kind="stable")
        edges = np.searchsorted(plan.cells[order, 0], np.arange(len(plan.groups) + 1))
        for group in range(len(plan.groups)):
            loc[group], scale[group] = self._given_factors(order[edges[group] : edges[group + 1]])
            if plan.is_sampled[group]:
                deviation = np.sqrt(np.var(loc[group]) + np.mean(np.square(scale[group])))
                loc[group], scale[group] = smoothed(self.samples[group], loc[group].mean(), deviation)
        sizes = np.bincount(plan.group_of_row, minlength=len(plan.groups))
        return TotalDistribution(loc, scale, self.bounds[:, 0], self.bounds[:, 1], plan.groups, sizes)

    def _given_factors(self, cells: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of a total for each draw of the factors, (n_draws,) each."""
        factors = self.plan.factor_sums(cells)
        mean, variance = (interpolated(each[cells], factors) for each in (self.means, self.variances))
        loc = mean.sum(axis=0)
        if len(cells) > 1:
            # Blocks are independent: what chance correlations of their draws add to the variance is taken out again.
            own = np.sum(np.var(mean, axis=1)) if len(self.plan.factors) == 1 else np.var(loc)
            found = np.var(loc)
            if found > 0:
                loc = loc.mean() + (loc - loc.mean()) * np.sqrt(own / found)
        tiny = max(1e-12 * float(np.abs(loc).max()), _LEAST_SCALE)
        return loc, np.sqrt(np.maximum(variance.sum(axis=0), tiny**2))


def quantile_table(distribution: Any) -> tuple[Floats, Floats]:
    """Return quantiles of rows at fixed normal scores, such that the means are right, and the ends of the support.

    Shapes: (n_rows, n_scores) and (n_rows, 2).
    """
    found = np.asarray(distribution.ppf(_PROBABILITIES[None, :]), np.float64)
    table, support = found[:, 1:-1], found[:, [0, -1]]
    if not np.isfinite(table).all():  # a conformal calibrator knows no ends of such levels
        finite = np.where(np.isfinite(table), table, np.nan)
        ends = np.nanmin(finite, axis=1, keepdims=True), np.nanmax(finite, axis=1, keepdims=True)
        return np.asarray(np.clip(table, *ends)), support
    return np.asarray(table + (distribution.mean() - table @ _hat_weights(0.0, 1.0))[:, None]), support


def conditional_moments(table: Floats, shared: float) -> tuple[Floats, Floats]:
    """Return mean and variance of each row given the sum of its factors, (n_rows, n_nodes) each.

    Shapes: table (n_rows, n_scores).
    """
    if shared == 0:
        nodes = np.repeat(_hat_weights(0.0, 1.0)[:, None], len(_NODES), axis=1)
    else:
        nodes = np.stack([_hat_weights(np.sqrt(shared) * node, np.sqrt(1.0 - shared)) for node in _NODES], axis=1)
    middle = table[:, len(_SCORES) // 2, None]  # squares of large numbers have no digits left
    moved = table - middle
    mean = moved @ nodes
    return mean + middle, np.maximum(np.square(moved) @ nodes - np.square(mean), 0.0)


def _hat_weights(mean: float, scale: float) -> Floats:
    """Return the integrals of the functions that interpolate between scores under a normal density, (n_scores,)."""
    edges = (_SCORES - mean) / scale
    below, density = ndtr(edges), np.exp(-0.5 * np.square(edges)) / np.sqrt(2 * np.pi)
    step = _SCORES[1] - _SCORES[0]
    # Between two scores: the mass, and the mean distance from the lower one in steps.
    mass = np.diff(below)
    first = (mean * mass - scale * np.diff(density) - _SCORES[:-1] * mass) / step
    weights = np.zeros(len(_SCORES))
    weights[:-1] += mass - first
    weights[1:] += first
    weights[0] += below[0]
    weights[-1] += 1.0 - below[-1]
    return weights


def values_at(table: Floats, scores: Floats) -> Floats:
    """Return the values of rows that have some normal scores. Shapes: table (n_rows, n_scores); scores (n_rows, m)."""
    place = np.clip((scores - _SCORES[0]) / (_SCORES[1] - _SCORES[0]), 0.0, len(_SCORES) - 1.000001)
    below = place.astype(np.intp)
    low, high = (np.take_along_axis(table, below + i, axis=1) for i in (0, 1))
    return np.asarray(low + (place - below) * (high - low))


def interpolated(values: Floats, factors: Floats) -> Floats:
    """Return values on the grid of nodes at some sums of factors; straight on beyond its ends.

    Shapes: values (n_cells, n_nodes); factors (n_cells, n_draws).
    """
    place = (factors - _NODES[0]) / (_NODES[1] - _NODES[0])
    below = np.clip(place.astype(np.intp), 0, len(_NODES) - 2)
    low, high = (np.take_along_axis(values, below + i, axis=1) for i in (0, 1))
    return np.asarray(low + np.clip(place - below, -1.0, 2.0) * (high - low))


def row_draws(rows: NDArray[np.intp], seed: int) -> Floats:
    """Return evenly spread normal scores, in an order that depends on the row's number alone, (n_rows, n_draws).

    The order is a permutation of the 256 numbers of a byte: rounds of steps that can be undone (add a key, multiply by
    an odd one, mix high bits into low ones), with keys of the row.
    """
    scores = ndtri((np.arange(N_DRAWS) + 0.5) / N_DRAWS)
    keys = _mixed(_mixed(rows.astype(np.uint64)[:, None] + np.uint64(seed << 32)) + _ROUND_KEYS)
    place = np.broadcast_to(np.arange(N_DRAWS, dtype=np.uint8), (len(rows), N_DRAWS))
    for one in keys.T:
        added, factor, last = ((one >> np.uint64(shift)).astype(np.uint8)[:, None] for shift in (8, 24, 40))
        place = (place + added) * (factor | np.uint8(1))
        place = (place ^ (place >> np.uint8(4))) * np.uint8(0x2D) + last
        place = place ^ (place >> np.uint8(3))
    return np.asarray(scores[place])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits depend on all bits of the given ones (the finalizer of SplitMix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def smoothed(samples: Floats, mean: float, deviation: float) -> tuple[Floats, Floats]:
    """Return the means and standard deviations of kernels at samples, which are moved so that all have these moments.

    Shapes: samples (n_draws,).
    """
    found = samples.std()
    scores = (samples - samples.mean()) / (found if found > 0 else 1.0)
    tiny = max(1e-12 * abs(mean), _LEAST_SCALE)
    loc = mean + scores * deviation * np.sqrt(1.0 - _BANDWIDTH**2)
    return loc, np.full(len(samples), max(_BANDWIDTH * deviation, tiny))


def _add_rows(total: Floats, places: Codes, values: Floats) -> None:
    """Add values of rows to the sums at their places. Shapes: total (n, m); places (n_rows,); values (n_rows, m)."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_places) > 0])
    total[sorted_places[starts]] += np.add.reduceat(values[order], starts, axis=0)
