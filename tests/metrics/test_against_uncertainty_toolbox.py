"""The paper computed its tables with Uncertainty Toolbox: the same numbers must come out here.

Where its definition is not followed: with ``prop_type="quantile"`` it compares the quantile with ``mean - y`` instead
of ``y - mean``, so its curve is that of the mirrored errors. Our curves are those of central intervals, its default,
which mirroring does not change.
"""

import numpy as np
import pytest

from ibug import metrics
from ibug.distributions import Normal

pytestmark = pytest.mark.once

toolbox = pytest.importorskip("uncertainty_toolbox")


@pytest.fixture(params=[0, 1, 2])
def predictions(request):
    rng = np.random.default_rng(request.param)
    n = (200, 37, 1)[request.param]
    mean = rng.normal(size=n) * 10
    std = rng.uniform(0.2, 5, n)
    return mean, std, mean + 2 * rng.standard_t(3, size=n)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("nll", "nll_gaussian"),
        ("crps", "crps_gaussian"),
        ("check_score", "check_score"),
        ("interval_score", "interval_score"),
        ("mace", "mean_absolute_calibration_error"),
        ("rms_calibration_error", "root_mean_squared_calibration_error"),
        ("miscalibration_area", "miscalibration_area"),
    ],
)
def test_same_number(ours, theirs, predictions):
    mean, std, y = predictions
    expected = getattr(toolbox, theirs)(mean, std, y)
    assert getattr(metrics, ours)(y, Normal(mean, std)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_same_sharpness(predictions):
    mean, std, y = predictions
    assert metrics.sharpness(y, (mean, std)) == pytest.approx(toolbox.sharpness(std), rel=1e-12)


def test_same_point_errors(predictions):
    mean, std, y = predictions
    if len(y) < 2:
        pytest.skip("the toolbox also computes a correlation, which one row has not")
    theirs = toolbox.get_all_accuracy_metrics(mean, y, verbose=False)
    assert metrics.rmse(y, (mean, std)) == pytest.approx(theirs["rmse"], rel=1e-12)
    assert metrics.mae(y, mean) == pytest.approx(theirs["mae"], rel=1e-12)


def test_same_curve(predictions):
    mean, std, y = predictions
    expected, observed = toolbox.get_proportion_lists_vectorized(mean, std, y)
    ours = metrics.calibration_curve(y, (mean, std))
    np.testing.assert_allclose(ours[0], expected)
    np.testing.assert_allclose(ours[1], observed)
