"""Distributions between known limits against scipy.stats.truncnorm and quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from ibug.distributions import KDE, Empirical, Lognormal, Normal, SkewNormal, Truncated, Weibull
from ibug.distributions._truncated import Tilted
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once

LOC = np.array([-3.0, 0.0, 4.0, 2.5])
SCALE = np.array([1.5, 1.0, 0.5, 7.0])
BOUNDS = [(0.0, np.inf), (-np.inf, 1.0), (-1.0, 5.0), (-np.inf, np.inf)]
Q = np.array([[1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9]])


def oracle(lower, upper):
    return stats.truncnorm((lower - LOC) / SCALE, (upper - LOC) / SCALE, LOC, SCALE)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_normal_distribution_equals_truncnorm(bounds):
    distribution, expected = Truncated(Normal(LOC, SCALE), *bounds), oracle(*bounds)
    y = expected.ppf([0.1, 0.5, 0.7, 0.99])
    for method in ("pdf", "logpdf", "cdf"):
        np.testing.assert_allclose(
            getattr(distribution, method)(y), getattr(expected, method)(y), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(distribution.mean(), expected.mean(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(distribution.var(), expected.var(), rtol=1e-7)
    np.testing.assert_allclose(distribution.std(), expected.std(), rtol=1e-7)
    np.testing.assert_allclose(distribution.interval(0.9), expected.interval(0.9), rtol=1e-9, atol=1e-9)
    # Next to a limit, the rounding of the value itself is all that is left of a probability.
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(Q)), np.tile(Q, (4, 1)), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_crps_equals_quadrature(bounds):
    distribution = Truncated(Normal(LOC, SCALE), *bounds)
    for q in (0.02, 0.5, 0.93):
        y = distribution.ppf(q)
        expected = [crps_by_quadrature(distribution[i], value) for i, value in enumerate(y)]
        np.testing.assert_allclose(distribution.crps(y), expected, rtol=1e-6)


def crps_by_quadrature(distribution, y):
    lower, upper = float(distribution.ppf(1e-15)), float(distribution.ppf(1 - 1e-15))
    below = quad(lambda x: float(distribution.cdf(x)) ** 2, lower, y, epsabs=1e-11, epsrel=1e-9, limit=200)[0]
    above = quad(lambda x: (1 - float(distribution.cdf(x))) ** 2, y, upper, epsabs=1e-11, epsrel=1e-9, limit=200)[0]
    return below + above


def test_crps_of_a_value_outside_the_limits():
    distribution = Truncated(Normal(LOC, SCALE), 0.0, 6.0)
    np.testing.assert_allclose(distribution.crps(-2.0), distribution.crps(0.0) + 2.0, rtol=1e-9)
    np.testing.assert_allclose(distribution.crps(9.0), distribution.crps(6.0) + 3.0, rtol=1e-9)


def test_nothing_is_outside_the_limits():
    distribution = Truncated(Normal(LOC, SCALE), 0.0, 5.0)
    for values in (
        distribution.rvs(2000, random_state=0),
        distribution.ppf([[0.0, 1e-300, 0.5, 1.0]]),
        *distribution.interval(0.99),
        distribution.mean(),
    ):
        assert np.all((values >= 0) & (values <= 5))
    assert np.all(distribution.logpdf([[-1e-9, -3.0, 5.1]]) == -np.inf)
    np.testing.assert_array_equal(
        distribution.cdf([[-np.inf, -1e-9, 5.0, 6.0, np.inf]]), np.tile([0.0, 0, 1, 1, 1], (4, 1))
    )
    np.testing.assert_allclose(distribution.ppf([[0.0, 1.0]]), np.tile([0.0, 5.0], (4, 1)), atol=1e-12)
    assert np.all(np.isfinite(distribution.logpdf([[0.0, 5.0]])))


def test_samples_follow_the_distribution():
    distribution = Truncated(Normal(LOC, SCALE), 0.0, np.inf)
    for i, row in enumerate(distribution.rvs(4000, random_state=0)):
        assert stats.kstest(row, distribution[i].cdf).pvalue > 0.001


@pytest.mark.parametrize(
    ("distribution", "bounds"),
    [
        (Lognormal([0.0, -1.0], [0.3, 1.0], [0.5, 1.5]), (0.5, 8.0)),
        (Lognormal([0.0, -1.0], [0.3, 1.0], [0.5, 0.8]), (0.2, np.inf)),
        (Weibull([0.0, -1.0], [2.0, 3.0], [0.8, 4.0]), (0.5, 8.0)),
        (Weibull([0.0, 0.0], [2.0, 3.0], [0.9, 4.0]), (-1.0, np.inf)),
    ],
    ids=["lognormal", "lognormal above", "weibull", "weibull above"],
)
def test_other_distributions(distribution, bounds):
    truncated = Truncated(distribution, *bounds)
    for i in range(2):
        one = truncated[i]
        ends = float(one.ppf(1e-15)), float(one.ppf(1 - 1e-15))
        points = [float(one.ppf(q)) for q in (1e-6, 0.5, 1 - 1e-6)]

        def moment(power, one=one, ends=ends, points=points):
            pieces = zip([ends[0], *points], [*points, ends[1]], strict=True)
            return sum(
                quad(lambda y: y**power * float(one.pdf(y)), *piece, epsabs=0, epsrel=1e-9)[0] for piece in pieces
            )

        mean = moment(1)
        np.testing.assert_allclose(moment(0), 1.0, rtol=1e-8)
        np.testing.assert_allclose(one.mean(), mean, rtol=1e-6)
        np.testing.assert_allclose(one.var(), moment(2) - mean**2, rtol=1e-6)
        np.testing.assert_allclose(one.crps(points[1]), crps_by_quadrature(one, points[1]), rtol=1e-6)
    np.testing.assert_allclose(truncated.cdf(truncated.ppf(Q)), np.tile(Q, (2, 1)), rtol=1e-6)


def test_a_distribution_with_kinks():
    # The quantiles of interpolated values are no smooth function of the score.
    distribution = Truncated(Empirical.fit(np.random.default_rng(0).normal(1, 1, (5, 40))), 0.0, np.inf)
    p = (np.arange(100_000)[None] + 0.5) / 100_000
    quantiles = distribution.ppf(p)
    np.testing.assert_allclose(distribution.mean(), quantiles.mean(axis=1), rtol=5e-3)
    np.testing.assert_allclose(distribution.std(), quantiles.std(axis=1), rtol=5e-3)
    expected = np.mean(2 * ((quantiles > 0.7) - p) * (quantiles - 0.7), axis=1)
    np.testing.assert_allclose(distribution.crps(0.7), expected, rtol=1e-2)


@pytest.mark.parametrize("family", [KDE, SkewNormal])
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 3.0), (0.5, 4.0)])
def test_a_distribution_with_costly_quantiles(family, bounds):
    # Integrals over values agree with those over quantiles, which every other distribution has.
    values = np.random.default_rng(0).gamma(2, size=(6, 30)) + np.array([[0.0], [1], [-1], [0], [0.5], [-0.3]])
    distribution = Truncated(family.fit(values), *bounds)
    y = np.clip(values[:, :3], *bounds)
    fast = distribution.mean(), distribution.std(), distribution.crps(y), distribution.crps(y[:, 0])
    p = (np.arange(50_000)[None] + 0.5) / 50_000
    for i in (0, 3):
        quantiles = distribution[i : i + 1].ppf(p)[0]
        np.testing.assert_allclose([fast[0][i], fast[1][i]], [quantiles.mean(), quantiles.std()], rtol=1e-4)
        expected = [np.mean(2 * ((quantiles > value) - p[0]) * (quantiles - value)) for value in y[i]]
        np.testing.assert_allclose(fast[2][i], expected, rtol=1e-4)
        np.testing.assert_allclose(distribution[i].crps(y[i]), fast[2][i], rtol=1e-3)  # of one row: over quantiles
    np.testing.assert_array_equal(fast[3], fast[2][:, 0])


def test_limits_beyond_the_support_change_nothing():
    distribution = Weibull([0.0, 1.0], [2.0, 3.0], [0.8, 4.0])
    truncated = Truncated(distribution, -5.0, np.inf)
    np.testing.assert_allclose(truncated.mean(), distribution.mean(), rtol=1e-6)
    np.testing.assert_allclose(truncated.std(), distribution.std(), rtol=1e-6)
    np.testing.assert_allclose(truncated.crps(1.5), distribution.crps(1.5), rtol=1e-6)
    np.testing.assert_array_equal(truncated.logpdf(1.5), distribution.logpdf(1.5))


@pytest.mark.parametrize("far", [6.0, 9.0, 30.0, 100.0, 1e3, 9e3, 2e4, 1e6])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_only_a_far_tail_is_left(far, side):
    # Far out the rest of a normal one is nearly exponential: mean 1/far − 2/far³, standard deviation 1/far − 3/far³.
    bounds = (far, np.inf) if side > 0 else (-np.inf, -far)
    distribution = Truncated(Normal([0.0], [1.0]), *bounds)
    if far >= 100:
        np.testing.assert_allclose(side * distribution.mean() - far, 1 / far - 2 / far**3, rtol=1e-4)
        np.testing.assert_allclose(distribution.std(), 1 / far - 3 / far**3, rtol=1e-4)
    if far <= 30:
        expected = stats.truncnorm(*bounds)
        np.testing.assert_allclose(side * distribution.mean(), side * expected.mean(), rtol=1e-8)
        np.testing.assert_allclose(distribution.ppf(Q)[0], expected.ppf(Q)[0], rtol=1e-8)
    y = side * (far + np.array([[0.0, 0.5, 2.0]]) / far)
    np.testing.assert_allclose(
        distribution.logpdf(y), np.log(far) - far * np.abs(np.abs(y) - far), atol=4 / far**2 + 1e-7
    )
    assert np.all(np.isfinite(distribution.logpdf(side * np.array([[far, 2 * far, 1e3 * far]]))))
    q = np.array([[0.01, 0.5, 0.99]])
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(q)), q, atol=1e-7 + 1e-16 * far**2)
    np.testing.assert_allclose(distribution.crps(side * far), 0.5 / far, rtol=5 / far**2 + 1e-3)


def test_rows_with_and_without_mass_inside():
    distribution = Truncated(Normal([0.0, -1e9, 5.0, 1e9], [1.0, 1.0, 1.0, 1.0]), 0.0, 10.0)
    alone = Truncated(Normal([0.0, 5.0], [1.0, 1.0]), 0.0, 10.0)
    for method in ("logpdf", "cdf", "crps", "normal_score"):
        for y in (2.0, np.array([[1.0, 2.0, 3.0]]), np.full((4, 1), 2.0), np.full(4, 2.0)):
            result = getattr(distribution, method)(y)
            inside = y[[0, 2]] if np.ndim(y) and len(y) == 4 else y
            np.testing.assert_array_equal(result[[0, 2]], getattr(alone, method)(inside))
            assert not np.any(np.isnan(result))
    np.testing.assert_allclose(distribution.mean()[[1, 3]], [0.0, 10.0], atol=1e-8)
    np.testing.assert_allclose(distribution.ppf(0.5)[[1, 3]], [0.0, 10.0], atol=1e-8)
    np.testing.assert_array_equal(distribution.cdf(-1.0), 0.0)
    np.testing.assert_array_equal(distribution.cdf(11.0), 1.0)
    np.testing.assert_array_equal(distribution.rvs(random_state=0)[[1, 3]] <= 10, True)
    assert np.all(np.isfinite(distribution.logpdf([[0.0, 5.0, 10.0]])))
    assert np.all(distribution.var() >= 0)
    one = distribution[1]
    assert one.shape == ()
    np.testing.assert_allclose(one.ppf([0.1, 0.9]), distribution.ppf([[0.1, 0.9]])[1])
    np.testing.assert_allclose(one.mean(), distribution.mean()[1])


def test_a_distribution_that_is_wide_against_the_limits_is_uniform():
    distribution = Truncated(Normal([0.0, 0.0], [1e6, 1e12]), 1.0, 3.0)
    np.testing.assert_allclose(distribution.mean(), 2.0, rtol=1e-6)
    np.testing.assert_allclose(distribution.var(), 4 / 12, rtol=1e-6)
    np.testing.assert_allclose(distribution.ppf(0.25), 1.5, rtol=1e-6)
    np.testing.assert_allclose(distribution.logpdf(2.0), np.log(0.5), atol=1e-6)


@given(
    loc=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3), lower=st.floats(-10, 9), width=st.floats(1e-3, 1e3),
    unit=st.sampled_from([1e-12, 1.0, 1e12]),
)  # fmt: skip
@settings(deadline=None)
def test_any_normal_distribution(loc, scale, lower, width, unit):
    upper = lower + width
    distribution = Truncated(Normal([unit * loc], [unit * scale]), unit * lower, unit * upper)
    q = np.array([[0.0, 0.001, 0.5, 0.999, 1.0]])
    y = distribution.ppf(q)
    assert np.all((y >= unit * lower) & (y <= unit * upper))
    assert np.all(np.diff(y) >= 0)
    assert np.all(np.isfinite(distribution.logpdf(y)))
    mean, std = distribution.mean(), distribution.std()
    slack = 1e-9 * (unit + abs(mean))
    assert unit * lower - slack <= mean <= unit * upper + slack
    assert 0 <= std <= unit * width
    crps = distribution.crps(y)
    assert np.all(np.isfinite(crps))
    assert np.all(crps >= -1e-12 * unit)


def test_scores_go_forth_and_back():
    distribution = Truncated(Normal(LOC, SCALE), -np.inf, 3.0)
    w = np.array([[-20.0, -6.0, 0.0, 2.0, 5.0]])
    np.testing.assert_allclose(
        distribution.normal_score(distribution.from_normal_score(w)), np.tile(w, (4, 1)), atol=1e-8
    )
    np.testing.assert_allclose(
        distribution.from_normal_score([[1.0]]), distribution.ppf([[stats.norm.cdf(1.0)]]), rtol=1e-10
    )
    assert np.all(distribution.normal_score(4.0) == np.inf)


def test_rows_and_arguments():
    distribution = Truncated(Normal(LOC, SCALE), 0.0, np.inf)
    grid = np.linspace(0.1, 1, 5)
    assert len(distribution) == 4
    assert distribution.cdf(0.3).shape == (4,)
    for method in ("logpdf", "cdf", "ppf", "crps", "normal_score"):
        np.testing.assert_allclose(
            getattr(distribution, method)(grid[None, :])[2], getattr(distribution[2], method)(grid), rtol=1e-12
        )
        with pytest.raises(InvalidInputError, match="does not fit 4 rows"):
            getattr(distribution, method)(grid)
    np.testing.assert_array_equal(distribution[1:3].mean(), distribution.mean()[1:3])
    np.testing.assert_array_equal(distribution[[3, 0]].std(), distribution.std()[[3, 0]])
    assert repr(distribution[1]) == "<Truncated to [0, inf]: Normal(loc=0, scale=1)>"
    assert Truncated(distribution, 1.0, 2.0).ppf(0.5).shape == (4,)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        distribution.ppf(1.2)
    with pytest.raises(TypeError, match="cannot be indexed"):
        distribution[0][0]


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, np.nan)])
def test_impossible_limits(bounds):
    with pytest.raises(InvalidInputError, match="must be below the upper one"):
        Truncated(Normal(0.0, 1.0), *bounds)


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.5, 20.0, -3.0])
def test_the_substitute_is_a_distribution(rate):
    distribution = Tilted(1.0, 3.0, rate)
    expected = stats.truncexpon(2 * abs(rate), 1.0, 1 / abs(rate)) if rate > 0 else None
    y = np.array([1.0, 1.2, 2.5, 3.0])
    for power, value in ((0, 1.0), (1, distribution.mean()), (2, distribution.var() + distribution.mean() ** 2)):
        np.testing.assert_allclose(
            quad(lambda x, p=power: x**p * float(distribution.pdf(x)), 1, 3)[0], value, rtol=1e-8
        )
    if expected is not None:
        np.testing.assert_allclose(distribution.logpdf(y), expected.logpdf(y), rtol=1e-9)
        np.testing.assert_allclose(distribution.cdf(y), expected.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(Q)), Q, rtol=1e-6)
    np.testing.assert_array_equal(distribution.logpdf([0.9, 3.1]), -np.inf)
