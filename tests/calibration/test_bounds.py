"""Targets at the bounds of a support: every family and the stack, with and without conformal calibration."""

import warnings
from functools import partial
from itertools import product
from zlib import crc32

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from ibug._warnings import warn_infinite
from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.calibration._score_map import ScoreMap
from ibug.distributions import (
    Empirical,
    Gumbel,
    Laplace,
    Logistic,
    Lognormal,
    MixtureParams,
    Normal,
    SkewNormal,
    Stack,
    Truncated,
    families,
    resolve_family,
)
from ibug.exceptions import NarrowWarning, TooFewRowsWarning
from ibug.online import AdaptiveIntervals

pytestmark = pytest.mark.once

FAMILIES = [name for name in families() if not name.startswith("_")]
EVERYTHING = [*FAMILIES, "stack"]
CALIBRATORS = {"none": None, "scale": ScaleConformal, "distribution": DistributionConformal}
SUPPORTS = ("none", "lower", "upper", "both")
SHARES = (0.0, 0.02, 0.3)
KINDS = ("continuous", "counts", "grades", "shares", "censored")


def targets(kind, support, share, n, seed):
    """Return predictions, spreads, neighbours' values, targets, and bounds of which each has the share of targets."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, 1.5, n)
    scale = rng.uniform(0.5, 1.5, n)
    noise = (
        rng.gamma(2.0, size=(n, 32)) / np.sqrt(2.0) - np.sqrt(2.0) if kind == "censored" else rng.normal(size=(n, 32))
    )
    y = mean[:, None] + 1.3 * scale[:, None] * noise  # the distributions will be too narrow
    if kind == "shares":
        y = 1 / (1 + np.exp(-y))
    if kind == "counts":
        y = np.floor(2 * np.exp(0.5 * y))
    if kind == "grades":
        y = np.round(y)
    ends = [-np.inf, np.inf]
    step = {"counts": 1.0, "grades": 1.0, "shares": 1e-3}.get(kind, 0.1)
    if support in ("lower", "both"):
        ends[0] = np.quantile(y[:, 0], share, method="higher") if share else y.min() - step
    if support in ("upper", "both"):
        ends[1] = np.quantile(y[:, 0], 1 - share, method="lower") if share else y.max() + step
    if not ends[0] < ends[1]:
        ends[1] = ends[0] + step
    y = np.clip(y, *ends)
    return y[:, 1:].mean(axis=1), np.maximum(0.8 * y[:, 1:].std(axis=1), 0.05), y[:, 1:], y[:, 0], tuple(ends)


def predicted(name, loc, scale, values, bounds):
    """Return what a model with these bounds predicts."""
    if name == "stack":
        errors = np.linspace(-1.5, 1.5, 7)
        return Stack(loc, scale, values, np.ones(values.shape), MixtureParams([0.3, 0.3, 0.4], errors, support=bounds))
    family = resolve_family(name)[1]
    options = family.prepare(values.ravel())
    base = family.fit(values, loc=loc, scale=scale, **options)
    return base if bounds == (-np.inf, np.inf) else Truncated(base, *bounds)


def seed_of(*words):
    return crc32("/".join(map(str, words)).encode())


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_every_combination_is_a_distribution(name, kind, support):
    for share in SHARES if support != "none" else SHARES[:1]:
        loc, scale, values, y, bounds = targets(kind, support, share, 36, seed_of(name, support, share))
        before = predicted(name, loc, scale, values, bounds)
        for calibration, make in CALIBRATORS.items():
            d = before[32:] if make is None else make().fit(before[:32], y[:32]).transform(before[32:])
            with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise"):
                warnings.simplefilter("error")
                check(d, y[32:], bounds, what=f"{name} {kind} {support} {share} {calibration}")


def check(d, y, bounds, what):
    p = np.array([[0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99]])
    quantiles = d.ppf(p)
    lower, upper = d.interval(0.9)
    for name, found in (
        ("ppf", quantiles), ("mean", d.mean()), ("std", d.std()), ("logpdf", d.logpdf(y)), ("crps", d.crps(y)),
        ("lower", lower), ("upper", upper), ("score", d.censored().middle_score(y)), ("sample", d.rvs(5, 0)),
    ):  # fmt: skip
        # A map that stretches the scores makes the tails of a t distribution heavier: moments may be infinite.
        heavy = name in ("mean", "std") and "student_t" in what and not np.isfinite(bounds).all()
        assert np.isfinite(found).all() or heavy, (what, name, found)
        if name in ("ppf", "mean", "lower", "upper", "sample"):
            assert np.all((found >= bounds[0] - 1e-9) & (found <= bounds[1] + 1e-9)), (what, name, found, bounds)
    assert np.all(np.diff(quantiles, axis=1) >= 0), what
    assert np.all(np.abs(d.logpdf(y)) < 1e4), (what, d.logpdf(y))
    grid = np.sort(np.concatenate([quantiles, y[:, None], quantiles - 1e-3, quantiles + 1e-3], axis=1), axis=1)
    cdf = d.cdf(grid)
    assert np.all(np.diff(cdf, axis=1) >= -1e-12), what
    assert np.all((cdf >= 0) & (cdf <= 1)), what
    # F(Q(p)) ≥ p, and F is at most p just below.
    width = 1e-6 * (1 + np.abs(quantiles))
    assert np.all(d.cdf(quantiles + width) >= p - 1e-7), what
    assert np.all(d.cdf(quantiles - width) <= p + 1e-7), what
    # An interval reaches a bound that has a probability.
    if np.isfinite(bounds[0]):
        assert np.all(lower[d.cdf(bounds[0]) > 0.2] == bounds[0]), what
    if np.isfinite(bounds[1]):
        assert np.all(upper[d.cdf(np.nextafter(bounds[1], -np.inf)) < 0.8] == bounds[1]), what
    d = d[:1]
    start, stop = (np.clip(d.ppf(q), *bounds) for q in (1e-4, 1 - 1e-4))
    np.testing.assert_allclose(integral(d, start, stop), 1.0, atol=0.03, err_msg=what)


def integral(d, start, stop):
    """Return the integral of the density from start to stop, by the midpoints of many panels, narrow at both ends."""
    fine = np.geomspace(1e-14, 0.01, 300)
    t = np.unique(np.concatenate([np.linspace(0, 1, 401), fine, 1 - fine]))
    edges = start[:, None] + (stop - start)[:, None] * t
    quantiles = np.clip(d.ppf(np.linspace(1e-4, 1 - 1e-4, 300)[None]), start[:, None], stop[:, None])
    edges = np.concatenate([edges, quantiles], axis=1)  # where much of the mass is
    inner = d
    while hasattr(inner, "base"):
        inner = inner.base
    if isinstance(inner, Empirical):  # whose density has steps at the values, and spikes between tied ones
        values = inner.values[:, :-1, None] + np.diff(inner.values, axis=1)[:, :, None] * np.linspace(0, 1, 9)
        values = values.reshape(len(values), -1)
        edges = np.concatenate([edges, np.clip(values, start[:, None], stop[:, None])], axis=1)
    edges = np.sort(edges, axis=1)
    return np.sum(d.pdf((edges[:, 1:] + edges[:, :-1]) / 2) * np.diff(edges, axis=1), axis=1)


N_SPLITS, N_HELD_OUT, N_NEW = 200, 39, 10


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["scale", "distribution"])
@pytest.mark.parametrize("name", EVERYTHING)
def test_coverage_over_200_splits(name, calibration):
    word = seed_of(name, calibration)
    kind, support, share = KINDS[word % 5], SUPPORTS[1 + word % 3], SHARES[1 + word % 2]
    loc, scale, values, y, bounds = targets(kind, support, share, 400, word)
    d, fit = predicted(name, loc, scale, values, bounds), CALIBRATORS[calibration]()
    rng, inside = np.random.default_rng(word), []
    for _ in range(N_SPLITS):
        rows = rng.choice(len(y), N_HELD_OUT + N_NEW, replace=False)
        old, new = rows[:N_HELD_OUT], rows[N_HELD_OUT:]
        lower, upper = fit.fit(d[old], y[old]).transform(d[new]).interval(0.9)
        inside.append(np.mean((lower <= y[new]) & (y[new] <= upper)))
    # The guarantee is 90 % at least; with ties, as at a bound, more.
    assert np.mean(inside) > 0.9 - 3.3 * np.std(inside) / np.sqrt(N_SPLITS), (kind, support, share)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_coverage_of_every_combination_over_200_splits(name, kind):
    """The same by scores alone, which are all that calibration looks at: the map of a split has ends for all rows."""
    n, makers = 300, {"scale": ScoreMap.of_absolute_scores, "distribution": ScoreMap.of_scores}
    for support, share in product(SUPPORTS, SHARES):
        if support == "none" and share:
            continue
        loc, scale, values, y, bounds = targets(kind, support, share, n, seed_of(name, kind, support, share))
        d = predicted(name, loc, scale, values, bounds).censored()
        scores, rng = d.middle_score(y), np.random.default_rng(0)
        rows = np.stack([rng.choice(n, N_HELD_OUT + N_NEW, replace=False) for _ in range(N_SPLITS)])
        old, new = rows[:, :N_HELD_OUT], rows[:, N_HELD_OUT:].ravel()
        for calibration, make in makers.items():
            ends = np.repeat([make(scores[some]).interval(0.9) for some in old], N_NEW, axis=0)
            lower, upper = (d[new].from_normal_score(end) for end in ends.T)
            inside = ((lower <= y[new]) & (y[new] <= upper)).reshape(N_SPLITS, N_NEW).mean(axis=1)
            least = 0.9 - 4 * max(inside.std(), 0.05) / np.sqrt(N_SPLITS)
            assert inside.mean() > least, (support, share, calibration)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("calibration", ["scale", "distribution"])
@pytest.mark.parametrize("name", ["normal", "laplace", "gumbel"])
def test_calibration_is_no_worse_with_targets_at_a_bound(name, calibration, share):
    loc, scale, values, y, bounds = targets("continuous", "both", share, 900, seed_of(name, share))
    before = predicted(name, loc, scale, values, bounds)
    old, new = slice(0, 500), slice(500, 900)
    after = CALIBRATORS[calibration]().fit(before[old], y[old]).transform(before[new])
    difference = after.crps(y[new]) - before[new].crps(y[new])
    assert difference.mean() < 3 * difference.std() / np.sqrt(len(difference)), difference.mean()
    # The median stays where predictions are, and a bound is about as probable as it is frequent.
    assert np.mean(np.abs(after.median() - y[new])) < 1.05 * np.mean(np.abs(before[new].median() - y[new]))
    frequency = np.mean(y[new] == bounds[0])
    assert 0.4 * frequency - 0.01 < after.cdf(bounds[0]).mean() < 1.5 * frequency + 0.04


LOC, SCALE = np.array([-3.0, 0.0, 4.0, 2.5]), np.array([1.5, 1.0, 0.5, 7.0])


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 1.0), (-1.0, 5.0)])
def test_a_censored_distribution_is_that_of_clipped_samples(bounds):
    d = Truncated(Normal(LOC, SCALE), *bounds).censored()
    samples = np.clip(Normal(LOC, SCALE).ppf((np.arange(40_000)[None] + 0.5) / 40_000), *bounds)
    np.testing.assert_allclose(d.mean(), samples.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(d.std(), samples.std(axis=1), rtol=1e-3, atol=1e-5)
    levels = np.array([[-2.0, -1.0, -0.3, 0.0, 0.7, 1.0, 4.0, 5.0, 6.0]])
    np.testing.assert_allclose(d.cdf(levels), (samples[:, :, None] <= levels).mean(axis=1), atol=5e-5)
    np.testing.assert_allclose(d.ppf([[0.1, 0.5, 0.9]]), np.quantile(samples, [0.1, 0.5, 0.9], axis=1).T, atol=2e-3)
    for y in (*np.clip([-1.0, 0.0, 0.7, 1.0, 5.0], *bounds), -2.0, 7.0):
        spread = 2 * np.mean(samples * (2 * (np.arange(40_000) + 0.5) / 40_000 - 1), axis=1)  # E|X − X'|
        np.testing.assert_allclose(d.crps(y), np.abs(samples - y).mean(axis=1) - spread / 2, atol=2e-4)
    for bound, tail in ((bounds[0], 1.0), (bounds[1], -1.0)):
        if np.isfinite(bound):  # half of the probability of the bound is beyond its score
            mass = np.mean(samples == bound, axis=1)
            np.testing.assert_allclose(ndtr(tail * d.middle_score(bound)), mass / 2, atol=5e-5)
            np.testing.assert_array_equal(d.from_normal_score(d.middle_score(bound)), bound)
    for method in ("cdf", "logpdf", "crps", "normal_score", "middle_score"):
        of_rows = getattr(d, method)(levels)
        np.testing.assert_allclose(getattr(d[2], method)(levels[0]), of_rows[2], rtol=1e-9)
        np.testing.assert_allclose(getattr(type(d).concatenate([d[:1], d[1:]]), method)(levels), of_rows)


def test_impossible_scores_do_not_stretch_the_map():
    # A distribution that calls some values impossible, whose score is infinite: only the interval must hold them.
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=380), np.full(20, np.inf)])
    for weights in (None, np.ones(400), rng.uniform(0.5, 2, 400)):
        for make in (ScoreMap.of_absolute_scores, ScoreMap.of_scores):
            g = make(scores, weights)
            assert np.max(np.abs(g.forward(np.array([-3.0, 0.0, 3.0])))) < 8
            assert np.isinf(g.interval(0.99)[1])
            assert g.has_rows_for(0.9)
            assert np.isfinite(g.interval(0.8)[1])
    for make in (ScoreMap.of_absolute_scores, ScoreMap.of_scores):
        for value in (np.inf, -np.inf, 0.0):
            assert np.isfinite(make(np.full(30, value)).inverse(np.array([-1.0, 0.0, 1.0]))).all()


def test_adaptive_intervals_hold_targets_at_a_bound():
    class Forecaster:
        """Predicts counts by normal distributions."""

        def __init__(self, conformal=None):
            self.conformal = conformal

        def predict_dist(self, X):
            d = Truncated(Normal(X[:, 0], 0.7 * np.sqrt(X[:, 0])), 0.0, np.inf)
            return d if self.conformal is None else self.conformal.transform(d)

    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 1.5, size=(2000, 1)) + 0.05
    y = rng.poisson(X[:, 0]).astype(float)
    assert np.mean(y == 0) > 0.3
    calibrated = ScaleConformal().fit(Forecaster().predict_dist(X[:500]), y[:500])
    for conformal in (None, calibrated):
        stream = AdaptiveIntervals(Forecaster(conformal))
        for start in range(500, 2000, 10):
            stream.observe(X[start : start + 10], y[start : start + 10])
        assert stream.n_inside_ / stream.n_observed_ == pytest.approx(0.9, abs=0.03)
        assert np.all(stream.predict_interval(X)[:, 0] >= 0)


def test_infinite_ends_have_their_own_reason():
    rng = np.random.default_rng(0)
    d, y = Lognormal(np.zeros(1000), np.zeros(1000), np.ones(1000)), rng.normal(size=1000)
    impossible = ScaleConformal().fit(d, y)
    few = ScaleConformal().fit(d[:5], np.abs(y[:5]))
    heavy = ScaleConformal().fit(d, np.abs(y), sample_weight=np.ones(1000))
    for calibrator, category, message in (
        (impossible, NarrowWarning, f"enough validation rows, but {np.sum(y <= 0)} of them"),
        (few, TooFewRowsWarning, "few validation rows .* needs 9"),
        (heavy, TooFewRowsWarning, "likelihood ratios so large"),
    ):
        new = calibrator.transform(d[:3], sample_weight=np.full(3, 1e6) if calibrator is heavy else None)
        ends = np.stack(new.interval(0.9), axis=1)
        assert np.isinf(ends).any()
        with pytest.warns(category, match=message):
            warn_infinite(ends, 0.9, "predict_interval", conformal=calibrator)


@pytest.mark.parametrize("name", EVERYTHING)
def test_densities_at_bounds_out_of_reach_are_bounded(name):
    # The probability of a value at the bounds is less than the smallest number: the bounds of all targets are such ones
    # for many rows.
    rng = np.random.default_rng(seed_of(name))
    loc, scale = rng.normal(size=60), np.full(60, 0.02)
    values = loc[:, None] + 0.02 * rng.normal(size=(60, 32))
    y = loc + 0.03 * rng.standard_t(3, 60)
    bounds = (float(y.min()), float(y.max()))
    before = predicted(name, loc, scale, values, bounds)
    for make in (ScaleConformal, DistributionConformal):
        d = make().fit(before, y).transform(before)
        density = d.logpdf(np.array([bounds]))
        assert np.all(density < 1e3), density.max()
        assert np.isfinite(before.middle_score(np.array([bounds]))).all() or name != "stack"


def test_middle_scores_at_the_bounds_of_a_stack_are_half_of_their_probability():
    for bound in (0.5, 3.0, 60.0):
        mixture = MixtureParams([0.5, 0.0, 0.5], [], support=(-bound, bound))
        d = Stack([0.0], [1.0], [[-0.1, 0.0, 0.1]], [[1.0, 1.0, 1.0]], mixture)
        score = d.middle_score(np.array([[-bound, bound]]))[0]
        np.testing.assert_allclose(log_ndtr(score * [1, -1]), np.log(0.25) + log_ndtr(-bound), rtol=1e-9)


@pytest.mark.parametrize("name", ["empirical", "kde", "normal"])
@pytest.mark.parametrize("calibration", ["scale", "distribution"])
def test_the_crps_after_calibration_is_the_integral(name, calibration):
    loc, scale, values, y, bounds = targets("continuous", "both", 0.3, 60, seed_of(name, calibration))
    before = predicted(name, loc, scale, values, bounds)
    d = CALIBRATORS[calibration]().fit(before[:40], y[:40]).transform(before[40:])
    edges = np.linspace(*bounds, 20_001)
    x = (edges[1:] + edges[:-1]) / 2
    step = (d.cdf(x[None]) - (x >= y[40:, None])) ** 2
    np.testing.assert_allclose(d.crps(y[40:]), step.mean(axis=1) * (bounds[1] - bounds[0]), rtol=0.01)


@pytest.mark.parametrize("factor", [10.0, 1e4])
def test_the_kernel_at_a_bound_is_as_wide_as_the_calibrated_distribution_asks(factor):
    # The same targets, predicted with spreads that are too narrow: calibration makes up for it.
    y, values = np.maximum(np.random.default_rng(0).normal(size=400), 0.3), np.array([[0.3, 0.4, 1.0]])
    found, right = (
        ScaleConformal().fit(d, y).transform(d[:1]).logpdf(values)
        for d in (Truncated(Normal(np.zeros(400), np.full(400, scale)), 0.3, np.inf) for scale in (1 / factor, 1.0))
    )
    # The probability of the bound is not quite the same, as half of it counts for the score.
    np.testing.assert_allclose(found, right, atol=0.3)


LEANING = tuple(partial(SkewNormal, alpha=alpha) for alpha in (1e8, -1e8))


@pytest.mark.parametrize("make", [Normal, Laplace, Logistic, Gumbel, *LEANING])
@pytest.mark.parametrize("calibration", ["scale", "distribution"])
def test_the_density_of_spreads_that_are_far_too_small_is_the_derivative(make, calibration):
    # Scores of 1e8 and more: the squares of both scores, before and after, have no digits behind the point.
    y, d = np.random.default_rng(0).normal(size=300), make(np.zeros(300), np.full(300, 1e-9))
    d = CALIBRATORS[calibration]().fit(d, y).transform(d[:1])
    places = np.array([[-1.5, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.5]])
    derivative = (d.cdf(places + 1e-6) - d.cdf(places - 1e-6)) / 2e-6
    np.testing.assert_allclose(d.pdf(places), derivative, rtol=1e-3)


def of_very_different_quality(make, n=200, share=0.3):
    """Return distributions around 1, of which some are far too narrow, and observed values: the map has kinks."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(n) < share * n, 1e-8, 1.0)
    return make(np.ones(n), scale), 1 + rng.normal(size=n)


@pytest.mark.parametrize("make", [Laplace, Logistic, Gumbel, partial(SkewNormal, alpha=4.0)])
@pytest.mark.parametrize("calibration", ["scale", "distribution"])
def test_the_crps_after_calibration_is_the_integral_also_where_the_map_has_kinks(make, calibration):
    before, y = of_very_different_quality(make)
    d, y = CALIBRATORS[calibration]().fit(before, y).transform(before[-1:]), np.array([[0.0, 1.0, 3.0]])
    quantiles = d.ppf(ndtr(np.linspace(-6, 6, 4001))[None])[0]
    edges = np.unique(np.concatenate([quantiles, y[0], np.linspace(-4, 6, 4001)]))
    x = (edges[1:] + edges[:-1]) / 2
    expected = [np.sum((d.cdf(x[None])[0] - (x >= value)) ** 2 * np.diff(edges)) for value in y[0]]
    np.testing.assert_allclose(d.crps(y)[0], expected, rtol=0.005)


@pytest.mark.parametrize("calibration", ["scale", "distribution"])
def test_the_kernel_at_a_bound_is_not_as_wide_as_what_is_outside(calibration):
    # Scores of −1e8 stretch the map, so that a quantile which the bound hides would be at −1e7.
    base, y = of_very_different_quality(Normal)
    y[base.scale < 1] = 0.0
    before = Truncated(base, 0.0, np.inf)
    d = CALIBRATORS[calibration]().fit(before, np.maximum(y, 0.0)).transform(before[-1:])
    edges = np.concatenate([np.linspace(0, 20, 20_001), np.geomspace(20, 1e10, 20_000)[1:]])
    x = ((edges[1:] + edges[:-1]) / 2)[None]
    mass = d.pdf(x)[0] * np.diff(edges)
    assert mass.sum() == pytest.approx(1, abs=0.01)
    assert mass[x[0] > 20].sum() == pytest.approx(d.sf(20.0)[0], abs=0.01)
