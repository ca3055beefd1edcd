"""The batched normal distribution against scipy.stats and quadrature."""

import numpy as np
import pytest
from scipy import stats

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from tests.oracles import crps_by_quadrature

LOC = np.array([-3.0, 0.0, 1e6, 2.5])
SCALE = np.array([0.1, 1.0, 30.0, 7.0])
Y = LOC + SCALE * np.array([-4.0, 0.3, 1.0, 9.0])


@pytest.fixture
def distribution():
    return Normal(LOC, SCALE)


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf"])
def test_densities_equal_scipy(distribution, method):
    np.testing.assert_allclose(getattr(distribution, method)(Y), getattr(stats.norm(LOC, SCALE), method)(Y), rtol=1e-9)


def test_moments(distribution):
    np.testing.assert_array_equal(distribution.mean(), LOC)
    np.testing.assert_array_equal(distribution.std(), SCALE)
    np.testing.assert_allclose(distribution.var(), SCALE**2)


def test_quantiles_and_intervals_equal_scipy(distribution):
    q = np.array([0.01, 0.4, 0.5, 0.975])
    np.testing.assert_allclose(distribution.ppf(q), stats.norm(LOC, SCALE).ppf(q))
    np.testing.assert_allclose(distribution.interval(0.8), stats.norm(LOC, SCALE).interval(0.8))
    assert distribution.ppf(0.0)[0] == -np.inf
    assert distribution.ppf(1.0)[0] == np.inf


def test_crps_equals_quadrature(distribution):
    expected = [crps_by_quadrature(stats.norm(loc, scale), y) for loc, scale, y in zip(LOC, SCALE, Y, strict=True)]
    np.testing.assert_allclose(distribution.crps(Y), expected, rtol=1e-6)


def test_crps_of_a_narrow_distribution_is_the_absolute_error():
    np.testing.assert_allclose(Normal(1.0, 1e-12).crps(4.0), 3.0)


def test_arguments_match_rows_from_the_left(distribution):
    grid = np.linspace(-1, 1, 5)
    assert distribution.cdf(0.0).shape == (4,)
    assert distribution.cdf(Y).shape == (4,)
    assert distribution.cdf(grid[None, :]).shape == (4, 5)
    assert distribution.cdf(np.tile(grid, (4, 1))).shape == (4, 5)
    np.testing.assert_array_equal(distribution.cdf(grid[None, :])[2], distribution[2].cdf(grid))
    with pytest.raises(InvalidInputError, match=r"shape \(5,\) does not fit 4 rows"):
        distribution.cdf(grid)
    with pytest.raises(InvalidInputError, match=r"shape \(3, 5\) does not fit 4 rows"):
        distribution.cdf(np.zeros((3, 5)))


def test_square_argument_is_values_per_row(distribution):
    # (n, n) must not be read as one value per row along the other axis.
    grid = np.arange(16.0).reshape(4, 4)
    np.testing.assert_allclose(distribution.cdf(grid), stats.norm(LOC[:, None], SCALE[:, None]).cdf(grid))


def test_indexing(distribution):
    assert len(distribution) == 4
    assert distribution.shape == (4,)
    part = distribution[1:3]
    np.testing.assert_array_equal(part.mean(), LOC[1:3])
    np.testing.assert_array_equal(distribution[[3, 0]].std(), SCALE[[3, 0]])
    np.testing.assert_array_equal(distribution[LOC > 1].mean(), LOC[LOC > 1])
    one = distribution[-1]
    assert one.shape == ()
    assert float(one.mean()) == 2.5
    assert repr(one) == "Normal(loc=2.5, scale=7)"
    assert repr(distribution) == "<Normal: 4 rows>"
    with pytest.raises(TypeError, match="no length"):
        len(one)
    with pytest.raises(TypeError, match="cannot be indexed"):
        one[0]


def test_a_batch_of_one_row_stays_a_batch():
    distribution = Normal([5.0], [1.0])
    assert distribution.ppf(0.3).shape == (1,)
    assert distribution.ppf([[0.1, 0.9]]).shape == (1, 2)
    assert distribution.rvs(3).shape == (1, 3)


def test_samples_follow_the_distribution(distribution):
    samples = distribution.rvs(4000, random_state=0)
    assert samples.shape == (4, 4000)
    for row, loc, scale in zip(samples, LOC, SCALE, strict=True):
        assert stats.kstest(row, stats.norm(loc, scale).cdf).pvalue > 0.001
    correlation = np.corrcoef(samples)
    assert np.abs(correlation - np.eye(4)).max() < 0.1  # rows are drawn independently


@pytest.mark.parametrize("seed", [7, np.random.RandomState(7), np.random.default_rng(7)])
def test_samples_repeat_with_the_seed(distribution, seed):
    import copy

    np.testing.assert_array_equal(distribution.rvs(5, copy.deepcopy(seed)), distribution.rvs(5, copy.deepcopy(seed)))
    assert distribution.rvs(random_state=seed).shape == (4,)


@pytest.mark.parametrize(
    ("loc", "scale"), [(0.0, 0.0), (0.0, -1.0), (np.nan, 1.0), (0.0, np.nan), (0.0, np.inf), ([0.0, np.inf], 1.0)]
)
def test_impossible_parameters(loc, scale):
    with pytest.raises(InvalidInputError, match="finite scales above zero"):
        Normal(loc, scale)


def test_parameters_of_higher_dimension():
    with pytest.raises(InvalidInputError, match=r"got shape \(2, 2\)"):
        Normal(np.zeros((2, 2)), 1.0)


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, np.nan])
def test_impossible_coverage(distribution, level):
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        distribution.interval(level)


def test_impossible_probability(distribution):
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        distribution.ppf(1.2)


def test_a_score_that_is_too_large_is_infinite_without_a_warning():
    distribution = Normal([0.0, 1.0], [1e-300, 1.0])
    np.testing.assert_array_equal(distribution.normal_score([1e10, 2.0]), [np.inf, 1.0])
