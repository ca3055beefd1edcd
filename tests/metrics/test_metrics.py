"""Each metric against its definition written out, and against bad input."""

import numpy as np
import pytest
from scipy import stats

from ibug import metrics
from ibug.distributions import Mixture, MixtureParams, Normal, Stack, Truncated
from ibug.exceptions import InvalidInputError
from tests.oracles import crps_by_quadrature

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=60) * 3
STD = RNG.uniform(0.3, 4, 60)
Y = MEAN + STD * RNG.standard_t(4, size=60)
DISTRIBUTION = Normal(MEAN, STD)

OF_DISTRIBUTIONS = ["crps", "nll", "mace", "rms_calibration_error", "miscalibration_area", "sharpness", "pit",
                    "crps_skill", "calibration_curve"]  # fmt: skip
OF_INTERVALS = ["coverage", "mean_width", "interval_score"]
OF_POINTS = ["rmse", "mae"]
EVERY = [*OF_DISTRIBUTIONS, *OF_INTERVALS, *OF_POINTS, "check_score"]


def test_every_metric_is_tested():
    functions = {name for name in metrics.__all__ if name.islower() and not name.endswith("scorer")}
    helpers = {"as_distribution", "as_interval", "as_points", "as_quantiles", "as_targets", "predict_dist", "reduced"}
    of_several_targets = {"energy_score", "variogram_score"}  # in test_multioutput_scores.py
    others = {"evaluate", "drift", "resolve_scoring"}
    assert functions == {*EVERY, *helpers, *others, *of_several_targets}


@pytest.mark.parametrize("name", [name for name in EVERY if name not in OF_INTERVALS])
def test_a_distribution_and_its_parameters_are_the_same(name):
    metric = getattr(metrics, name)
    np.testing.assert_array_equal(metric(Y, DISTRIBUTION), metric(Y, (MEAN, STD)))


@pytest.mark.parametrize("name", ["crps", "nll", "coverage", "mean_width", "interval_score", "check_score", "mae"])
def test_the_mean_of_the_rows(name):
    metric = getattr(metrics, name)
    rows = metric(Y, DISTRIBUTION, reduce=None)
    assert rows.shape == (60,)
    assert metric(Y, DISTRIBUTION) == pytest.approx(rows.mean())
    assert isinstance(metric(Y, DISTRIBUTION), float)
    # a row's score is its own
    np.testing.assert_allclose(metric(Y[7:9], DISTRIBUTION[7:9], reduce=None), rows[7:9])


@pytest.mark.parametrize("name", ["rmse", "sharpness"])
def test_the_root_of_the_mean_of_the_rows(name):
    metric = getattr(metrics, name)
    assert metric(Y, DISTRIBUTION) == pytest.approx(np.sqrt(metric(Y, DISTRIBUTION, reduce=None).mean()))


def test_crps_and_nll():
    expected = [crps_by_quadrature(stats.norm(m, s), y) for m, s, y in zip(MEAN[:5], STD[:5], Y[:5], strict=True)]
    np.testing.assert_allclose(metrics.crps(Y[:5], DISTRIBUTION[:5], reduce=None), expected, rtol=1e-6)
    assert metrics.nll(Y, DISTRIBUTION) == pytest.approx(-stats.norm(MEAN, STD).logpdf(Y).mean())


def test_check_score_is_half_the_crps_in_the_limit():
    alpha = (np.arange(20_000) + 0.5) / 20_000
    assert 2 * metrics.check_score(Y, DISTRIBUTION, alpha) == pytest.approx(metrics.crps(Y, DISTRIBUTION), rel=1e-3)


def test_check_score_of_one_quantile_by_hand():
    # 1 above a 90 % quantile costs 0.9, 1 below costs 0.1.
    assert metrics.check_score([2.0], [[1.0]], 0.9) == pytest.approx(0.9)
    assert metrics.check_score([0.0], [[1.0]], 0.9) == pytest.approx(0.1)


def test_interval_score_by_hand():
    interval = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(metrics.interval_score([0.5, 3.0, -1.0], interval, 0.8, reduce=None), [1, 21, 11])


class Counting(Stack):
    """Counts how often quantiles are asked for."""

    asked = 0

    def ppf(self, q):
        type(self).asked += 1
        return super().ppf(q)


def test_interval_and_check_scores_are_those_of_quantiles_one_by_one(monkeypatch):
    """Also where jumps are at the quantiles; and blocks of rows are asked for all of them at once."""
    rng, n, percents = np.random.default_rng(0), 20, np.linspace(0.01, 0.99, 99)
    mixture = MixtureParams([0.3, 0.3, 0.4], errors=np.sort(rng.normal(size=40)), support=(-1.0, np.inf))
    atoms, masses = rng.integers(-3, 4, (n, 25)), rng.uniform(size=(n, 25))
    stack = Counting(rng.normal(size=n), rng.uniform(0.5, 2, n), atoms, masses, mixture)
    y = rng.normal(size=n)
    normal = Normal(y + 1, stack.scale)
    for d in (stack, normal, Mixture([stack, normal]), Truncated(normal, -1.0, 3.0)):
        ends = [(p, d.ppf((1 - p) / 2), d.ppf((1 + p) / 2)) for p in percents]
        by_level = [high - low + 2 / (1 - p) * np.maximum(np.maximum(low - y, y - high), 0) for p, low, high in ends]
        excess = [(p, d.ppf(p) - y) for p in percents]
        pinball = np.mean([((e >= 0) - p) * e for p, e in excess], axis=0)
        for rows_at_once in (1, 7, 10_000):
            monkeypatch.setattr("ibug.metrics._inputs._QUANTILES_AT_ONCE", rows_at_once * 198)
            np.testing.assert_allclose(
                metrics.interval_score(y, d, reduce=None), np.mean(by_level, axis=0), rtol=1e-13, atol=0
            )
            np.testing.assert_allclose(metrics.check_score(y, d, reduce=None), pinball, rtol=1e-13, atol=0)
            if d is stack:
                Counting.asked = 0
                metrics.interval_score(y, stack)
                assert Counting.asked == -(-n // rows_at_once)


def test_coverage_and_width_of_arrays():
    interval = np.stack(DISTRIBUTION.interval(0.8), axis=1)
    assert metrics.coverage(Y, interval) == metrics.coverage(Y, DISTRIBUTION, 0.8)
    assert metrics.mean_width(Y, interval) == pytest.approx(metrics.mean_width(Y, DISTRIBUTION, 0.8))
    assert metrics.coverage([0.0, 1.0, 2.0], [[0.0, 0.5], [0.0, 0.5], [2.0, 2.0]]) == pytest.approx(2 / 3)


def test_quantiles_of_arrays():
    alpha = [0.1, 0.5, 0.9]
    assert metrics.check_score(Y, DISTRIBUTION.ppf([alpha]), alpha) == pytest.approx(
        metrics.check_score(Y, DISTRIBUTION, alpha)
    )


def test_point_errors():
    assert metrics.rmse(Y, MEAN) == metrics.rmse(Y, DISTRIBUTION) == pytest.approx(np.sqrt(np.mean((Y - MEAN) ** 2)))
    assert metrics.mae(Y, MEAN) == metrics.mae(Y, DISTRIBUTION) == pytest.approx(np.mean(np.abs(Y - MEAN)))


def test_calibrated_distributions_have_a_uniform_pit_and_little_error():
    y = DISTRIBUTION.rvs(500, random_state=0).T.ravel()
    predicted = Normal(np.tile(MEAN, 500), np.tile(STD, 500))
    assert stats.kstest(metrics.pit(y, predicted), "uniform").pvalue > 0.01
    assert metrics.mace(y, predicted) < 0.01
    assert metrics.miscalibration_area(y, predicted) < 0.01


def calibrated_stacks():
    """Return stacks of few atoms, so that jumps are large, and one value drawn from each."""
    rng = np.random.default_rng(3)
    atoms = rng.integers(0, 6, size=(4000, 4))
    mixture = MixtureParams([0.2, 0.1, 0.7], errors=[-1.0, 0.5], support=(0.0, np.inf))
    d = Stack(rng.normal(3, 1, 4000), 1.0, atoms, rng.uniform(size=(4000, 4)), mixture)
    return d.rvs(random_state=1), d


def test_calibrated_stacks_have_a_uniform_pit_and_little_error():
    y, d = calibrated_stacks()
    u = metrics.pit(y, d)
    assert stats.kstest(u, "uniform").pvalue > 0.01
    np.testing.assert_array_equal(u, metrics.pit(y, d))  # the same each time
    assert not np.array_equal(u, metrics.pit(y, d, random_state=1))
    before, at = d.cdf(np.nextafter(y, -np.inf)), d.cdf(y)
    assert np.mean(at - before > 0.05) > 0.5  # most values are at a jump
    assert np.all((before <= u) & (u <= at))
    assert metrics.mace(y, d) < 0.015
    assert metrics.miscalibration_area(y, d) < 0.015
    assert metrics.coverage(y, d, 0.5) > 0.6  # the ends belong to the intervals


def test_the_calibration_curve_is_the_mean_over_all_draws_from_jumps():
    y, d = calibrated_stacks()
    y, d = y[:50], d[:50]
    draws = np.array([metrics.pit(y, d, random_state=seed) for seed in range(2000)])
    expected, observed = metrics.calibration_curve(y, d, n_levels=11)
    by_draws = np.mean(np.abs(2 * draws[..., None] - 1) <= expected, axis=(0, 1))
    np.testing.assert_allclose(observed, by_draws, atol=0.01)
    assert observed[-1] == 1.0


def test_the_pit_of_a_distribution_without_jumps_is_its_cdf():
    np.testing.assert_array_equal(metrics.pit(Y, DISTRIBUTION), DISTRIBUTION.cdf(Y))


def test_calibration_errors_by_hand():
    # Four values that need the levels 0, 0.5, 0.5 and 1 to be inside: at 0, 0.5 and 1 observed are 0.25, 0.75 and 1.
    predicted = Normal(np.zeros(4), 1.0)
    y = predicted.ppf([0.5, 0.75 - 1e-12, 0.25 + 1e-12, 1 - 1e-16])
    expected, observed = metrics.calibration_curve(y, predicted, n_levels=3)
    np.testing.assert_array_equal(expected, [0, 0.5, 1])
    np.testing.assert_array_equal(observed, [0.25, 0.75, 1])
    assert metrics.mace(y, predicted, n_levels=3) == pytest.approx(0.5 / 3)
    assert metrics.rms_calibration_error(y, predicted, n_levels=3) == pytest.approx(np.sqrt(0.125 / 3))
    assert metrics.miscalibration_area(y, predicted, n_levels=3) == pytest.approx(0.125 + 0.0625)


def test_miscalibration_area_where_the_curve_crosses():
    # At 0 the curve is 0.25 above the diagonal, at 1/2 0.25 below, at 1 on it.
    predicted = Normal(np.zeros(4), 1.0)
    y = predicted.ppf([0.5, 0.99, 0.01, 0.98])
    _, observed = metrics.calibration_curve(y, predicted, n_levels=3)
    np.testing.assert_array_equal(observed, [0.25, 0.25, 1])
    assert metrics.miscalibration_area(y, predicted, n_levels=3) == pytest.approx(2 * 0.25 * 0.25 / 2 + 0.25 * 0.5 / 2)


def test_skill_against_brute_force():
    train = RNG.normal(size=45) * 4
    pairs = np.abs(train[:, None] - train).mean()
    climatology = np.mean(np.abs(train[:, None] - Y).mean(axis=0) - pairs / 2)
    assert metrics.crps_skill(Y, DISTRIBUTION, reference=train) == pytest.approx(
        1 - metrics.crps(Y, DISTRIBUTION) / climatology
    )
    assert metrics.crps_skill(Y, (Y, np.full(60, 1e-9))) == pytest.approx(1.0)


def test_skill_of_equal_targets():
    with pytest.raises(InvalidInputError, match="All targets are equal"):
        metrics.crps_skill([1.0, 1.0], ([1.0, 1.0], [1.0, 1.0]))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("y", "distribution", "message"),
    [
        ([], ([], []), "at least 1"),
        ([[1.0, 2.0]], ([0.0], [1.0]), r"y must have shape \(n,\)"),
        ([np.nan, 1.0], ([0.0, 0.0], [1.0, 1.0]), "y contains 1 NaN or infinite"),
        ([np.inf], ([0.0], [1.0]), "y contains 1 NaN or infinite"),
        ([1.0, 2.0, 3.0], ([0.0, 0.0], [1.0, 1.0]), "y has 3 rows"),
        ([1.0], ([0.0], [0.0]), "above zero"),
        ([1.0], ([0.0], [np.nan]), "above zero"),
        ([1.0], (np.nan, 1.0), "finite locations"),
    ],
)
def test_bad_input(name, y, distribution, message):
    with pytest.raises(InvalidInputError, match=message):
        getattr(metrics, name)(y, Normal(*distribution) if name in OF_INTERVALS else distribution)


@pytest.mark.parametrize("name", OF_INTERVALS)
def test_a_tuple_could_be_an_interval_or_a_distribution(name):
    with pytest.raises(InvalidInputError, match="array of shape"):
        getattr(metrics, name)(Y, DISTRIBUTION.interval(0.9))


@pytest.mark.parametrize("name", OF_DISTRIBUTIONS)
def test_no_distribution(name):
    with pytest.raises(InvalidInputError, match="predict_dist"):
        getattr(metrics, name)([1.0, 2.0], np.zeros((2, 2)))


@pytest.mark.parametrize("name", OF_INTERVALS)
def test_bad_intervals(name):
    metric = getattr(metrics, name)
    for level in (0, 1, -0.2, 90, np.nan):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            metric(Y, DISTRIBUTION, level)
    with pytest.raises(InvalidInputError, match=r"shape \(60, 2\) are expected"):
        metric(Y, np.zeros((60, 3)))
    with pytest.raises(InvalidInputError, match="contain 1 NaN"):
        metric([1.0], [[0.0, np.nan]])
    with pytest.raises(InvalidInputError, match="lower end is above the upper end in 1 of 1"):
        metric([1.0], [[2.0, 0.0]])


def test_bad_quantiles():
    with pytest.raises(InvalidInputError, match="alpha must be between 0 and 1"):
        metrics.check_score(Y, DISTRIBUTION, [0.5, 1.0])
    with pytest.raises(InvalidInputError, match=r"shape \(60, 2\) are expected"):
        metrics.check_score(Y, np.zeros((60, 3)), [0.1, 0.9])


def test_swapped_arguments():
    with pytest.raises(InvalidInputError, match="observed values come first"):
        metrics.crps(DISTRIBUTION, Y)


def test_unknown_reduction():
    with pytest.raises(InvalidInputError, match='reduce must be "mean" or None'):
        metrics.crps(Y, DISTRIBUTION, reduce="sum")


@pytest.mark.parametrize("n_levels", [1, 2.5, True])
def test_too_few_levels(n_levels):
    with pytest.raises(InvalidInputError, match="n_levels"):
        metrics.mace(Y, DISTRIBUTION, n_levels=n_levels)
