"""Kernel density estimates against scipy.stats.gaussian_kde and quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.integrate import quad

from ibug.distributions import _kde, _sample
from ibug.distributions._kde import KDE
from ibug.exceptions import InvalidInputError
from tests.oracles import crps_by_quadrature

pytestmark = pytest.mark.once

RULES = ["silverman", "scott", "likelihood"]
PROBABILITIES = np.array([[1e-12, 1e-4, 0.03, 0.25, 0.5, 0.8, 0.97, 0.9999, 1 - 1e-9]])
VALUES = np.random.default_rng(0).gamma(2.0, [[0.1], [1.0], [30.0], [1.0]], (4, 25)) - [[0.0], [1.0], [-200.0], [0.0]]
VALUES[3, :20] = 1.0  # ties, and the rest an odd shape
HARD = {
    "identical": np.full((2, 20), 7.0),
    "identical zeros": np.zeros((2, 20)),
    "one outlier": np.append(np.linspace(0, 1, 19), 1e6)[None],
    "outlier among ties": np.append(np.zeros(19), 1.0)[None],
    "k = 3": np.array([[1.0, 2.0, 2.0], [0.0, 5.0, 5.1]]),
    "k = 2": np.array([[1.0, 2.0]]),
    "k = 1": np.array([[3.0], [0.0], [-1e12]]),
    "tiny": 1e-12 * VALUES,
    "huge": 1e12 * VALUES,
    "far": 1e9 + 1e-3 * VALUES,
    "subnormal": 1e-310 * VALUES,
}


class Mixture:
    """One row's distribution as scipy.stats has it: the slow truth."""

    def __init__(self, values, bandwidth):
        self.kernels = stats.norm(values, bandwidth)

    def pdf(self, x):
        return self.kernels.pdf(x).mean()

    def cdf(self, x):
        return self.kernels.cdf(x).mean()

    def sf(self, x):
        return self.kernels.sf(x).mean()


@pytest.fixture
def distribution():
    return KDE.fit(VALUES)


@pytest.mark.parametrize("rule", ["silverman", "scott"])
def test_density_equals_scipy(rule):
    distribution = KDE.fit(VALUES, bandwidth=rule)
    for row, values in zip(distribution, VALUES, strict=True):
        scipy = stats.gaussian_kde(values, rule)
        grid = np.linspace(values.min() - 1, values.max() + 1, 40)
        np.testing.assert_allclose(row.pdf(grid), scipy.pdf(grid), rtol=1e-9)
        np.testing.assert_allclose(row.logpdf(grid), scipy.logpdf(grid), rtol=1e-9, atol=1e-12)
        expected = [scipy.integrate_box_1d(-np.inf, x) for x in grid]
        np.testing.assert_allclose(row.cdf(grid), expected, atol=1e-14)


def test_likelihood_bandwidth_is_the_best_of_the_grid():
    rows = np.random.default_rng(1).standard_t(3, (6, 30))
    rows[5] = np.round(rows[5])
    rule, chosen = KDE.fit(rows).bandwidth, KDE.fit(rows, bandwidth="likelihood").bandwidth
    grid = 2.0 ** (2 - 0.5 * np.arange(11))
    for values, silverman, h in zip(rows, rule, chosen, strict=True):
        scores = []
        for factor in grid:
            logs = stats.norm.logpdf(values[:, None], values, factor * silverman)
            np.fill_diagonal(logs, -np.inf)
            scores.append(np.logaddexp.reduce(logs, axis=1).sum())
        np.testing.assert_allclose(h, silverman * grid[np.argmax(scores)])
    assert len(np.unique(np.round(chosen / rule, 6))) > 1


def test_likelihood_bandwidth_of_ties_is_the_smallest():
    values = np.repeat([0.0, 1.0, 2.0], 10)[None]
    ratio = KDE.fit(values, bandwidth="likelihood").bandwidth / KDE.fit(values).bandwidth
    np.testing.assert_allclose(ratio, 1 / 8)


def test_moments_equal_quadrature(distribution):
    for row in distribution:
        truth = Mixture(row.values, row.bandwidth)
        low, high = row.values.min() - 10 * row.bandwidth, row.values.max() + 10 * row.bandwidth
        options = {"points": np.unique(row.values), "limit": 400}
        total = quad(row.pdf, low, high, **options)[0]
        mean = quad(lambda x, truth=truth: x * truth.pdf(x), low, high, **options)[0]
        variance = quad(lambda x, truth=truth, mean=mean: (x - mean) ** 2 * truth.pdf(x), low, high, **options)[0]
        np.testing.assert_allclose([total, row.mean(), row.var()], [1.0, mean, variance], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(row.std(), np.sqrt(variance))


@pytest.mark.parametrize("k", [1, 3, 25])  # pairs for few kernels, the series for many
def test_crps_equals_quadrature(k):
    distribution = KDE.fit(VALUES[:, :k], scale=np.array([0.3, 1.0, 20.0, 1.0]))
    y = distribution.mean() + distribution.std() * np.array([-4.0, 0.1, 1.0, 6.0])
    expected = [
        crps_by_quadrature(Mixture(row.values, row.bandwidth), at) for row, at in zip(distribution, y, strict=True)
    ]
    np.testing.assert_allclose(distribution.crps(y), expected, rtol=1e-7)


@pytest.mark.parametrize("factor", [1.0, 0.1, 10.0])
def test_both_ways_to_the_mean_difference_agree(factor):
    h = factor * KDE.fit(VALUES).bandwidth
    series = h * _kde._difference_by_series(VALUES / h[:, None], np.ptp(VALUES, axis=1) / h + 12)
    np.testing.assert_allclose(series, _kde._difference_by_pairs(VALUES, h), rtol=1e-11)


def test_crps_of_a_narrow_distribution_is_the_absolute_error():
    np.testing.assert_allclose(KDE(np.full((1, 50), 1.0), 1e-12).crps(4.0), 3.0)
    # Narrow kernels are the sample itself: E|X - y| - E|X - X'|/2.
    values = VALUES[1]
    expected = np.abs(values - 0.5).mean() - 0.5 * np.abs(values[:, None] - values).mean()
    np.testing.assert_allclose(KDE(values, 1e-13).crps(0.5), expected, rtol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_quantiles_invert_probabilities(rule):
    distribution = KDE.fit(VALUES, bandwidth=rule)
    np.testing.assert_allclose(
        distribution.cdf(distribution.ppf(PROBABILITIES)), np.tile(PROBABILITIES, (4, 1)), rtol=1e-9
    )
    assert distribution.ppf(0.0)[0] == -np.inf
    assert distribution.ppf(1.0)[0] == np.inf
    assert np.isnan(distribution.ppf(np.nan)).all()


def test_quantiles_between_distant_kernels():
    distribution = KDE(np.repeat([[0.0, 1e6]], 10, axis=1), 1e-3)
    q = np.array([[0.1, 0.49999, 0.50001, 0.9]])
    np.testing.assert_allclose(distribution.cdf(distribution.ppf(q)), q, rtol=1e-8)
    assert 0 < distribution.ppf(0.5)[0] < 1e6


def test_normal_scores_are_exact_far_away(distribution):
    scores = np.array([[-1e5, -300.0, -36.5, -8.0, 0.0, 0.3, 9.0, 37.0, 40.0, 1e4]])
    y = distribution.from_normal_score(scores)
    np.testing.assert_allclose(distribution.normal_score(y), np.tile(scores, (4, 1)), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(distribution.normal_score([[-np.inf, np.inf]])[0], [-np.inf, np.inf])
    np.testing.assert_allclose(
        distribution.normal_score(VALUES), stats.norm.ppf(distribution.cdf(VALUES)), rtol=1e-9, atol=1e-9
    )
    one = KDE([2.0], 3.0)
    np.testing.assert_allclose(one.normal_score([-1e6, 1.0, 1e6]), (np.array([-1e6, 1.0, 1e6]) - 2) / 3)


@pytest.mark.parametrize("random_state", [0, np.random.default_rng(0)])
def test_samples_follow_the_distribution(distribution, random_state):
    samples = distribution.rvs(3000, random_state)
    assert samples.shape == (4, 3000)
    for row, drawn in zip(distribution, samples, strict=True):
        assert stats.kstest(drawn, row.cdf).pvalue > 0.001
    assert np.abs(np.corrcoef(samples) - np.eye(4)).max() < 0.1
    assert distribution.rvs(random_state=1).shape == (4,)
    assert distribution[0].rvs(5, random_state=1).shape == (5,)
    assert distribution[0].rvs(random_state=1).shape == ()
    np.testing.assert_array_equal(distribution.rvs(2, 3), distribution.rvs(2, 3))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", sorted(set(HARD) - {"far"}))
def test_moments_to_keep(case, rule):
    values = HARD[case]
    loc, scale = np.linspace(-5.0, 8.0, len(values)), np.geomspace(1e-6, 1e3, len(values))
    both = KDE.fit(values, loc=loc, scale=scale, bandwidth=rule)
    np.testing.assert_allclose(both.mean(), loc, atol=1e-12 * scale.max())
    np.testing.assert_allclose(both.std(), scale, rtol=1e-9)
    plain = KDE.fit(values, bandwidth=rule)
    moved = KDE.fit(values, loc=loc, bandwidth=rule)
    np.testing.assert_allclose(moved.mean(), loc, atol=1e-12 * plain.std().max())
    stretched = KDE.fit(values, scale=scale, bandwidth=rule)
    np.testing.assert_allclose(stretched.mean(), plain.mean(), atol=1e-12 * scale.max())


def test_identical_values_with_a_scale_are_normal():
    distribution = KDE.fit(np.full((1, 9), 4.0), loc=np.array([1.0]), scale=np.array([2.0]))
    np.testing.assert_allclose(distribution.logpdf(VALUES[:1]), stats.norm(1.0, 2.0).logpdf(VALUES[:1]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", HARD)
def test_hard_values(case, rule):
    values = HARD[case]
    for distribution in (KDE.fit(values, bandwidth=rule), KDE.fit(values, loc=values[:, 0], bandwidth=rule)):
        far = np.array([[-1e300, -1e9, -1.0, 0.0, 1e-300, 2.0, 1e9, 1e308]])
        for y in (far, values, values + distribution.std()[:, None]):
            assert np.isfinite(distribution.logpdf(y)).all()
            assert np.isfinite(distribution.normal_score(y)).all()
            assert ((distribution.cdf(y) >= 0) & (distribution.cdf(y) <= 1)).all()
        for result in (
            distribution.mean(),
            distribution.std(),
            distribution.var(),
            distribution.crps(values),
            distribution.ppf(PROBABILITIES),
            distribution.rvs(9, 0),
        ):
            assert np.isfinite(result).all()
        assert (distribution.std() > 0).all()
        assert (distribution.crps(values) >= 0).all()
        assert (np.diff(distribution.ppf(PROBABILITIES), axis=1) >= 0).all()
        # Exact as far as doubles so far from zero can tell the quantiles apart.
        lost = 4 * np.spacing(np.abs(values).max(axis=1) + distribution.std()) / distribution.bandwidth
        assert (np.abs(distribution.cdf(distribution.ppf(PROBABILITIES)) - PROBABILITIES) < 1e-9 + lost[:, None]).all()


def test_scales_and_shifts_carry_over(distribution):
    for factor in (1e-12, 1e12):
        scaled = KDE.fit(factor * VALUES)
        np.testing.assert_allclose(scaled.ppf(PROBABILITIES), factor * distribution.ppf(PROBABILITIES), rtol=1e-9)
        np.testing.assert_allclose(scaled.crps(factor * VALUES), factor * distribution.crps(VALUES), rtol=1e-9)
    np.testing.assert_allclose(KDE.fit(1e9 + VALUES).std(), distribution.std(), rtol=1e-6)


def test_infinite_and_missing_arguments(distribution):
    y = np.array([[-np.inf, np.inf, np.nan]])
    np.testing.assert_array_equal(distribution.logpdf(y)[0], [-np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(distribution.cdf(y)[0], [0.0, 1.0, np.nan])
    np.testing.assert_array_equal(distribution.crps(y)[0], [np.inf, np.inf, np.nan])


@pytest.mark.parametrize("rule", RULES)
def test_chunks_do_not_change_results(distribution, monkeypatch, rule):
    def results():
        distribution = KDE.fit(VALUES, bandwidth=rule)
        methods = (
            distribution.logpdf,
            distribution.cdf,
            distribution.crps,
            distribution.normal_score,
            KDE(VALUES, 1e-3).crps,
        )
        return [distribution.bandwidth, distribution.ppf(PROBABILITIES), *(method(VALUES) for method in methods)]

    whole = results()
    monkeypatch.setattr(_sample, "_CHUNK", 60)
    for before, after in zip(whole, results(), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "ppf", "crps", "normal_score", "from_normal_score"])
def test_arguments_match_rows_from_the_left(distribution, method):
    call = getattr(distribution, method)
    grid = np.linspace(0.1, 0.9, 5)
    assert call(0.5).shape == (4,)
    np.testing.assert_array_equal(call(grid[:4]), [getattr(distribution[i], method)(grid[i]) for i in range(4)])
    assert call(grid[None, :]).shape == (4, 5)
    np.testing.assert_array_equal(call(grid[None, :]), call(np.tile(grid, (4, 1))))
    np.testing.assert_array_equal(call(grid[None, :])[2], getattr(distribution[2], method)(grid))
    assert getattr(distribution[2], method)(np.full((2, 1, 3), 0.5)).shape == (2, 1, 3)
    assert getattr(distribution[2], method)(0.5).shape == ()
    assert getattr(distribution[:1], method)(0.5).shape == (1,)
    assert getattr(distribution[:0], method)(0.5).shape == (0,)
    with pytest.raises(InvalidInputError, match=r"shape \(5,\) does not fit 4 rows"):
        call(grid)


def test_indexing(distribution):
    assert len(distribution) == 4
    assert distribution.shape == (4,)
    for rows in (slice(1, 3), [3, 0], np.array([True, False, True, False])):
        np.testing.assert_array_equal(distribution[rows].mean(), distribution.mean()[rows])
        np.testing.assert_array_equal(distribution[rows].std(), distribution.std()[rows])
    one = distribution[-1]
    assert one.shape == ()
    assert one.values.shape == (25,)
    assert one.mean().shape == one.std().shape == one.var().shape == ()
    assert repr(distribution) == "<KDE: 4 rows of 25 values>"
    assert repr(one) == "<KDE: 25 values>"
    low, high = distribution.interval(0.8)
    np.testing.assert_allclose(distribution.cdf(high) - distribution.cdf(low), 0.8)
    with pytest.raises(TypeError, match="no length"):
        len(one)
    with pytest.raises(TypeError, match="cannot be indexed"):
        one[0]


@pytest.mark.parametrize(
    ("values", "bandwidth", "message"),
    [
        (3.0, 1.0, "shape"),
        (np.zeros((2, 0)), 1.0, "k of at least 1"),
        ([[0.0, np.nan]], 1.0, "finite values"),
        ([[0.0, 1.0]], 0.0, "above zero"),
        ([[0.0, 1.0]], np.nan, "above zero"),
        ([[0.0, 1.0]], [1.0, 2.0], r"shape \(1,\)"),
    ],
)
def test_impossible_parameters(values, bandwidth, message):
    with pytest.raises(InvalidInputError, match=message):
        KDE(values, bandwidth)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(3), {}, r"shape \(n, k\)"),
        (np.full((1, 2), np.inf), {}, "finite"),
        (VALUES, {"bandwidth": "wide"}, "one of silverman, scott, likelihood; got 'wide'"),
        (VALUES, {"scale": 0.0}, "above zero"),
        (VALUES, {"loc": np.nan}, "must be finite"),
    ],
)
def test_impossible_fits(values, options, message):
    with pytest.raises(InvalidInputError, match=message):
        KDE.fit(values, **options)


@settings(max_examples=60, deadline=None)
@given(
    values=arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 12)), elements=st.floats(-1e6, 1e6, width=32)),
    rule=st.sampled_from(RULES),
)
def test_any_values(values, rule):
    distribution = KDE.fit(values, bandwidth=rule)
    y = distribution.ppf(PROBABILITIES)
    assert np.isfinite(distribution.logpdf(y)).all()
    lost = 4 * np.spacing(np.abs(values).max(axis=1) + distribution.std()) / distribution.bandwidth
    assert (np.abs(distribution.cdf(y) - PROBABILITIES) < 1e-9 + lost[:, None]).all()
    assert (distribution.crps(y) >= 0).all()
    kept = KDE.fit(values, loc=np.ones(len(values)), scale=np.full(len(values), 2.0), bandwidth=rule)
    np.testing.assert_allclose(kept.mean(), 1.0)
    np.testing.assert_allclose(kept.std(), 2.0)
