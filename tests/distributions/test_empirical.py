"""The interpolated sample against its definition and quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ibug.distributions._empirical import Empirical
from ibug.exceptions import InvalidInputError

PROBABILITIES = np.array([[1e-12, 1e-4, 0.03, 0.25, 0.5, 0.8, 0.97, 0.9999, 1 - 1e-9]])
VALUES = np.random.default_rng(0).gamma(2.0, [[0.1], [1.0], [30.0], [1.0]], (4, 25)) - [[0.0], [1.0], [-200.0], [0.0]]
VALUES[3, :20] = 1.0  # ties, and the rest an odd shape
HARD = {
    "identical": np.full((2, 20), 7.0),
    "identical zeros": np.zeros((2, 20)),
    "one outlier": np.append(np.linspace(0, 1, 19), 1e6)[None],
    "outlier among ties": np.append(np.zeros(19), 1.0)[None],
    "k = 3": np.array([[1.0, 2.0, 2.0], [0.0, 5.0, 5.1]]),
    "k = 2": np.array([[1.0, 2.0], [2.0, 2.0]]),
    "k = 1": np.array([[3.0], [0.0], [-1e12]]),
    "tiny": 1e-12 * VALUES,
    "huge": 1e12 * VALUES,
    "far": 1e9 + 1e-3 * VALUES,
    "subnormal": 1e-310 * VALUES,
}


@pytest.fixture
def distribution():
    return Empirical.fit(VALUES)


def pieces(row):
    """Return the ends of intervals in which one row's density is smooth, far into both tails."""
    steps = np.concatenate([np.arange(1.0, 10.0), np.arange(10.0, 45.0, 5.0)])
    lower, upper = row.values[0] - row.tails[0] * steps[::-1], row.values[-1] + row.tails[1] * steps
    return np.concatenate([lower, row.values, upper])


def integrate(function, ends):
    """Integrate piece by piece, each by 40 Gauss–Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half, center = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    return (function(center + half * nodes) * half * weights).sum()


def test_values_are_the_quantiles():
    distribution = Empirical.fit(VALUES[:3])
    probabilities = np.arange(1, 26)[None] / 26
    np.testing.assert_allclose(distribution.ppf(probabilities), np.sort(VALUES[:3], axis=1))
    np.testing.assert_allclose(distribution.cdf(distribution.values), np.tile(probabilities, (3, 1)))
    one = Empirical([0.0, 1.0, 5.0])
    np.testing.assert_allclose(one.cdf([0.5, 3.0]), [0.375, 0.625])
    np.testing.assert_allclose(one.pdf([0.5, 3.0]), [0.25, 0.0625])


def test_tails_are_exponential():
    one = Empirical([0.0, 1.0, 5.0], tails=[2.0, 3.0])
    y = np.array([-7.0, -0.1])
    np.testing.assert_allclose(one.logpdf(y), stats.expon.logpdf(-y, scale=2.0) - np.log(4))
    np.testing.assert_allclose(one.cdf(y), stats.expon.sf(-y, scale=2.0) / 4)
    y = np.array([5.1, 30.0])
    np.testing.assert_allclose(one.logpdf(y), stats.expon.logpdf(y - 5, scale=3.0) - np.log(4))
    np.testing.assert_allclose(1 - one.cdf(y), stats.expon.sf(y - 5, scale=3.0) / 4)


def test_default_tails():
    # Mean excess of the outermost three of nine over the fourth; where they are ties, the mean gap.
    distribution = Empirical([[0.0, 1.0, 2.0, 6.0, 7.0, 8.0, 10.0, 11.0, 12.0]])
    np.testing.assert_allclose(distribution.tails, [[5.0, 3.0]])
    distribution = Empirical([[0.0, 1.0, 2.0, 6.0, 7.0, 9.0, 9.0, 9.0, 9.0]])
    np.testing.assert_allclose(distribution.tails, [[5.0, 9 / 8]], rtol=1e-5)
    tails = Empirical.fit(np.random.default_rng(0).exponential(3.0, (200, 400))).tails
    np.testing.assert_allclose(tails[:, 1].mean(), 3.0, rtol=0.05)


def test_ties_are_moved_apart_evenly():
    distribution = Empirical([[0.0, 5.0, 5.0, 5.0, 10.0]])
    np.testing.assert_allclose(distribution.values, [[0.0, 5 - 1e-5, 5.0, 5 + 1e-5, 10.0]], rtol=1e-12)
    np.testing.assert_allclose(Empirical([[2.0, 2.0, 2.0]]).values, [[2 - 1e-8, 2.0, 2 + 1e-8]], rtol=1e-14)
    np.testing.assert_array_equal(Empirical([[3.0, 1.0, 2.0]]).values, [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("case", HARD)
def test_a_distribution_is_rebuilt_from_its_parameters(case):
    distribution = Empirical.fit(HARD[case])
    again = Empirical(distribution.values, distribution.tails)
    np.testing.assert_array_equal(again.values, distribution.values)
    np.testing.assert_array_equal(again.tails, distribution.tails)


@pytest.mark.parametrize("k", [1, 2, 3, 25])
def test_moments_equal_quadrature(k):
    distribution = Empirical.fit(VALUES[:, :k], scale=np.array([0.3, 1.0, 20.0, 1.0]))
    for row in distribution:
        ends = pieces(row)
        total = integrate(row.pdf, ends)
        mean = integrate(lambda x, row=row: x * row.pdf(x), ends)
        variance = integrate(lambda x, row=row, mean=mean: (x - mean) ** 2 * row.pdf(x), ends)
        np.testing.assert_allclose(total, 1.0, rtol=1e-9)
        np.testing.assert_allclose(row.mean(), mean, atol=1e-8 * row.std())
        np.testing.assert_allclose(row.var(), variance, rtol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 3, 25])
def test_crps_equals_quadrature(k):
    distribution = Empirical.fit(VALUES[:, :k], scale=np.array([0.3, 1.0, 20.0, 1.0]))
    for row in distribution:
        for y in row.mean() + row.std() * np.array([-6.0, -0.4, 0.0, 0.1, 1.0, 9.0]):
            ends = np.sort(np.append(pieces(row), y))
            below = integrate(lambda x, row=row: row.cdf(x) ** 2, ends[ends <= y])
            above = integrate(lambda x, row=row: (1 - row.cdf(x)) ** 2, ends[ends >= y])
            np.testing.assert_allclose(row.crps(y), below + above, rtol=1e-8)
        knots = row.crps(row.values)
        np.testing.assert_allclose(knots, row.crps(np.nextafter(row.values, -np.inf)), rtol=1e-9)


def test_quantiles_invert_probabilities(distribution):
    np.testing.assert_allclose(
        distribution.cdf(distribution.ppf(PROBABILITIES)), np.tile(PROBABILITIES, (4, 1)), rtol=1e-8
    )
    y = distribution.ppf(np.linspace(0.001, 0.999, 300)[None])
    np.testing.assert_allclose(distribution.ppf(distribution.cdf(y)), y, rtol=1e-9, atol=1e-12)
    assert (np.diff(y, axis=1) > 0).all()
    assert distribution.ppf(0.0)[0] == -np.inf
    assert distribution.ppf(1.0)[0] == np.inf
    assert np.isnan(distribution.ppf(np.nan)).all()


def test_normal_scores_are_exact_far_away(distribution):
    scores = np.array([[-1e5, -300.0, -36.5, -8.0, 0.0, 0.3, 9.0, 37.0, 40.0, 1e4]])
    y = distribution.from_normal_score(scores)
    np.testing.assert_allclose(distribution.normal_score(y), np.tile(scores, (4, 1)), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(distribution.normal_score([[-np.inf, np.inf]])[0], [-np.inf, np.inf])
    np.testing.assert_allclose(
        distribution.normal_score(VALUES), stats.norm.ppf(distribution.cdf(VALUES)), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("random_state", [0, np.random.default_rng(0)])
def test_samples_follow_the_distribution(distribution, random_state):
    samples = distribution.rvs(3000, random_state)
    assert samples.shape == (4, 3000)
    for row, drawn in zip(distribution, samples, strict=True):
        assert stats.kstest(drawn, row.cdf).pvalue > 0.001
    assert distribution.rvs(random_state=1).shape == (4,)
    assert distribution[0].rvs(5, random_state=1).shape == (5,)


@pytest.mark.parametrize("case", sorted(set(HARD) - {"far"}))
def test_moments_to_keep(case):
    values = HARD[case]
    loc, scale = np.linspace(-5.0, 8.0, len(values)), np.geomspace(1e-3, 1e3, len(values))
    both = Empirical.fit(values, loc=loc, scale=scale)
    np.testing.assert_allclose(both.mean(), loc, atol=1e-12 * scale.max())
    np.testing.assert_allclose(both.std(), scale, rtol=1e-9)
    plain = Empirical.fit(values)
    moved = Empirical.fit(values, loc=plain.mean())
    np.testing.assert_allclose(moved.values, plain.values, rtol=1e-9, atol=1e-9 * plain.std().max())
    stretched = Empirical.fit(values, scale=scale)
    np.testing.assert_allclose(stretched.mean(), plain.mean(), rtol=1e-12, atol=1e-12 * scale.max())


@pytest.mark.parametrize("case", HARD)
def test_hard_values(case):
    values = HARD[case]
    for distribution in (Empirical.fit(values), Empirical.fit(values, loc=values[:, 0])):
        far = np.array([[-1e300, -1e9, -1.0, 0.0, 1e-300, 2.0, 1e9, 1e308]])
        for y in (far, values, distribution.values, values + distribution.std()[:, None]):
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
        assert (distribution.crps(values) > 0).all()
        assert (np.diff(distribution.values, axis=1) > 0).all()
        assert (np.diff(distribution.ppf(PROBABILITIES), axis=1) >= 0).all()
        # Exact as far as doubles so far from zero can tell the quantiles apart.
        narrowest = np.column_stack([np.diff(distribution.values, axis=1), distribution.tails]).min(axis=1)
        lost = 2 * np.spacing(np.abs(values).max(axis=1) + distribution.std()) / narrowest
        assert (np.abs(distribution.cdf(distribution.ppf(PROBABILITIES)) - PROBABILITIES) < 1e-9 + lost[:, None]).all()


def test_scales_and_shifts_carry_over(distribution):
    for factor in (1e-12, 1e12):
        scaled = Empirical.fit(factor * VALUES)
        np.testing.assert_allclose(scaled.ppf(PROBABILITIES), factor * distribution.ppf(PROBABILITIES), rtol=1e-9)
        np.testing.assert_allclose(scaled.crps(factor * VALUES), factor * distribution.crps(VALUES), rtol=1e-9)
    np.testing.assert_allclose(Empirical.fit(1e9 + VALUES).std(), distribution.std(), rtol=1e-5)


def test_infinite_and_missing_arguments(distribution):
    y = np.array([[-np.inf, np.inf, np.nan]])
    np.testing.assert_array_equal(distribution.logpdf(y)[0], [-np.inf, -np.inf, np.nan])
    np.testing.assert_allclose(distribution.cdf(y)[0], [0.0, 1.0, np.nan], atol=1e-300)
    np.testing.assert_array_equal(distribution.crps(y)[0], [np.inf, np.inf, np.nan])


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
    assert one.tails.shape == (2,)
    assert one.mean().shape == one.std().shape == one.var().shape == ()
    assert repr(distribution) == "<Empirical: 4 rows of 25 values>"
    assert repr(one) == "<Empirical: 25 values>"
    low, high = distribution.interval(0.8)
    np.testing.assert_allclose(distribution.cdf(high) - distribution.cdf(low), 0.8)
    with pytest.raises(TypeError, match="no length"):
        len(one)
    with pytest.raises(TypeError, match="cannot be indexed"):
        one[0]


@pytest.mark.parametrize(
    ("values", "tails", "message"),
    [
        (3.0, None, "shape"),
        (np.zeros((2, 0)), None, "k of at least 1"),
        ([[0.0, np.nan]], None, "finite values"),
        ([[0.0, 1.0]], [[1.0, 0.0]], "above zero"),
        ([[0.0, 1.0]], [1.0, 2.0, 3.0], r"shape \(1, 2\)"),
    ],
)
def test_impossible_parameters(values, tails, message):
    with pytest.raises(InvalidInputError, match=message):
        Empirical(values, tails)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(3), {}, r"shape \(n, k\)"),
        (np.full((1, 2), np.inf), {}, "finite"),
        (VALUES, {"scale": -1.0}, "above zero"),
        (VALUES, {"loc": np.inf}, "must be finite"),
    ],
)
def test_impossible_fits(values, options, message):
    with pytest.raises(InvalidInputError, match=message):
        Empirical.fit(values, **options)


@settings(max_examples=100, deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 40)), elements=st.floats(-1e6, 1e6, width=32)))
def test_any_values(values):
    distribution = Empirical.fit(values)
    y = distribution.ppf(PROBABILITIES)
    assert np.isfinite(distribution.logpdf(y)).all()
    narrowest = np.column_stack([np.diff(distribution.values, axis=1), distribution.tails]).min(axis=1)
    lost = 2 * np.spacing(np.abs(values).max(axis=1) + distribution.std()) / narrowest
    assert (np.abs(distribution.cdf(y) - PROBABILITIES) < 1e-9 + lost[:, None]).all()
    assert (distribution.crps(y) > 0).all()
    kept = Empirical.fit(values, loc=np.ones(len(values)), scale=np.full(len(values), 2.0))
    np.testing.assert_allclose(kept.mean(), 1.0)
    np.testing.assert_allclose(kept.std(), 2.0)
