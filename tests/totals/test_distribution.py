"""The contract of distributions of totals, against a mixture by hand."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from ibug.totals import TotalDistribution
from tests.oracles import crps_by_quadrature

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
LOC, SCALE = RNG.normal(10, 3, (4, 16)), RNG.uniform(0.2, 2, (4, 16))
OPEN = np.full(4, -np.inf), np.full(4, np.inf)


@pytest.fixture
def totals():
    return TotalDistribution(LOC, SCALE, *OPEN, np.array(["a", "b", "c", "d"]), np.array([3, 1, 4, 1]))


def cdf_by_hand(group, y):
    return norm.cdf(y, LOC[group], SCALE[group]).mean()


def test_cdf_and_density(totals):
    y = np.array([8.0, 9.5, 11.0, 30.0])
    np.testing.assert_allclose(totals.cdf(y), [cdf_by_hand(g, y[g]) for g in range(4)], rtol=1e-12)
    density = [norm.pdf(y[g], LOC[g], SCALE[g]).mean() for g in range(4)]
    np.testing.assert_allclose(totals.pdf(y), density, rtol=1e-10)
    np.testing.assert_allclose(totals.logpdf(y), np.log(density), rtol=1e-10)
    table = totals.cdf(np.tile(y, (4, 1)))
    np.testing.assert_allclose(table, [[cdf_by_hand(g, one) for one in y] for g in range(4)], rtol=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 1 - 1e-6])
def test_quantiles(totals, p):
    expected = [brentq(lambda y, g=g: cdf_by_hand(g, y) - p, -60, 80, xtol=1e-12) for g in range(4)]
    np.testing.assert_allclose(totals.ppf(p), expected, rtol=1e-7)


def test_many_quantiles_of_a_group(totals):
    found = totals.ppf(np.array([[0.1, 0.5, 0.9]]))
    assert found.shape == (4, 3)
    np.testing.assert_allclose(found[:, 1], totals.median())
    np.testing.assert_allclose(totals.interval(0.8), found[:, [0, 2]].T)


def test_moments_and_score(totals):
    np.testing.assert_allclose(totals.mean(), LOC.mean(axis=1))
    expected = [
        quad(lambda y, g=g: (y - LOC[g].mean()) ** 2 * norm.pdf(y, LOC[g], SCALE[g]).mean(), -20, 40, limit=500)[0]
        for g in range(4)
    ]
    np.testing.assert_allclose(totals.var(), expected, rtol=1e-6)
    for g in range(4):
        for y in (5.0, 10.0, 20.0):
            score = crps_by_quadrature(totals[g], y)
            np.testing.assert_allclose(totals[g].crps(y), score, rtol=1e-5)
            np.testing.assert_allclose(totals.crps(y)[g], score, rtol=1e-5)


def test_draws_have_the_distribution(totals):
    drawn = totals.rvs(4000, random_state=0)
    assert drawn.shape == (4, 4000)
    np.testing.assert_allclose(drawn.mean(axis=1), totals.mean(), atol=5 * totals.std().max() / 60)


def test_one_group_and_several_groups(totals):
    one = totals[2]
    assert one.shape == ()
    assert (one.groups, one.n_rows) == ("c", 4)
    assert one.mean() == totals.mean()[2]
    assert one.cdf(9.0) == pytest.approx(totals.cdf(9.0)[2])
    assert one.ppf(0.3) == pytest.approx(totals.ppf(0.3)[2])
    assert one.cdf([8.0, 9.0]).shape == (2,)
    assert "90%=[" in repr(one)
    some = totals[[3, 0]]
    assert list(some.groups) == ["d", "a"]
    assert list(totals[1:3].n_rows) == [1, 4]
    assert repr(some) == "<TotalDistribution: 2 groups>"


def test_joined(totals):
    whole = TotalDistribution.concatenate([totals[:1], totals[1:]])
    for name in ("loc", "scale", "lower", "upper", "groups", "n_rows"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(totals, name))
    nameless = TotalDistribution(LOC, SCALE, *OPEN)
    assert TotalDistribution.concatenate([nameless, nameless]).groups is None


def test_bounds_hold_what_is_outside():
    bounded = TotalDistribution([[0.0, 1.0]], [[1.0, 1.0]], [0.0], [2.0])
    outside = norm.cdf(0, [0.0, 1.0]).mean()
    np.testing.assert_allclose(bounded.cdf(0.0), outside)
    assert bounded.cdf(-1e-9) == 0
    assert bounded.cdf(2.0) == 1
    assert bounded.ppf(outside / 2) == 0
    assert bounded.ppf(0.999) == 2
    np.testing.assert_array_equal(bounded.logpdf([[-0.1, 2.1]]), [[-np.inf, -np.inf]])
    drawn = bounded.rvs(100, random_state=0)
    assert drawn.min() >= 0
    assert drawn.max() <= 2


def test_ends_of_the_probabilities(totals):
    np.testing.assert_array_equal(totals.ppf(0.0), -np.inf)
    np.testing.assert_array_equal(totals.ppf(1.0), np.inf)
    assert np.isnan(totals.ppf(np.nan)).all()


def test_totals_without_spread():
    certain = TotalDistribution([[5.0, 5.0]], [[1e-12, 1e-12]], [-np.inf], [np.inf])
    np.testing.assert_allclose(certain.ppf(0.05), 5.0)
    np.testing.assert_allclose(certain.crps(7.0), 2.0)
