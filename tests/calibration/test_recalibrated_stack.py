"""A recalibrated stack against its definition: F has jumps, and the normal scores are moved."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.distributions import MixtureParams, Stack

pytestmark = pytest.mark.once

METHODS = [ScaleConformal, DistributionConformal]
SUPPORTS = [(-np.inf, np.inf), (0.0, np.inf), (0.0, 9.0)]


def stacks(n, seed=0, *, support=(-np.inf, np.inf), grid=0.0):
    """Return stacks that are too narrow, and values."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(2, 6, n)
    y = mean + rng.standard_t(4, n)
    atoms = mean[:, None] + rng.normal(0, 0.8, (n, 20))
    if grid:
        y, atoms = (grid * np.round(values / grid) for values in (y, atoms))
    mixture = MixtureParams([0.3, 0.2, 0.5], np.linspace(-2, 2, 11), 0.2, 0.3, grid, support)
    return Stack(mean, np.full(n, 0.7), atoms, rng.uniform(size=(n, 20)), mixture), np.clip(y, *support)


def recalibrated(method, n=20, **options):
    base, y = stacks(300, 1, **options)
    d, values = stacks(n, 2, **options)
    return method().fit(base, y).transform(d), values


@pytest.mark.parametrize("grid", [0.0, 1.0])
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("method", METHODS)
def test_crps_and_moments_are_those_of_the_quantiles(method, support, grid):
    d, y = recalibrated(method, support=support, grid=grid)
    levels = (np.arange(100_000) + 0.5) / 100_000
    quantiles = d.ppf(levels[None, :])
    expected = 2 * np.mean(((y[:, None] < quantiles) - levels) * (quantiles - y[:, None]), axis=1)
    np.testing.assert_allclose(d.crps(y), expected, rtol=1e-4)
    np.testing.assert_allclose(d.mean(), quantiles.mean(axis=1), rtol=1e-4)
    np.testing.assert_allclose(d.std(), quantiles.std(axis=1), rtol=1e-3)


@pytest.mark.parametrize("grid", [0.0, 1.0])
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("method", METHODS)
def test_the_density_integrates_to_one(method, support, grid):
    d, y = recalibrated(method, support=support, grid=grid)
    ends = np.clip([-40.0, 50.0], *support)
    x = np.linspace(*ends, 9_001)
    np.testing.assert_allclose(trapezoid(d.pdf(x[None, :]), x, axis=1), 1, atol=2e-3)
    assert np.isfinite(d.logpdf(y)).all()
    assert np.isfinite(d.logpdf(np.clip(100.0, *support)) if np.isfinite(support[1]) else 0.0).all()
    assert np.all(d.logpdf(np.inf) == -np.inf)
    if support[0] == 0:
        assert np.all(d.logpdf(-1e-9) == -np.inf)
        assert np.isfinite(d.logpdf(0.0)).all()


@pytest.mark.parametrize("method", METHODS)
def test_on_grades_the_density_is_about_the_probability(method):
    d, _ = recalibrated(method, grid=1.0)
    wide = np.arange(-10.0, 20.0)
    probability = d.cdf(wide[None, :] + 0.5) - d.cdf(wide[None, :] - 0.5)
    density = d.pdf(wide[None, :])
    assert np.abs(density.sum(axis=1) - 1).mean() < 0.05
    assert np.corrcoef(probability.ravel(), density.ravel())[0, 1] > 0.97


@pytest.mark.parametrize("method", METHODS)
def test_shapes(method):
    d, y = recalibrated(method, 7)
    table = np.stack([y, y + 1], axis=1)
    for function in ("crps", "logpdf"):
        both = getattr(d, function)(table)
        np.testing.assert_allclose(both[:, 0], getattr(d, function)(y))
        assert getattr(d, function)(2.0).shape == (7,)
        assert getattr(d, function)([[1.0, 2.0, 3.0]]).shape == (7, 3)
        np.testing.assert_allclose(getattr(d[3], function)(table[3]), both[3])
        assert getattr(d[3], function)(2.0).shape == ()
    np.testing.assert_allclose(d[3].mean(), d.mean()[3])


def test_groups_have_maps_of_their_own():
    base, y = stacks(400, 1)
    d, values = stacks(30, 2)
    sure = ScaleConformal(n_bins=2).fit(base, y).transform(d)
    each = [sure[i : i + 1].crps(values[i : i + 1])[0] for i in range(30)]
    np.testing.assert_allclose(sure.crps(values), each)


def test_many_rows_are_done_in_parts():
    d, y = recalibrated(ScaleConformal, 600)
    np.testing.assert_allclose(d.crps(y)[-5:], d[-5:].crps(y[-5:]))
    np.testing.assert_allclose(d.mean()[-5:], d[-5:].mean())
