"""Mixtures of distributions of every family against their definition."""

import numpy as np
import pytest
from scipy import stats

from ibug.distributions import Laplace, Mixture, Normal, Truncated, _mixture, families, resolve_family
from ibug.exceptions import InvalidInputError
from tests.oracles import crps_by_quadrature, mixture_of

pytestmark = pytest.mark.once

LOC = np.array([[-3.0, 0.0, 1e3, 2.5], [1.0, 0.0, 1e3 + 40, 2.5], [0.0, 9.0, 1e3, -60.0]])
SCALE = np.array([[0.1, 1.0, 30.0, 7.0], [2.0, 1e-3, 5.0, 7.0], [1.0, 2.0, 30.0, 0.5]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
Y = np.array([-2.9, 0.001, 1100.0, -58.0])
Q = np.array([1e-9, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-9])
ALL = pytest.mark.parametrize("name", families())


@pytest.fixture
def distribution():
    return Mixture([Normal(*parts) for parts in zip(LOC, SCALE, strict=True)], WEIGHTS * 7)


def truth(row):
    return mixture_of(stats.norm(LOC[:, row], SCALE[:, row]), WEIGHTS)


def distributions_of(name):
    """Mixtures of a family, fitted to rows of positive values, and a normal distribution, beside it and far from it."""
    rng = np.random.default_rng(3)
    values = 50 + rng.standard_t(5, size=(4, 40)) + rng.gamma(2, size=(4, 40))
    _, family = resolve_family(name)
    fitted = family.fit(values, **family.prepare(np.append(values.ravel(), values.max() * 1.1)))
    for loc, scale in ((52.0, 3.0), (75.0, 0.5)):
        yield Mixture([fitted, Normal(np.full(4, loc), scale)], [0.7, 0.3])


def test_densities_are_weighted_sums(distribution):
    for row in range(4):
        expected = truth(row)
        assert float(distribution.pdf(Y)[row]) == pytest.approx(expected.pdf(Y[row]), rel=1e-12)
        assert float(distribution.logpdf(Y)[row]) == pytest.approx(np.log(expected.pdf(Y[row])), rel=1e-12)
        assert float(distribution.cdf(Y)[row]) == pytest.approx(expected.cdf(Y[row]), rel=1e-12)
        assert float(distribution.mean()[row]) == pytest.approx(expected.mean(), rel=1e-12)
        assert float(distribution.var()[row]) == pytest.approx(expected.var(), rel=1e-12)


def test_log_density_far_away_is_a_number(distribution):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        far = distribution.logpdf(np.full((4, 1), 1e8))
    assert np.all(np.isfinite(far))
    np.testing.assert_allclose(far[0], np.log(0.2) + stats.norm(1, 2).logpdf(1e8), rtol=1e-12)


def test_one_component_is_that_distribution():
    one, same = Normal(LOC[0], SCALE[0]), Mixture([Normal(LOC[0], SCALE[0])])
    for method, argument in (("cdf", Y), ("ppf", Q[None]), ("crps", Y), ("normal_score", Y), ("logpdf", Y)):
        np.testing.assert_allclose(getattr(same, method)(argument), getattr(one, method)(argument), rtol=1e-12)


@ALL
def test_quantiles_invert_the_distribution_function(name):
    for distribution in distributions_of(name):
        quantiles = distribution.ppf(Q[None, :])
        assert np.all(np.diff(quantiles, axis=1) >= 0)
        # Between distributions far apart there is nothing: there a quantile has a whole gap to be in.
        np.testing.assert_allclose(distribution.cdf(quantiles), np.tile(Q, (4, 1)), rtol=1e-6, atol=1e-9)


@ALL
def test_normal_scores_invert_each_other(name):
    w = np.array([[-5.0, -1.0, 0.2, 3.0]])
    for distribution in distributions_of(name):
        np.testing.assert_allclose(
            distribution.normal_score(distribution.from_normal_score(w)), np.tile(w, (4, 1)), rtol=1e-6
        )
        np.testing.assert_allclose(distribution.from_normal_score(w), distribution.ppf(stats.norm.cdf(w)), rtol=1e-7)


def test_scores_of_normal_distributions_are_exact_far_out(distribution):
    w = np.array([[-35.0, -12.0, 9.0, 30.0]])
    np.testing.assert_allclose(
        distribution.normal_score(distribution.from_normal_score(w)), np.tile(w, (4, 1)), rtol=1e-9
    )
    # far below, what is widest there is all that is left: log F = log w + log Φ
    expected = np.log(0.2) + stats.norm(1, 2).logcdf(-80.0)
    assert stats.norm.logcdf(float(distribution[0].normal_score(-80.0))) == pytest.approx(expected, rel=1e-9)


def test_ends_of_the_support():
    distribution = Mixture([Truncated(Normal([0.0], [1.0]), -1.0, 2.0), Truncated(Normal([0.0], [1.0]), 0.5, 7.0)])
    np.testing.assert_allclose(distribution.ppf([[0.0, 1.0]]), [[-1.0, 7.0]], rtol=1e-15)
    np.testing.assert_allclose(distribution.from_normal_score([[-np.inf, np.inf]]), [[-1.0, 7.0]], rtol=1e-15)
    np.testing.assert_array_equal(distribution.cdf([[-1.1, 7.1]]), [[0.0, 1.0]])
    assert distribution.logpdf(-3.0)[0] == -np.inf
    normal = Mixture([Normal([0.0], [1.0]), Laplace([0.0], [1.0])])
    np.testing.assert_array_equal(normal.ppf([[0.0, 1.0]]), [[-np.inf, np.inf]])


def test_a_quantile_in_a_gap_is_between_the_distributions():
    distribution = Mixture([Normal([0.0], [1e-6]), Normal([1e6], [1e-6])])
    low, middle, high = distribution.ppf([[0.4999, 0.5, 0.5001]])[0]
    assert abs(low) < 1e-4
    assert 0 <= middle <= 1e6
    assert abs(high - 1e6) < 1e-4


@ALL
def test_density_is_the_derivative_and_integrates_to_one(name):
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for distribution in distributions_of(name):
        one = distribution[1]
        edges = np.unique(
            np.concatenate(
                [part.ppf(np.linspace(1e-9, 1 - 1e-9, 60)) for part in one.components]
                + [np.ravel(getattr(distribution.components[0], "values", [50.0]))]
            )
        )
        middles, halves = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        x = middles[:, None] + halves[:, None] * nodes
        total = np.sum(halves * (one.pdf(x.ravel()).reshape(x.shape) @ weights))
        assert total == pytest.approx(float(one.cdf(edges[-1]) - one.cdf(edges[0])), abs=1e-6)


@ALL
def test_crps_is_its_integral(name):
    for distribution in distributions_of(name):
        one = distribution[0]
        grid = np.unique(np.concatenate([part.ppf(np.linspace(1e-9, 1 - 1e-9, 20_001)) for part in one.components]))
        for y in (one.ppf(0.02), one.ppf(0.6), one.ppf(0.9), 60.0):
            x = np.unique(np.append(grid, [y, np.nextafter(y, np.inf)]))
            error = np.where(x <= y, one.cdf(x), one.cdf(x) - 1)
            expected = np.sum((error[1:] ** 2 + error[:-1] ** 2) / 2 * np.diff(x))
            assert float(one.crps(y)) == pytest.approx(float(expected), rel=2e-3)


def test_crps_of_normal_distributions_is_exact(distribution):
    for row in range(4):
        breaks = np.concatenate([[Y[row]], *(LOC[:, row] + s * SCALE[:, row] for s in (-8, -2, 0, 2, 8))])
        expected = crps_by_quadrature(truth(row), Y[row], breaks)
        assert float(distribution.crps(Y)[row]) == pytest.approx(expected, rel=1e-8)
    grid = np.stack([Y, Y + 1, Y - 50], axis=1)
    np.testing.assert_allclose(distribution.crps(grid)[:, 1], distribution.crps(Y + 1), rtol=1e-12)


def test_numerical_distance_is_the_exact_one():
    one, other = (Normal(*parts) for parts in zip(LOC[:2], SCALE[:2], strict=True))
    by_panels = _mixture._by_panels(one, other)
    np.testing.assert_allclose(by_panels, _mixture._square_distance(one, other), rtol=1e-6, atol=1e-15)


@ALL
def test_samples_follow_the_distribution(name):
    for distribution in distributions_of(name):
        samples = distribution.rvs(4000, random_state=0)
        assert samples.shape == (4, 4000)
        assert stats.kstest(samples[2], lambda x, distribution=distribution: distribution[2].cdf(x)).pvalue > 0.001
        assert distribution[2].rvs(5, random_state=0).shape == (5,)


@pytest.mark.parametrize("seed", [7, np.random.RandomState(7), np.random.default_rng(7)])
def test_samples_repeat_with_the_seed(distribution, seed):
    import copy

    np.testing.assert_array_equal(distribution.rvs(5, copy.deepcopy(seed)), distribution.rvs(5, copy.deepcopy(seed)))
    assert distribution.rvs(random_state=seed).shape == (4,)
    assert np.ndim(distribution[0].rvs(random_state=seed)) == 0


@ALL
def test_samples_are_drawn_row_after_row(name):
    for distribution in distributions_of(name):
        whole, generator = distribution.rvs(6, random_state=3), np.random.RandomState(3)
        parts = [distribution[some].rvs(6, random_state=generator) for some in (slice(0, 1), slice(1, 4))]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_many_components():
    distribution = Mixture([Normal([float(i)], [1.0]) for i in range(50)])
    assert distribution.rvs(1000, random_state=0).max() > 45
    assert distribution.mean()[0] == pytest.approx(24.5)


def test_rows_are_each_by_themselves(distribution):
    assert len(distribution) == 4
    assert distribution[2].shape == ()
    for part in (distribution[1:3], distribution[[1, 2]], distribution[np.array([False, True, True, False])]):
        np.testing.assert_allclose(part.ppf(Q[None]), distribution.ppf(Q[None])[1:3], rtol=1e-9)
    np.testing.assert_allclose(distribution[1].ppf(Q), distribution.ppf(Q[None])[1], rtol=1e-9, atol=1e-12)
    joined = Mixture.concatenate([distribution[:1], distribution[1:]])
    np.testing.assert_array_equal(joined.cdf(Y), distribution.cdf(Y))
    with pytest.raises(InvalidInputError, match="different weights"):
        Mixture.concatenate([distribution, Mixture(distribution.components)])
    assert repr(distribution[1]) == (
        "<Mixture: 0.5 × Normal(loc=0, scale=1), 0.2 × Normal(loc=0, scale=0.001), 0.3 × Normal(loc=9, scale=2)>"
    )


def test_arguments_match_rows_from_the_left(distribution):
    grid = np.linspace(0.1, 0.9, 5)
    for method in ("cdf", "ppf", "crps", "logpdf", "normal_score", "from_normal_score"):
        function = getattr(distribution, method)
        assert function(0.5).shape == (4,)
        assert function(np.full(4, 0.5)).shape == (4,)
        assert function(grid[None]).shape == function(np.tile(grid, (4, 1))).shape == (4, 5)
        with pytest.raises(InvalidInputError, match=r"shape \(5,\) does not fit 4 rows"):
            function(grid)
    assert np.stack(distribution.interval(0.8)).shape == (2, 4)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        distribution.ppf(1.5)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, 0.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 1.0]]])
def test_impossible_weights(weights):
    with pytest.raises(InvalidInputError, match="weights must be 2 finite numbers above zero"):
        Mixture([Normal([0.0], [1.0]), Normal([0.0], [1.0])], weights)


def test_impossible_components():
    with pytest.raises(InvalidInputError, match="one batch of distributions at least"):
        Mixture([])
    with pytest.raises(InvalidInputError, match=r"got \['Normal', 'tuple'\]"):
        Mixture([Normal([0.0], [1.0]), (0.0, 1.0)])
    with pytest.raises(InvalidInputError, match=r"same rows; got shapes \[\(1,\), \(2,\)\]"):
        Mixture([Normal([0.0], [1.0]), Normal([0.0, 1.0], [1.0, 1.0])])
