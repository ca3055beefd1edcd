"""Totals against a simulation of the copula, row by row."""

from itertools import pairwise

import numpy as np
import pytest

from ibug.distributions import MixtureParams, Normal, Stack, Weibull
from ibug.totals import Dependence, Plan, Sums
from ibug.totals._sums import row_draws
from tests.totals.copula import draw_totals, sample_crps

pytestmark = pytest.mark.once

SIZE = 20_000


def normal_rows(n, rng):
    return Normal(rng.normal(5, 2, n), rng.uniform(0.5, 2, n))


def skewed_rows(n, rng):
    return Weibull(np.zeros(n), rng.uniform(0.5, 2, n), rng.uniform(0.9, 2, n))


def stack_rows(n, rng):
    errors = np.sort(rng.exponential(size=50)) - 1
    shared = MixtureParams([0.3, 0.4, 0.3], errors)
    return Stack(rng.normal(5, 2, n), rng.uniform(0.5, 2, n), rng.normal(6, 2, (n, 8)), np.ones((n, 8)), shared)


def known(correlation, n_blocks):
    correlation = np.asarray(correlation, float)
    names = tuple("abc"[: len(correlation)])
    return Dependence(names, correlation, correlation, 0 * correlation, tuple(n_blocks))


def totals(distribution, groups, weights, blocks, dependence, cuts=()):
    """Return the distributions of totals, of rows that come in batches."""
    plan = Plan.of((np.unique(groups), groups), weights, blocks, dependence)
    sums = Sums(plan)
    for start, stop in pairwise([0, *cuts, len(groups)]):
        sums.add(slice(start, stop), distribution[start:stop])
    return sums.distribution()


def compare(found, drawn, share, spread=0.04):
    """Compare means, spreads, quantiles and scores. Quantiles hold what they say up to a share of the draws."""
    std = drawn.std(axis=0)
    assert np.all(np.abs(found.mean() - drawn.mean(axis=0)) < 0.05 * std)
    assert np.all(np.abs(found.std() / std - 1) < spread)
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):
        below = np.mean(drawn <= found.ppf(p), axis=0)
        assert np.all(np.abs(below - p) < share * 2 * np.sqrt(p * (1 - p)))
    for level in (0.1, 0.5, 0.8):
        y = np.quantile(drawn, level, axis=0)
        expected = [sample_crps(one, own) for one, own in zip(y, drawn.T, strict=True)]
        assert np.all(np.abs(found.crps(y) - expected) < share * std)


# Three standard errors of shares of the 256 draws of a group whose rows are drawn one by one.
SAMPLED = 3 * 0.5 / np.sqrt(256)

ROWS = {"normal": normal_rows, "skewed": skewed_rows, "stack": stack_rows}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("size", [1, 5, 29, 30, 200])
@pytest.mark.parametrize("rho", [0.0, 0.2])
def test_a_group_that_is_a_block(rows, size, rho):
    distribution = ROWS[rows](size, np.random.default_rng(size))
    codes = np.zeros(size, int)
    dependence = known([rho], [200])
    found = totals(distribution, codes, np.ones(size), [codes], dependence)
    drawn = draw_totals(distribution, codes, np.ones(size), [codes], [rho], [200], SIZE)
    compare(found, drawn, SAMPLED if size < 30 else 0.04)


@pytest.mark.parametrize("rows", ROWS)
def test_no_blocks(rows):
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [4, 40, 100])
    distribution = ROWS[rows](len(groups), rng)
    found = totals(distribution, groups, np.ones(len(groups)), [], None)
    np.testing.assert_allclose(found.mean(), np.bincount(groups, distribution.mean()), rtol=1e-6)
    np.testing.assert_allclose(found.var(), np.bincount(groups, distribution.var()), rtol=0.03)
    compare(found, draw_totals(distribution, groups, np.ones(len(groups)), [], [], [], SIZE), SAMPLED)


@pytest.mark.parametrize("rows", ["normal", "stack"])
@pytest.mark.parametrize("size", [6, 60])
def test_weights_are_prices_differences_and_zero(rows, size):
    rng = np.random.default_rng(size)
    distribution = ROWS[rows](size, rng)
    weights = rng.uniform(-2, 2, size)
    weights[::3] = 0
    codes, block = np.zeros(size, int), np.arange(size) % 2
    found = totals(distribution, codes, weights, [block], known([0.3], [100]))
    drawn = draw_totals(distribution, codes, weights, [block], [0.3], [100], SIZE)
    compare(found, drawn, SAMPLED)


def test_weights_of_zero_are_a_total_of_zero():
    distribution = normal_rows(40, np.random.default_rng(0))
    found = totals(distribution, np.zeros(40, int), np.zeros(40), [np.arange(40) // 4], known([0.3], [100]))
    np.testing.assert_allclose([found.mean(), found.std(), *found.interval(0.9)], 0, atol=1e-6)


def test_a_month_of_days():
    rng = np.random.default_rng(3)
    day = np.arange(30 * 12) // 12
    month = (day >= 15).astype(int)
    distribution = skewed_rows(len(day), rng)
    found = totals(distribution, month, np.ones(len(day)), [day], known([0.25], [100]))
    compare(found, draw_totals(distribution, month, np.ones(len(day)), [day], [0.25], [100], 5000), 0.04)


def test_few_rows_of_several_days():
    day = np.arange(12) // 3
    distribution = skewed_rows(12, np.random.default_rng(4))
    found = totals(distribution, day // 2, np.ones(12), [day], known([0.4], [100]))
    compare(found, draw_totals(distribution, day // 2, np.ones(12), [day], [0.4], [100], SIZE), SAMPLED)


def test_crossed_blocks():
    store, day = np.arange(400) % 10, np.arange(400) // 10
    distribution = normal_rows(400, np.random.default_rng(5))
    for groups in (store, day // 20):
        found = totals(distribution, groups, np.ones(400), [store, day], known([0.1, 0.2], [50, 100]))
        drawn = draw_totals(distribution, groups, np.ones(400), [store, day], [0.1, 0.2], [50, 100], 5000)
        compare(found, drawn, 0.06, spread=0.08)


def test_nested_blocks():
    day = np.arange(480) // 12
    week = day // 8
    distribution = skewed_rows(480, np.random.default_rng(6))
    found = totals(distribution, week, np.ones(480), [week, day], known([0.1, 0.2], [60, 200]))
    drawn = draw_totals(distribution, week, np.ones(480), [week, day], [0.1, 0.2], [60, 200], 5000)
    compare(found, drawn, 0.06, spread=0.08)


def test_any_cut_into_batches_gives_the_same():
    rng = np.random.default_rng(7)
    groups, day = np.arange(300) % 20, np.arange(300) // 15
    groups[groups == 3] = 4
    groups = np.unique(groups, return_inverse=True)[1]
    distribution, weights = stack_rows(300, rng), rng.uniform(-1, 3, 300)
    arguments = distribution, groups, weights, [day], known([0.2], [50])
    whole = totals(*arguments)
    for _ in range(5):
        cut = totals(*arguments, cuts=np.sort(rng.choice(np.arange(1, 300), rng.integers(1, 12), replace=False)))
        for name in ("loc", "scale", "lower", "upper"):
            np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-9, atol=1e-9)


def test_sums_of_machines_add_up():
    rng = np.random.default_rng(8)
    groups, day = np.arange(200) % 7, np.arange(200) // 10
    distribution = normal_rows(200, rng)
    plan = Plan.of((np.arange(7), groups), np.ones(200), [day], known([0.2], [50]))
    parts = [Sums(plan), Sums(plan)]
    for i in range(0, 200, 50):
        parts[i // 50 % 2].add(slice(i, i + 50), distribution[i : i + 50])
    found = parts[0].plus(parts[1].values()).distribution()
    whole = totals(distribution, groups, np.ones(200), [day], known([0.2], [50]))
    np.testing.assert_allclose(found.loc, whole.loc, rtol=1e-9)
    np.testing.assert_allclose(found.scale, whole.scale, rtol=1e-9)


def test_bounds_are_sums_of_bounds():
    distribution = skewed_rows(6, np.random.default_rng(9))
    found = totals(distribution, np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, 0, 1, -1, 1]), [], None)
    np.testing.assert_array_equal(found.lower, [0, -np.inf])
    np.testing.assert_array_equal(found.upper, [np.inf, np.inf])


def test_row_draws_are_permutations_without_correlation():
    draws = row_draws(np.arange(1000), 0)
    for row in draws:
        np.testing.assert_array_equal(np.sort(row), np.sort(draws[0]))
    found = np.corrcoef(draws)[np.triu_indices(1000, 1)]
    assert abs(found.mean()) < 5e-4
    assert abs(found.std() * np.sqrt(255) - 1) < 0.02  # as of permutations by chance
    np.testing.assert_array_equal(row_draws(np.array([17, 3]), 0), draws[[17, 3]])
    assert not np.array_equal(row_draws(np.array([17]), 1), draws[[17]])
