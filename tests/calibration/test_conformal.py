"""Conformal calibration: its guarantee over many splits, and its distributions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from sklearn.exceptions import NotFittedError

from ibug.calibration import DistributionConformal, Recalibrated, ScaleConformal, VarianceCalibrator
from ibug.calibration._score_map import ScoreMap
from ibug.distributions import (
    Censored,
    Laplace,
    Lognormal,
    MixtureParams,
    Normal,
    Stack,
    StudentT,
    Weibull,
    resolve_family,
)
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage

pytestmark = pytest.mark.once

N_SPLITS, N_HELD_OUT, N_NEW = 200, 79, 50
BOTH = pytest.mark.parametrize("conformal", [ScaleConformal, DistributionConformal])


def heteroscedastic(seed, n):
    """Normal distributions that know where the spread is large, but misjudge it: noise is skewed and wider."""
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(size=n), rng.uniform(0.2, 3, n)
    noise = rng.gamma(0.7, size=n) - 0.7
    return Normal(mean, scale), mean + 2.5 * scale * noise, scale


def share_inside(interval, y):
    return (interval[0] <= y) & (y <= interval[1])


def observed_coverage(conformal, level, transform=lambda fitted, distribution, scale: fitted.transform(distribution)):
    inside = []
    for seed in range(N_SPLITS):
        distribution, y, scale = heteroscedastic(seed, N_HELD_OUT + N_NEW)
        fitted = conformal.fit(distribution[:N_HELD_OUT], y[:N_HELD_OUT])
        new = transform(fitted, distribution[N_HELD_OUT:], scale[N_HELD_OUT:])
        inside.append(share_inside(new.interval(level), y[N_HELD_OUT:]).mean())
    return np.mean(inside), np.std(inside) / np.sqrt(N_SPLITS)


@BOTH
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_coverage_over_200_splits(conformal, level):
    observed, error = observed_coverage(conformal(), level)
    # The guarantee is p at least, and 2/(n + 1) more at the most.
    assert level - 4 * error < observed < level + 2 / (N_HELD_OUT + 1) + 4 * error


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_without_it_coverage_is_off(level):
    distributions = [heteroscedastic(seed, N_NEW) for seed in range(N_SPLITS)]
    observed = np.mean([share_inside(distribution.interval(level), y) for distribution, y, _ in distributions])
    assert abs(observed - level) > 0.05


def test_variance_calibration_alone_guarantees_nothing():
    inside = []
    for seed in range(N_SPLITS):
        distribution, y, _ = heteroscedastic(seed, N_HELD_OUT + N_NEW)
        held_out = slice(0, N_HELD_OUT)
        calibrator = VarianceCalibrator().fit(distribution.mean()[held_out], distribution.var()[held_out], y[held_out])
        new = Normal(distribution.mean()[N_HELD_OUT:], np.sqrt(calibrator.transform(distribution.var()[N_HELD_OUT:])))
        inside.append(share_inside(new.interval(0.5), y[N_HELD_OUT:]).mean())
    assert abs(np.mean(inside) - 0.5) > 0.03


def test_quantiles_of_every_level_are_calibrated_on_both_sides():
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    below = {conformal: [] for conformal in (ScaleConformal, DistributionConformal)}
    for seed in range(N_SPLITS):
        distribution, y, _ = heteroscedastic(seed, 399 + N_NEW)
        for conformal, shares in below.items():
            new = conformal().fit(distribution[:399], y[:399]).transform(distribution[399:])
            shares.append((y[399:, None] <= new.ppf(levels[None, :])).mean(axis=0))
    assert np.abs(np.mean(below[DistributionConformal], axis=0) - levels).max() < 0.02
    assert np.abs(np.mean(below[ScaleConformal], axis=0) - levels).max() > 0.1  # the noise is skewed


@BOTH
def test_groups_are_calibrated_each_by_itself(conformal):
    inside = {"quiet": [], "loud": []}
    for seed in range(N_SPLITS):
        rng = np.random.default_rng(seed)
        labels = rng.choice(["quiet", "loud"], 300)
        distribution = Normal(np.zeros(300), np.ones(300))
        y = rng.normal(size=300) * np.where(labels == "loud", 4.0, 0.5)
        fitted = conformal().fit(distribution[:200], y[:200], labels[:200])
        covered = share_inside(fitted.transform(distribution[200:], labels[200:]).interval(0.8), y[200:])
        for label, shares in inside.items():
            shares.extend(covered[labels[200:] == label])
    for shares in inside.values():
        assert 0.79 < np.mean(shares) < 0.84
    # one calibration for both would be far off in each
    whole = conformal().fit(distribution, y).transform(distribution).interval(0.8)
    assert share_inside(whole, y)[labels == "quiet"].mean() > 0.95


@BOTH
def test_bins_of_the_spread_are_groups(conformal):
    by_bin = []
    for seed in range(N_SPLITS):
        rng = np.random.default_rng(seed)
        scale = rng.uniform(1, 2, 260)
        distribution = Normal(np.zeros(260), scale)
        y = rng.normal(size=260) * np.where(scale > 1.5, 5.0, 0.2)  # the distribution's spread says too little
        fitted = conformal(n_bins=2).fit(distribution[:200], y[:200])
        covered = share_inside(fitted.transform(distribution[200:]).interval(0.8), y[200:])
        loud = scale[200:] > fitted.edges_[0]
        by_bin.append([covered[~loud].mean(), covered[loud].mean()])
    assert np.all(np.abs(np.mean(by_bin, axis=0) - 0.81) < 0.02)
    # one calibration for both would be far off in each
    whole = conformal().fit(distribution, y).transform(distribution).interval(0.8)
    assert share_inside(whole, y)[scale < 1.4].mean() > 0.9


def test_the_normalised_score_by_hand():
    distribution, y, _ = heteroscedastic(0, 99)
    score = np.sort(np.abs(y - distribution.mean()) / distribution.std())
    new = Normal([10.0, 20.0], [1.0, 3.0])
    lower, upper = ScaleConformal().fit(distribution, y).transform(new).interval(0.9)
    np.testing.assert_allclose(upper, [10 + score[89], 20 + 3 * score[89]])  # the 90th of 99
    np.testing.assert_allclose(lower, [10 - score[89], 20 - 3 * score[89]])


def test_the_two_sided_score_by_hand():
    distribution, y, _ = heteroscedastic(0, 99)
    score = np.sort((y - distribution.mean()) / distribution.std())
    lower, upper = DistributionConformal().fit(distribution, y).transform(Normal([0.0], [2.0])).interval(0.9)
    assert (lower[0], upper[0]) == pytest.approx((2 * score[4], 2 * score[94]))  # the 5th and the 95th of 99


@pytest.mark.parametrize(
    ("n", "level", "low", "high"), [(99, 0.9, 5, 95), (50, 0.9, 2, 49), (100, 0.8, 10, 91), (39, 0.95, 1, 39)]
)
def test_ranks_are_rounded_outwards(n, level, low, high):
    scores = np.arange(1.0, n + 1)
    assert ScoreMap.of_scores(scores).interval(level) == (low, high)


@pytest.mark.parametrize(("n", "level", "rank"), [(99, 0.9, 90), (50, 0.9, 46), (9, 0.9, 9)])
def test_rank_of_absolute_scores_is_rounded_up(n, level, rank):
    signs = np.where(np.arange(n) % 2, -1, 1)
    assert ScoreMap.of_absolute_scores(signs * np.arange(1.0, n + 1)).interval(level) == (-rank, rank)


@pytest.mark.parametrize("sign", [-1, 1])
def test_outer_quantiles_are_calibrated_on_both_sides(sign):
    levels = np.array([0.01, 0.05, 0.95, 0.99])
    below = []
    for seed in range(N_SPLITS):
        distribution, y, _ = heteroscedastic(seed, 399 + N_NEW)
        y = sign * (y - distribution.mean()) + distribution.mean()  # skewed to the right, or to the left
        new = DistributionConformal().fit(distribution[:399], y[:399]).transform(distribution[399:])
        below.append((y[399:, None] <= new.ppf(levels[None, :])).mean(axis=0))
    assert np.abs(np.mean(below, axis=0) - levels).max() < 0.006


@BOTH
@pytest.mark.parametrize("scale", [1e-5, 1e-9, 1e-100])
def test_the_guarantee_holds_however_wrong_the_spread_is(conformal, scale):
    inside = []
    for seed in range(40):
        distribution, y = Normal(np.zeros(599), np.full(599, scale)), np.random.default_rng(seed).normal(size=599)
        interval = conformal().fit(distribution[:299], y[:299]).transform(distribution[299:]).interval(0.9)
        inside.append(share_inside(interval, y[299:]).mean())
    error = np.std(inside) / np.sqrt(40)
    assert 0.9 - 4 * error < np.mean(inside) < 0.9 + 2 / 300 + 4 * error


@pytest.mark.parametrize(("conformal", "enough"), [(ScaleConformal, 9), (DistributionConformal, 19)])
def test_too_few_rows_give_honest_infinite_ends(conformal, enough):
    distribution, y, _ = heteroscedastic(3, enough)
    assert np.all(np.isfinite(conformal().fit(distribution, y).transform(distribution).interval(0.9)))
    few = conformal().fit(distribution[1:], y[1:]).transform(distribution)
    assert np.any(np.isinf(few.interval(0.9)))
    assert np.all(
        np.isfinite(few.ppf(0.95))
    )  # the distribution itself goes on with the shape of the distribution before


@pytest.fixture(params=[ScaleConformal, DistributionConformal])
def recalibrated(request):
    distribution, y, _ = heteroscedastic(1, 200)
    return request.param().fit(distribution, y).transform(distribution[:3])


def test_density_integrates_to_one_and_quantiles_invert(recalibrated):
    one = recalibrated[1]
    knots = recalibrated.maps[0].v  # where the density jumps
    edges = one.from_normal_score(np.concatenate([[-8.0, -4.0], knots, [4.0, 8.0]]))
    pieces = [quad(lambda x: float(one.pdf(x)), a, b)[0] for a, b in pairwise(edges)]
    assert sum(pieces) == pytest.approx(1.0, abs=1e-5)
    q = np.array([0.001, 0.2, 0.5, 0.77, 0.999])
    np.testing.assert_allclose(one.cdf(one.ppf(q)), q)
    np.testing.assert_allclose(recalibrated.cdf(recalibrated.ppf(q[None, :])), np.tile(q, (3, 1)))


def test_moments_and_samples(recalibrated):
    samples = recalibrated.rvs(200_000, random_state=0)
    np.testing.assert_allclose(recalibrated.mean(), samples.mean(axis=1), atol=5 * samples.std() / np.sqrt(200_000))
    np.testing.assert_allclose(recalibrated.std(), samples.std(axis=1), rtol=0.02)
    assert stats.kstest(samples[0, :5000], lambda x: recalibrated[0].cdf(x)).pvalue > 0.001


def test_crps_equals_its_integral_also_without_the_closed_form(recalibrated):
    x = np.linspace(-150, 150, 1_000_001)
    cdf = recalibrated[2].cdf(x)
    for y in (-4.0, 0.0, 0.3, 9.0):
        expected = np.sum(np.square(cdf - (x >= y))) * (x[1] - x[0])
        assert recalibrated[2].crps(y) == pytest.approx(expected, rel=1e-3)
        assert recalibrated.crps(np.full(3, y))[2] == pytest.approx(expected, rel=1e-3)
        assert recalibrated.crps([[y, y]]).shape == (3, 2)
        general = super(Recalibrated, recalibrated[2]).crps(
            y
        )  # the base class's, for distributions that are not normal
        assert general == pytest.approx(expected, rel=1e-2)


def test_calibrated_distributions_are_left_nearly_as_they_are():
    rng = np.random.default_rng(0)
    distribution = Normal(rng.normal(size=4000), rng.uniform(1, 2, 4000))
    y = distribution.rvs(random_state=1)
    for conformal in (ScaleConformal, DistributionConformal):
        new = conformal().fit(distribution, y).transform(distribution)
        np.testing.assert_allclose(new.std(), distribution.std(), rtol=0.1)
        assert new.crps(y).mean() == pytest.approx(distribution.crps(y).mean(), rel=0.01)
        assert new.logpdf(y).mean() == pytest.approx(distribution.logpdf(y).mean(), abs=0.03)


def test_far_off_distributions_are_mended():
    # Scores of thousands: Φ would round them all to 1.
    rng = np.random.default_rng(0)
    distribution = Normal(np.zeros(500), np.full(500, 1e-4))
    y = rng.normal(size=500)
    for conformal in (ScaleConformal, DistributionConformal):
        new = conformal().fit(distribution, y).transform(distribution)
        assert coverage(y, new, 0.9) == pytest.approx(0.9, abs=0.01)
        np.testing.assert_allclose(new.std(), 1.0, rtol=0.15)


@pytest.mark.parametrize("make", [ScoreMap.of_scores, ScoreMap.of_absolute_scores])
@pytest.mark.parametrize(
    "scores", [[0.7], [0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 5.0], np.repeat([-1.0, 0.5, 2.0], 50), np.zeros(30)]
)
def test_ties_and_few_scores_still_make_a_map(make, scores):
    g = make(np.asarray(scores, float))
    v = np.linspace(-4, 4, 81)
    w = g.forward(v)
    assert np.all(np.isfinite(w))
    assert np.all(np.diff(w) > 0)
    assert np.all(g.slope_at(v) > 0)
    np.testing.assert_allclose(g.inverse(w), v, atol=1e-6)


def test_indexing_keeps_the_groups():
    distribution, y, _ = heteroscedastic(0, 100)
    labels = np.arange(100) % 3
    new = DistributionConformal().fit(distribution, y, labels).transform(distribution, labels)
    lower, upper = new.interval(0.8)
    for rows in (slice(3, 9), [5, 1], np.arange(100) % 2 == 0):
        np.testing.assert_array_equal(new[rows].interval(0.8)[0], lower[rows])
    assert float(new[4].interval(0.8)[1]) == upper[4]
    assert repr(new) == "<Recalibrated <Normal: 100 rows>>"


def test_an_unseen_group_gets_the_calibration_of_all_rows():
    distribution, y, _ = heteroscedastic(0, 100)
    grouped = ScaleConformal().fit(distribution, y, np.array(["a", "b"] * 50, dtype=object))
    whole = ScaleConformal().fit(distribution, y).transform(distribution).interval(0.8)
    new = grouped.transform(distribution, ["a"] + ["c"] * 99).interval(0.8)
    np.testing.assert_array_equal(np.array(new)[:, 1:], np.array(whole)[:, 1:])


@BOTH
def test_bins_that_ties_leave_empty_get_the_calibration_of_all_rows(conformal):
    distribution, y = Normal(np.zeros(40), np.ones(40)), np.random.default_rng(0).normal(size=40)
    binned, whole = conformal(n_bins=5).fit(distribution, y), conformal().fit(distribution, y)
    np.testing.assert_array_equal(
        binned.transform(distribution).interval(0.8), whole.transform(distribution).interval(0.8)
    )


def test_labels_are_compared_as_text():
    distribution, y, _ = heteroscedastic(0, 100)
    fitted = ScaleConformal().fit(distribution, y, np.arange(100) % 2)
    as_text = np.array([str(i % 2) for i in range(100)], dtype=object)
    np.testing.assert_array_equal(
        fitted.transform(distribution, as_text).interval(0.8),
        fitted.transform(distribution, np.arange(100) % 2).interval(0.8),
    )
    with pytest.raises(InvalidInputError, match="None of the groups is known"):
        fitted.transform(distribution, np.arange(100) % 2 + 0.5)


def test_arguments_are_matched_also_with_groups():
    distribution, y, _ = heteroscedastic(0, 100)
    new = ScaleConformal().fit(distribution, y, np.arange(100) % 2).transform(distribution, np.arange(100) % 2)
    with pytest.raises(InvalidInputError, match=r"shape \(50,\) does not fit 100 rows"):
        new.cdf(np.zeros(50))
    assert new[3].crps(np.zeros((2, 5))).shape == (2, 5)
    np.testing.assert_allclose(new.normal_score(new.ppf(0.975)), 1.96, atol=1e-2)
    np.testing.assert_allclose(new.from_normal_score(new.normal_score(y)), y)


def test_bad_input():
    distribution, y, _ = heteroscedastic(0, 20)
    with pytest.raises(InvalidInputError, match="A batch of distributions is expected"):
        ScaleConformal().fit((np.zeros(20), np.ones(20)), y)
    with pytest.raises(InvalidInputError, match="groups contains NaN"):
        ScaleConformal().fit(distribution, y, np.full(20, np.nan))
    with pytest.raises(InvalidInputError, match=r"same shape \(n,\)"):
        ScaleConformal().fit(distribution, y[:-1])
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        ScaleConformal().fit(distribution, np.full(20, np.nan))
    with pytest.raises(InvalidInputError, match=r"one label per row, shape \(20,\)"):
        ScaleConformal().fit(distribution, y, ["a"])
    with pytest.raises(InvalidInputError, match="not by both"):
        ScaleConformal(n_bins=2).fit(distribution, y, ["a"] * 20)
    with pytest.raises(InvalidInputError, match="n_bins must be an integer"):
        ScaleConformal(n_bins=0).fit(distribution, y)
    with pytest.raises(InvalidInputError, match="fitted without groups"):
        ScaleConformal().fit(distribution, y).transform(distribution, ["a"] * 20)
    with pytest.raises(InvalidInputError, match="give the groups of these rows"):
        ScaleConformal().fit(distribution, y, ["a"] * 20).transform(distribution)
    with pytest.raises(NotFittedError):
        ScaleConformal().transform(distribution)
    new = ScaleConformal().fit(distribution, y).transform(distribution)
    for level in (0, 1, 90):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            new.interval(level)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        new.ppf(2.0)


@pytest.mark.parametrize("name", ["laplace", "logistic", "student_t", "gumbel", "skewnormal", "weibull"])
def test_moments_of_every_family_stay_finite_where_scores_are_stretched(name):
    """F(y) rounds to 1 long before the quadrature ends: a quantile there must not become infinite."""
    family = resolve_family(name)[1]
    distribution = family(
        [1.0, 2.0], [2.0, 1.0], *{"student_t": (12.0,), "skewnormal": (2.0,), "weibull": (1.5,)}.get(name, ())
    )
    stretched = Recalibrated(distribution, [symmetric_map(1.5)], np.zeros(2, int))
    p = (np.arange(40_000) + 0.5) / 40_000
    mean, std = stretched.mean(), stretched.std()
    for i in range(2):
        sample = stretched[i].ppf(p)
        assert mean[i] == pytest.approx(sample.mean(), rel=1e-3)
        assert std[i] == pytest.approx(sample.std(), rel=2e-2)


def test_moments_have_digits_where_calibration_narrows_by_a_million_millions():
    """The mean of before is far from all values that are left."""
    base = Censored(Normal([0.0], [1.0]), 0.0, np.inf)
    d, usual = (Recalibrated(base, [symmetric_map(slope)], np.zeros(1, int)) for slope in (1e-12, 1.0))
    assert d.mean()[0] == pytest.approx(1e-12 * usual.mean()[0], rel=1e-6, abs=0)
    assert d.std()[0] == pytest.approx(1e-12 * usual.std()[0], rel=1e-6, abs=0)


def test_the_mean_of_a_single_value_beside_a_spread_at_its_floor_is_this_value():
    value = 2.5e-100
    parameters = MixtureParams([0.7, 0.0, 0.3], support=(0.0, np.inf))
    base = Stack([value], [7e-13], [[value]], [[1.0]], parameters)
    d = Recalibrated(base, [symmetric_map(1e-12)], np.zeros(1, int))
    assert d.ppf(np.array([[1e-6, 0.5, 1 - 1e-6]])) == pytest.approx(value, rel=1e-9, abs=0)
    assert d.mean()[0] == pytest.approx(value, rel=1e-9, abs=0)


def test_a_variance_that_stretching_makes_infinite_is():
    distribution = StudentT([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [4.0, 6.0, 20.0])
    found = Recalibrated(distribution, [symmetric_map(1.5)], np.zeros(3, int)).var()  # finite for ν > 2 · 1.5²
    assert np.isinf(found[0])
    assert np.isfinite(found[1:]).all()


def test_a_mean_that_stretching_one_tail_makes_infinite_is():
    v = np.array([-2.0, 0.0, 2.0])
    g = ScoreMap(v, np.array([-1.0, 0.0, 6.0]), 1.75, np.array([0.0, 6.0]), True)
    distribution = Recalibrated(StudentT([0.0, 0.0], [1.0, 1.0], [2.5, 50.0]), [g], np.zeros(2, int))
    mean, variance = distribution.mean(), distribution.var()
    assert mean[0] == np.inf  # it would need more than 1.75² degrees of freedom
    assert variance[0] == np.inf
    assert np.isfinite([mean[1], variance[1]]).all()


def test_without_a_mean_there_is_no_warning_and_no_number():
    distribution = Recalibrated(StudentT([0.0], [1.0], [2.5]), [symmetric_map(4.0)], np.zeros(1, int))
    assert np.isnan(distribution.mean()[0])
    assert distribution.var()[0] == np.inf


def symmetric_map(slope):
    """Return w = slope · v."""
    v = np.array([-2.0, 0.0, 2.0])
    return ScoreMap(v, slope * v, slope, slope * np.array([0.0, 2.0]), True)


@pytest.mark.parametrize("family", [Normal, Laplace])
def test_rows_of_several_groups_have_what_each_has_alone(family):
    base, groups = family([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 1.0, 3.0]), np.array([0, 1, 1, 0])
    maps = [symmetric_map(1.5), symmetric_map(0.5)]
    whole, y = Recalibrated(base, maps, groups), np.array([0.5, 1.0, 0.0, 9.0])
    for i, group in enumerate(groups):
        alone = Recalibrated(base[i : i + 1], [maps[group]], np.zeros(1, int))
        for name in ("mean", "var"):
            np.testing.assert_allclose(getattr(whole, name)()[i], getattr(alone, name)()[0], rtol=1e-12)
        for name in ("cdf", "crps", "logpdf"):
            np.testing.assert_allclose(getattr(whole, name)(y)[i], getattr(alone, name)(y[i : i + 1])[0], rtol=1e-12)


@pytest.mark.parametrize("family", [Normal, Laplace])
@pytest.mark.parametrize("n_maps", [1, 2])
def test_no_rows_have_empty_results(family, n_maps):
    base = family([0.0, 1.0], [1.0, 2.0])
    none = Recalibrated(base, [symmetric_map(1.5)] * n_maps, np.zeros(2, int))[np.zeros(2, bool)]
    assert none.mean().shape == none.var().shape == (0,)
    assert none.crps(np.empty(0)).shape == none.cdf(np.empty(0)).shape == none.logpdf(np.empty(0)).shape == (0,)
    assert none.ppf(np.array([[0.1, 0.9]])).shape == (0, 2)
    assert none.interval(0.9)[0].shape == (0,)


def test_a_variance_that_is_too_large_is_infinite_without_a_warning():
    y = np.exp(80 + np.random.default_rng(0).normal(size=20))
    distribution = Lognormal(np.zeros(20), np.zeros(20), np.full(20, 0.1))
    assert np.all(ScaleConformal().fit(distribution, y).transform(distribution).var() == np.inf)


@pytest.mark.parametrize("method", [ScaleConformal, DistributionConformal])
@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("name", ["normal", "laplace", "logistic", "gumbel", "skewnormal", "weibull"])
def test_intervals_hold_also_where_scores_end(name, share, method):
    """Of rows whose spread is far too small, values far and farther away have one score: no finite end holds them."""
    rng = np.random.default_rng(0)
    n = 2000
    few = rng.random(n) < share
    scale = np.where(few, 1e-170, 1.0)
    if name == "weibull":
        d = Weibull(np.full(n, -5.0), np.full(n, 5.0), np.where(few, 2e8, 5.0))
    else:
        d = resolve_family(name)[1](np.zeros(n), scale, *([np.full(n, 2.0)] if name == "skewnormal" else []))
    y = rng.standard_t(2, n).clip(-4.9)
    calibrator = method().fit(d[:1000], y[:1000])
    lower, upper = calibrator.transform(d[1000:]).interval(0.9)
    assert np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) > 0.87


@pytest.mark.parametrize("name", ["normal", "laplace", "logistic", "gumbel", "student_t"])
def test_nothing_is_beyond_infinity_however_heavy_the_tails(name):
    family = resolve_family(name)[1]
    base = family([1.0, 2.0], [2.0, 1.0], *([[1.1, 1.5]] if name == "student_t" else []))
    d = Recalibrated(base, [symmetric_map(4.0)], np.zeros(2, int))
    for y in (np.inf, np.full(2, np.inf), np.full((1, 3), np.inf), np.full((2, 1), np.inf)):
        assert np.all(d.cdf(-y) == 0)
        assert np.all(d.cdf(y) == 1)


def test_moments_beyond_all_numbers_are_infinite_without_a_warning():
    base = Censored(Lognormal([0.0], [0.0], [3.0]), 0.0, np.inf)
    for slope in (25.0, 60.0):
        d = Recalibrated(base, [symmetric_map(slope)], np.zeros(1, int))
        assert not np.isfinite(d.var()[0])
