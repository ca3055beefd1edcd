"""Conformal calibration of stacks: sure, and narrow on whole numbers."""

import numpy as np
import pytest

from ibug.calibration import DistributionConformal, ScaleConformal
from ibug.distributions import MixtureParams, Stack

pytestmark = pytest.mark.once


def grades(n, seed):
    """Return stacks whose atoms are grades, too wide or too narrow, and grades."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(5.5, 0.7, n)
    y = np.round(mean + rng.normal(0, 0.6, n))
    atoms = np.round(mean[:, None] + rng.normal(0, 0.6, (n, 30)))
    return Stack(mean, np.full(n, 0.6), atoms, np.ones((n, 30)), MixtureParams([0.2, 0.0, 0.8])), y


@pytest.mark.parametrize("method", [ScaleConformal, DistributionConformal])
def test_coverage_is_kept_on_grades(method):
    calibrator = method().fit(*grades(400, 0))
    d, y = grades(4000, 1)
    lower, upper = calibrator.transform(d).interval(0.9)
    inside = (y >= lower) & (y <= upper)
    assert 0.89 < inside.mean() < 0.985
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert np.mean(upper - lower) < 1.1 * np.mean(np.subtract(*d.interval(0.9)[::-1]))
