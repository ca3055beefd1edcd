"""The batched lognormal distribution against scipy.stats and quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from ibug.distributions import Lognormal
from ibug.exceptions import InvalidInputError

SHIFT = np.array([-3.0, 0.0, 100.0, 0.0])
MU = np.array([0.5, -2.0, 3.0, 12.0])
SIGMA = np.array([0.3, 1.2, 0.05, 2.0])
ORACLE = stats.lognorm(SIGMA, SHIFT, np.exp(MU))
Y = ORACLE.ppf([0.01, 0.5, 0.97, 0.8])
Q = np.array([0.01, 0.4, 0.5, 0.999])


@pytest.fixture
def distribution():
    return Lognormal(SHIFT, MU, SIGMA)


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf"])
def test_densities_equal_scipy(distribution, method):
    np.testing.assert_allclose(getattr(distribution, method)(Y), getattr(ORACLE, method)(Y), rtol=1e-10)


def test_moments_and_quantiles_equal_scipy(distribution):
    np.testing.assert_allclose(distribution.mean(), ORACLE.mean(), rtol=1e-12)
    np.testing.assert_allclose(distribution.var(), ORACLE.var(), rtol=1e-12)
    np.testing.assert_allclose(distribution.std(), ORACLE.std(), rtol=1e-12)
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
    assert np.all(np.isnan(distribution.logpdf(np.nan)))


def test_density_integrates_to_one(distribution):
    for i in range(4):
        one = distribution[i]

        def by_score(w, one=one):
            above = one.from_normal_score(w) - one.shift
            return float(one.pdf(one.shift + above) * one.sigma * above)

        np.testing.assert_allclose(quad(by_score, -9, 9, epsabs=0, epsrel=1e-11)[0], 1.0, rtol=1e-9)


@pytest.mark.parametrize("q", [0.001, 0.3, 0.95])
def test_crps_equals_quadrature(distribution, q):
    y = ORACLE.ppf(q)
    np.testing.assert_allclose(distribution.crps(y), crps_over_scores(distribution, y), rtol=1e-8)


def test_crps_below_the_support(distribution):
    y = SHIFT - np.array([0.0, 1.0, 5.0, 1e3])
    np.testing.assert_allclose(distribution.crps(y), crps_over_scores(distribution, y), rtol=1e-8)


def crps_over_scores(distribution, y):
    """Return ∫ (F − 1[x ≥ y])² dx with x = Q(Φ(w)), dx = σ (x − shift) dw, and the piece below that."""
    out = []
    for i, value in enumerate(y):
        one = distribution[i]

        def step(w, one=one):
            return float(one.sigma * (one.from_normal_score(w) - one.shift))

        at = max(float(one.normal_score(value)), -12.0)
        below = quad(lambda w: stats.norm.cdf(w) ** 2 * step(w), -12, at, epsabs=0, epsrel=1e-11)[0]
        above = quad(lambda w: stats.norm.sf(w) ** 2 * step(w), at, 14, epsabs=0, epsrel=1e-11, limit=200)[0]
        out.append(below + above + max(float(one.from_normal_score(-12)) - value, 0.0))
    return np.array(out)


def test_scores_are_exact_in_the_tails(distribution):
    w = np.array([[-35.0, -9.0, 0.0, 9.0, 35.0]])
    central = Lognormal([0.0, 0.0], [-20.0, 3.0], [0.1, 2.0])
    np.testing.assert_allclose(central.normal_score(central.from_normal_score(w)), np.tile(w, (2, 1)), atol=1e-9)
    np.testing.assert_allclose(distribution.normal_score(Y), stats.norm.ppf([0.01, 0.5, 0.97, 0.8]), atol=1e-8)


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
    assert repr(distribution[1]) == "Lognormal(shift=0, mu=-2, sigma=1.2)"
    with pytest.raises(InvalidInputError, match="does not fit 4 rows"):
        distribution.logpdf(grid)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        distribution.ppf(1.2)


def test_fit_is_most_likely():
    rng = np.random.default_rng(1)
    values = 2 + rng.lognormal(rng.normal(size=(12, 1)), rng.uniform(0.05, 2, (12, 1)), (12, 25))
    distribution = Lognormal.fit(values, shift=2.0)
    for i, row in enumerate(values):
        sigma, _, median = stats.lognorm.fit(row, floc=2.0)
        assert distribution[i].logpdf(row).sum() >= stats.lognorm(sigma, 2.0, median).logpdf(row).sum() - 1e-9


@pytest.mark.parametrize("parameters", [(np.nan, 0, 1), (0, np.inf, 1), (0, 0, 0), (0, 0, -1), (0, 0, np.inf)])
def test_impossible_parameters(parameters):
    with pytest.raises(InvalidInputError, match="finite shift, a finite mu, and a finite sigma above zero"):
        Lognormal(*parameters)
