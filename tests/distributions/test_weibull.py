"""The batched Weibull distribution against scipy.stats and quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from ibug.distributions import Weibull
from ibug.exceptions import InvalidInputError

SHIFT = np.array([-3.0, 0.0, 100.0, 0.0])
SCALE = np.array([0.5, 2.0, 30.0, 1e6])
POWER = np.array([0.6, 1.0, 3.5, 40.0])
ORACLE = stats.weibull_min(POWER, SHIFT, SCALE)
Y = ORACLE.ppf([0.01, 0.5, 0.97, 0.8])
Q = np.array([0.01, 0.4, 0.5, 0.999])


@pytest.fixture
def distribution():
    return Weibull(SHIFT, SCALE, POWER)


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf"])
def test_densities_equal_scipy(distribution, method):
    np.testing.assert_allclose(getattr(distribution, method)(Y), getattr(ORACLE, method)(Y), rtol=1e-10)


def test_moments_and_quantiles_equal_scipy(distribution):
    np.testing.assert_allclose(distribution.mean(), ORACLE.mean(), rtol=1e-12)
    np.testing.assert_allclose(distribution.var(), ORACLE.var(), rtol=1e-10)
    np.testing.assert_allclose(distribution.std(), ORACLE.std(), rtol=1e-10)
    np.testing.assert_allclose(distribution.ppf(Q), ORACLE.ppf(Q), rtol=1e-12)
    np.testing.assert_allclose(distribution.interval(0.8), ORACLE.interval(0.8), rtol=1e-12)
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(Q)), Q, rtol=1e-11)
    np.testing.assert_array_equal(distribution.ppf(0.0), SHIFT)
    assert np.all(distribution.ppf(1.0) == np.inf)


def test_outside_the_support(distribution):
    for y in (SHIFT, SHIFT - 1, np.full(4, -np.inf)):
        np.testing.assert_array_equal(distribution.logpdf(y), -np.inf)
        np.testing.assert_array_equal(distribution.pdf(y), 0.0)
        np.testing.assert_array_equal(distribution.cdf(y), 0.0)
        np.testing.assert_array_equal(distribution.normal_score(y), -np.inf)
    assert np.all(distribution.logpdf(np.inf) == -np.inf)
    assert np.all(distribution.cdf(np.inf) == 1)
    assert np.all(np.isnan(distribution.logpdf(np.nan)))


def test_density_integrates_to_one(distribution):
    for i in range(4):
        one = distribution[i]

        def by_log_hazard(g, one=one):
            above = one.scale * np.exp(g / one.power)
            return float(one.pdf(one.shift + above) * above / one.power)

        np.testing.assert_allclose(quad(by_log_hazard, -25, 5, epsabs=0, epsrel=1e-11, limit=200)[0], 1.0, rtol=1e-8)


@pytest.mark.parametrize("q", [0.001, 0.3, 0.95])
def test_crps_equals_quadrature(distribution, q):
    y = ORACLE.ppf(q)
    np.testing.assert_allclose(distribution.crps(y), crps_over_log_hazards(distribution, y), rtol=1e-8)


def test_crps_below_the_support(distribution):
    y = SHIFT - np.array([0.0, 1.0, 5.0, 1e3])
    np.testing.assert_allclose(distribution.crps(y), crps_over_log_hazards(distribution, y), rtol=1e-8)


def crps_over_log_hazards(distribution, y):
    """Return ∫ (F − 1[x ≥ y])² dx with x = shift + scale e^{g/c}, F = 1 − exp(−e^g), and the piece below that."""
    out = []
    for value, shift, scale, c in zip(y, distribution.shift, distribution.scale, distribution.power, strict=True):

        def step(g, scale=scale, c=c):
            return scale / c * np.exp(g / c)

        first = -40 - 12 * c
        at = c * np.log((value - shift) / scale) if value > shift else first
        below = quad(lambda g: np.expm1(-np.exp(g)) ** 2 * step(g), first, at, epsabs=0, epsrel=1e-11, limit=400)[0]
        above = quad(lambda g: np.exp(-2 * np.exp(g)) * step(g), at, 6, epsabs=0, epsrel=1e-11, limit=400)[0]
        out.append(below + above + max(shift + scale * np.exp(first / c) - value, 0.0))
    return np.array(out)


def test_scores_are_exact_in_the_tails():
    distribution = Weibull([0.0, 0.0], [1e-9, 5.0], [4.0, 300.0])
    w = np.array([[-37.0, -12.0, -9.9, -1.0, 0.0, 0.01, 1.0, 9.0, 37.0, 1e3]])
    np.testing.assert_allclose(
        distribution.normal_score(distribution.from_normal_score(w)), np.tile(w, (2, 1)), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        distribution.from_normal_score([[-2.0, 1.5]]), distribution.ppf(stats.norm.cdf([[-2.0, 1.5]])), rtol=1e-10
    )


def test_samples_follow_the_distribution(distribution):
    samples = distribution.rvs(4000, random_state=0)
    assert samples.shape == (4, 4000)
    for i, row in enumerate(samples):
        assert stats.kstest(row, distribution[i].cdf).pvalue > 0.001


def test_rows_and_arguments(distribution):
    grid = np.linspace(101, 130, 5)
    assert distribution.cdf(grid[None, :]).shape == (4, 5)
    np.testing.assert_array_equal(distribution.crps(grid[None, :])[2], distribution[2].crps(grid))
    np.testing.assert_array_equal(distribution[1:3].mean(), distribution.mean()[1:3])
    assert distribution.shape == (4,)
    assert repr(distribution[1]) == "Weibull(shift=0, scale=2, power=1)"
    with pytest.raises(InvalidInputError, match="does not fit 4 rows"):
        distribution.logpdf(grid)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        distribution.ppf(1.2)


def test_fit_is_most_likely():
    rng = np.random.default_rng(1)
    values = 2 + rng.weibull(rng.uniform(0.3, 20, (12, 1)), (12, 25)) * np.exp(rng.normal(size=(12, 1)))
    distribution = Weibull.fit(values, shift=2.0)
    for i, row in enumerate(values):
        power, _, scale = stats.weibull_min.fit(row, floc=2.0)
        assert distribution[i].logpdf(row).sum() >= stats.weibull_min(power, 2.0, scale).logpdf(row).sum() - 1e-9


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=30), st.sampled_from([1e-3, 0.1, 1.0]))
@settings(deadline=None)
def test_fit_solves_the_likelihood_equations(logs, spread):
    logs = spread * np.array([logs])
    if logs.std() < 1e-6:
        return
    distribution = Weibull.fit(np.exp(logs))
    c = distribution.power[0]
    weights = np.exp(c * (logs - logs.max()))
    score = 1 / c + logs.mean() - (weights * logs).sum() / weights.sum()
    if 0.02 < c < 1e6:
        assert abs(c * score) < 1e-6  # the logarithms of the rounded values themselves limit it for large c
    np.testing.assert_allclose(np.mean((np.exp(logs) / distribution.scale) ** c), 1.0, rtol=1e-6)


def test_all_values_equal_but_one():
    # The two ends of what the shape of k values can be: one below all others, one above.
    distribution = Weibull.fit(np.array([[1e-8] + [1.0] * 99, [1.0] * 99 + [1e8]]))
    np.testing.assert_array_less(0.02, distribution.power)
    np.testing.assert_array_less(distribution.power, 10)


@pytest.mark.parametrize("parameters", [(np.nan, 1, 1), (0, np.inf, 1), (0, 0, 1), (0, -1, 1)])
def test_impossible_shift_or_scale(parameters):
    with pytest.raises(InvalidInputError, match="finite shift and a finite scale above zero"):
        Weibull(*parameters)


@pytest.mark.parametrize("power", [0.0, -1.0, 1e-3, 1e10, np.nan])
def test_impossible_power(power):
    with pytest.raises(InvalidInputError, match=r"must be from 0.02 to 2e\+08"):
        Weibull(0, 1, power)
