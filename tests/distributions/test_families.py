"""Every family keeps the contract of a batched distribution, however wild the values are."""

from itertools import pairwise

import numpy as np
import pytest
import scipy
from numpy.lib import NumpyVersion
from scipy import stats
from scipy.integrate import quad

from ibug.distributions import Distribution, families, register, resolve_family
from ibug.distributions._location_scale import LocationScale
from ibug.exceptions import InvalidInputError

Q = np.array([1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-6])
ALL = pytest.mark.parametrize("name", families())


def values_of(kind, k=40):
    """Rows of positive values, (4, k); the same for the same arguments."""
    rng = np.random.default_rng(k)
    base = 50 + rng.standard_t(5, size=(4, k)) + rng.gamma(2, size=(4, k))
    if kind == "identical":
        return np.repeat(base[:, :1], k, axis=1)
    if kind == "outlier":
        base[:, -1] = 1e5
    if kind == "far":
        return 1e9 + base
    return base * {"tiny": 1e-12, "huge": 1e12}.get(kind, 1.0)


def distributions_of(name, kind, k=40):
    values = values_of(kind, k)
    _, family = resolve_family(name)
    options = family.prepare(np.append(values.ravel(), values.max() * 1.1))
    center, spread = values.mean(axis=1), np.maximum(values.std(axis=1), 1e-6 * values.mean(axis=1))
    yield values, family.fit(values, **options)
    yield values, family.fit(values, loc=center * 1.01, scale=2 * spread, **options)


KINDS = ["plain", "identical", "outlier", "far", "tiny", "huge"]


@ALL
@pytest.mark.parametrize(
    ("kind", "k"), [*((kind, 40) for kind in KINDS), ("plain", 3), ("outlier", 3), ("identical", 3)]
)
def test_nothing_breaks(name, kind, k):
    for values, distribution in distributions_of(name, kind, k):
        assert distribution.shape == (4,)
        grid = np.concatenate([values, values.mean(axis=1, keepdims=True) * [[0.5, 0.99, 1.01, 3.0]]], axis=1)
        assert np.all(np.isfinite(distribution.logpdf(grid)))
        assert np.all(np.isfinite(distribution.mean()))
        assert np.all(distribution.crps(grid) >= 0)
        assert np.all((distribution.cdf(grid) >= 0) & (distribution.cdf(grid) <= 1))
        assert np.all(np.isfinite(distribution.ppf(Q[None, :])))
        assert np.all(np.diff(distribution.ppf(Q[None, :]), axis=1) >= 0)


@ALL
@pytest.mark.parametrize("kind", ["plain", "outlier", "tiny", "huge"])
def test_quantiles_invert_the_distribution_function(name, kind):
    for _, distribution in distributions_of(name, kind):
        np.testing.assert_allclose(
            distribution.cdf(distribution.ppf(Q[None, :])), np.tile(Q, (4, 1)), rtol=1e-6, atol=1e-9
        )


@ALL
def test_density_is_the_derivative_and_integrates_to_one(name):
    for _, distribution in distributions_of(name, "plain"):
        one = distribution[1]
        edges = np.unique(
            np.concatenate([one.ppf(np.linspace(1e-9, 1 - 1e-9, 80)), np.ravel(getattr(distribution, "values", [50]))])
        )
        total = sum(quad(lambda x, one=one: float(one.pdf(x)), a, b)[0] for a, b in pairwise(edges))
        inside = float(one.cdf(edges[-1]) - one.cdf(edges[0]))
        assert total == pytest.approx(inside, abs=1e-6)


@ALL
def test_samples_follow_the_distribution(name):
    for _, distribution in distributions_of(name, "plain"):
        samples = distribution[2].rvs(4000, random_state=0)
        assert stats.kstest(samples, lambda x, distribution=distribution: distribution[2].cdf(x)).pvalue > 0.001


@ALL
def test_crps_is_its_integral(name):
    for _, distribution in distributions_of(name, "plain"):
        one = distribution[0]
        for y in (one.ppf(0.02), one.ppf(0.6), one.ppf(0.5) + 15 * (one.ppf(0.7) - one.ppf(0.5))):
            x = np.unique(
                np.concatenate([one.ppf(np.linspace(1e-7, 1 - 1e-7, 20_001)), np.linspace(y - 1e-6, y + 60, 20_001)])
            )
            x = x[np.isfinite(x)]
            f = one.cdf(x)
            left = np.where(x <= y, f, f - 1)
            expected = np.sum((left[1:] ** 2 + left[:-1] ** 2) / 2 * np.diff(x))
            assert float(one.crps(y)) == pytest.approx(float(expected), rel=5e-3)


@ALL
def test_moments_are_those_of_the_distribution(name):
    for _, distribution in distributions_of(name, "plain"):
        if not np.all(np.isfinite(distribution.var())):
            continue  # a t distribution of at most 2 degrees of freedom
        p = (np.arange(100_000) + 0.5) / 100_000
        x = distribution[3].ppf(p)
        assert float(distribution[3].mean()) == pytest.approx(x.mean(), rel=1e-3)
        if name != "student_t":
            assert float(distribution[3].std()) == pytest.approx(x.std(), rel=2e-2)


@ALL
@pytest.mark.parametrize("kind", KINDS)
def test_given_moments_are_kept(name, kind):
    values = values_of(kind)
    _, family = resolve_family(name)
    options = family.prepare(np.append(values.ravel(), values.max() * 1.1))
    mean = values.mean(axis=1) * 1.02
    std = np.maximum(values.std(axis=1) * 0.7, 1e-4 * mean)
    distribution = family.fit(values, loc=mean, scale=std, **options)
    np.testing.assert_allclose(distribution.mean(), mean, rtol=1e-7)
    np.testing.assert_allclose(distribution.std(), std, rtol=1e-5)


@ALL
def test_rows_are_fitted_each_by_itself(name):
    values = values_of("plain")
    _, family = resolve_family(name)
    options = family.prepare(values.ravel())
    whole = family.fit(values, **options)
    np.testing.assert_allclose(family.fit(values[2:3], **options).ppf(0.9), whole.ppf(0.9)[2:3], rtol=1e-7)
    joined = family.concatenate([whole[:1], whole[1:]])
    np.testing.assert_array_equal(joined.ppf(0.3), whole.ppf(0.3))


@pytest.mark.parametrize(
    ("name", "scipy_distribution"),
    [("normal", stats.norm), ("laplace", stats.laplace), ("logistic", stats.logistic), ("gumbel", stats.gumbel_r),
     ("student_t", stats.t), ("skewnormal", stats.skewnorm)],
)  # fmt: skip
def test_location_scale_families_equal_scipy(name, scipy_distribution):
    _, family = resolve_family(name)
    shapes = {"student_t": [4.0], "skewnormal": [-2.0]}.get(name, [])
    distribution, reference = (
        family(np.full(3, 2.0), np.full(3, 0.7), *shapes),
        scipy_distribution(*shapes, loc=2.0, scale=0.7),
    )
    x = np.array([-1.0, 2.0, 4.5])
    for method in ("pdf", "logpdf", "cdf"):
        np.testing.assert_allclose(getattr(distribution, method)(x), getattr(reference, method)(x), rtol=1e-8)
    np.testing.assert_allclose(
        distribution.ppf([0.1, 0.5, 0.93]), reference.ppf([0.1, 0.5, 0.93]), rtol=1e-7, atol=1e-12
    )
    np.testing.assert_allclose(distribution.mean(), reference.mean(), atol=1e-12)
    np.testing.assert_allclose(distribution.var(), reference.var())


@pytest.mark.parametrize(
    ("name", "scipy_distribution"),
    [("normal", stats.norm), ("laplace", stats.laplace), ("logistic", stats.logistic), ("gumbel", stats.gumbel_r),
     ("student_t", stats.t), ("skewnormal", stats.skewnorm)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scipy's optimiser tries impossible parameters on its way
def test_likelihood_is_at_least_scipys(name, scipy_distribution):
    rng = np.random.default_rng(0)
    values = np.concatenate([values_of("plain", 60), rng.gamma(1.5, size=(4, 60)), rng.normal(size=(12, 60))])
    _, family = resolve_family(name)
    ours = family.fit(values).logpdf(values).mean(axis=1)
    theirs = [scipy_distribution.logpdf(row, *scipy_distribution.fit(row)).mean() for row in values]
    # A bound of the shape (half normal, nearly normal) may cost a little where scipy has none.
    assert np.all(ours >= np.array(theirs) - 1e-3)
    assert np.mean(ours) >= np.mean(theirs) - 1e-12


def test_most_likely_shape_for_given_moments():
    # brute force over a fine grid
    values = np.random.default_rng(0).standard_t(3, size=(5, 200))
    mean, std = values.mean(axis=1), values.std(axis=1)
    for name, grid in (("student_t", np.geomspace(2.1, 1000, 4000)), ("skewnormal", np.linspace(-20, 20, 8001))):
        _, family = resolve_family(name)
        assert issubclass(family, LocationScale)
        best = max(
            np.stack([family.from_moments(mean, std, np.full(5, shape)).logpdf(values).mean(axis=1) for shape in grid])[
                :, i
            ].max()
            for i in (2,)
        )
        assert family.fit(values, loc=mean, scale=std).logpdf(values).mean(axis=1)[2] >= best - 1e-6


def test_registry():
    class Mine(Distribution):
        logpdf = cdf = ppf = mean = var = None

    name, family = resolve_family(Mine)
    assert (name, family) == ("Mine", Mine)
    for bad in ("cauchy", None, 3, int):
        with pytest.raises(InvalidInputError):
            resolve_family(bad)
    with pytest.raises(InvalidInputError, match="not taken; got 'normal'"):
        register("normal", Mine)
    with pytest.raises(InvalidInputError, match="subclass of"):
        register("mine", int)


@ALL
@pytest.mark.parametrize("kind", ["plain", "tiny", "identical"])
def test_log_densities_are_finite_however_far_y_is(name, kind):
    far = np.array([[1e100, 1e200, 1e300, -1e100, -1e200, -1e300]])
    for _, distribution in distributions_of(name, kind):
        inside = far[:, :3] if hasattr(distribution, "shift") else far
        density, score = distribution.logpdf(inside), distribution.crps(inside)
        assert np.all(np.isfinite(density))
        assert np.all(np.isfinite(distribution.pdf(inside)))
        if name not in ("kde", "empirical"):  # the distance itself, far outside
            np.testing.assert_allclose(score, np.broadcast_to(np.abs(inside), score.shape), rtol=1e-6)
        assert np.all(distribution.logpdf([[np.inf]]) == -np.inf)


@ALL
@pytest.mark.parametrize("given", ["loc", "scale"])
def test_one_moment_is_kept_and_the_other_one_is_the_most_likely(name, given):
    values = values_of("plain")
    _, family = resolve_family(name)
    options = family.prepare(values.ravel())
    mean, std = values.mean(axis=1) + 1, values.std(axis=1) * 1.4
    distribution = family.fit(values, **{given: {"loc": mean, "scale": std}[given]}, **options)
    if given == "loc":
        np.testing.assert_allclose(distribution.mean(), mean, rtol=1e-9)
    else:
        np.testing.assert_allclose(distribution.std(), std, rtol=1e-7)
    if name in ("kde", "empirical"):
        return  # moved or stretched: there is no likelihood to be maximised
    found = distribution.logpdf(values).mean(axis=1)
    for factor in np.geomspace(0.2, 3, 40):
        for step in np.linspace(-1.5, 1.5, 31) if given == "scale" else [0.0]:
            other = family.fit(
                values,
                loc=mean if given == "loc" else mean - 1 + step,
                scale=std if given == "scale" else factor * std,
                **options,
            )
            assert np.all(found >= other.logpdf(values).mean(axis=1) - 1e-7)
        if given == "scale":
            break


@pytest.mark.parametrize("scipy_distribution", [stats.laplace, stats.logistic, stats.norm])
def test_a_given_location_of_a_symmetric_distribution_equals_scipys_fit(scipy_distribution):
    name = {"laplace": "laplace", "logistic": "logistic", "norm": "normal"}[scipy_distribution.name]
    values = values_of("plain")
    mean = values.mean(axis=1) - 0.7
    distribution = resolve_family(name)[1].fit(values, loc=mean)
    expected = [scipy_distribution.fit(row, floc=center)[1] for row, center in zip(values, mean, strict=True)]
    np.testing.assert_allclose(distribution.scale, expected, rtol=1e-4)


@ALL
def test_moments_for_other_rows_are_refused(name):
    _, family = resolve_family(name)
    values = values_of("plain")
    for loc, scale in ((np.full(3, 50.0), np.ones(3)), (np.full((4, 1), 50.0), np.ones(4))):
        with pytest.raises(InvalidInputError, match="one number for each of 4 rows"):
            family.fit(values, loc=loc, scale=scale)
    with pytest.raises(InvalidInputError, match="must be finite"):
        family.fit(values, loc=np.full(4, np.nan), scale=np.ones(4))
    with pytest.raises(InvalidInputError, match="above zero"):
        family.fit(values, loc=np.full(4, 50.0), scale=np.zeros(4))


def test_impossible_shapes():
    student_t, skewnormal, normal = (resolve_family(name)[1] for name in ("student_t", "skewnormal", "normal"))
    for df in (-1.0, 0.0, np.nan):
        with pytest.raises(InvalidInputError, match="degrees of freedom"):
            student_t(0.0, 1.0, df)
    with pytest.raises(InvalidInputError, match="shape of a skew normal"):
        skewnormal(0.0, 1.0, np.nan)
    with pytest.raises(TypeError, match="takes loc, scale, each once"):
        normal(0.0, 1.0, 2.0)
    assert student_t(0.0, 1.0, 0.9).crps(1.0) == np.inf


@pytest.mark.parametrize("alpha", [-1e8, -30.0, -1.0, 0.0, 0.2, 4.0, 1e4])
def test_crps_of_a_skew_normal_distribution_equals_quadrature(alpha):
    distribution = resolve_family("skewnormal")[1]([0.3] * 4, [2.0] * 4, [alpha] * 4)
    y = np.array([-7.0, 0.31, 1.5, 30.0])
    np.testing.assert_allclose(distribution.crps(y), Distribution.crps(distribution, y), rtol=1e-6)


def test_a_skewed_shape_calls_nothing_impossible():
    # All values on one side: half a normal distribution is the most likely one, and a value beyond its edge no wonder.
    values = np.array([[1.0, 1.01, 1.02, 1.5, 3.0]])
    distribution = resolve_family("skewnormal")[1].fit(values, loc=values.mean(axis=1), scale=values.std(axis=1))
    assert abs(distribution.alpha[0]) <= 10.0 + 1e-6
    assert distribution.logpdf(0.5)[0] > -100


class OneSided(resolve_family("gumbel")[1]):
    """A distribution that does not say how its upper tail is reckoned exactly."""

    _sf = classmethod(LocationScale._sf.__func__)
    _isf = classmethod(LocationScale._isf.__func__)


def test_scores_of_a_distribution_that_knows_no_upper_tail_are_finite():
    distribution = OneSided([0.0], [1.0])
    assert np.isfinite(distribution.from_normal_score([[8.3, 9.0, 30.0]])).all()
    assert distribution.from_normal_score(np.inf)[0] == np.inf


@pytest.mark.parametrize(
    ("name", "shape", "scipy_distribution"),
    [
        ("laplace", (), stats.laplace()),
        ("logistic", (), stats.logistic()),
        ("student_t", (5.0,), stats.t(5)),
        ("gumbel", (), stats.gumbel_r()),
        ("skewnormal", (2.0,), stats.skewnorm(2)),
    ],
)
def test_scores_are_exact_in_the_upper_tail(name, shape, scipy_distribution):
    """Where F(y) rounds to 1, the probability above y still tells values apart."""
    distribution = resolve_family(name)[1]([3.0, -1.0], [2.0, 0.5], *shape)
    # Older versions of SciPy are themselves wrong so far out.
    w = np.array([[0.0, 1.0, 7.0, 9.0, 15.0, 30.0]])[:, : None if NumpyVersion(scipy.__version__) >= "1.15.0" else 4]
    found = distribution.from_normal_score(w)
    np.testing.assert_allclose(
        found,
        distribution.loc[:, None] + distribution.scale[:, None] * scipy_distribution.isf(stats.norm.sf(w)),
        rtol=1e-9,
    )
    np.testing.assert_allclose(distribution.normal_score(found), np.tile(w, (2, 1)), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(distribution.from_normal_score([[-np.inf, np.inf]]), [[-np.inf, np.inf]] * 2)
    assert np.isnan(distribution.from_normal_score(np.nan)).all()
    assert distribution[0].from_normal_score(9.0) == found[0, 3]


@ALL
@pytest.mark.parametrize("kind", ["plain", "outlier", "tiny"])
def test_upper_tails_and_medians(name, kind):
    for _, distribution in distributions_of(name, kind):
        y = distribution.ppf(Q[None, :])
        np.testing.assert_allclose(distribution.sf(y), np.tile(1 - Q, (4, 1)), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(distribution.median(), distribution.ppf(0.5))
        assert distribution.sf(np.inf).max() < 1e-100
        assert distribution[0].sf(y[0, 3]).shape == ()


@pytest.mark.parametrize(
    ("name", "scipy_distribution"),
    [("normal", stats.norm), ("laplace", stats.laplace), ("logistic", stats.logistic), ("gumbel", stats.gumbel_r),
     ("student_t", stats.t), ("skewnormal", stats.skewnorm)],
)  # fmt: skip
def test_upper_tails_are_exact_far_away(name, scipy_distribution):
    _, family = resolve_family(name)
    shapes = {"student_t": [4.0], "skewnormal": [2.0]}.get(name, [])
    distribution, reference = (
        family(np.full(2, 2.0), np.full(2, 0.7), *shapes),
        scipy_distribution(*shapes, loc=2.0, scale=0.7),
    )
    x = np.array([4.0, 20.0])
    np.testing.assert_allclose(distribution.sf(x), reference.sf(x), rtol=1e-6)
