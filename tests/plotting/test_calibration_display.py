"""Calibration curves."""

import numpy as np
import pytest
from scipy import stats

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import calibration_curve, miscalibration_area
from ibug.plotting import CalibrationDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_it_draws_what_the_metric_says(u, data):
    X, y = data["test"]
    display = CalibrationDisplay.from_estimator(u, X, y, n_levels=30)
    expected, observed = calibration_curve(y, u.predict_dist(X), n_levels=30)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), expected)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), observed)
    np.testing.assert_array_equal(display.observed["IBUGRegressor"], observed)
    area = miscalibration_area(y, u.predict_dist(X), n_levels=30)
    assert display.areas == {"IBUGRegressor": area}
    assert display.lines_[0].get_label() == f"IBUGRegressor (miscalibration area {area:.3f})"
    assert display.diagonal_.get_xydata().tolist() == [[0, 0], [1, 1]]


def test_several_predictions_are_compared(u, data):
    X, y = data["test"]
    distribution = u.predict_dist(X)
    distributions = {"before": Normal(distribution.mean(), distribution.std() / 5), "after": distribution}
    display = CalibrationDisplay.from_predictions(y, distributions)
    assert list(display.observed) == ["before", "after"]
    assert display.areas["before"] > display.areas["after"]
    before, after = display.lines_
    # In grey they differ by dashes and markers.
    assert before.get_linestyle() != after.get_linestyle()
    assert before.get_marker() != after.get_marker()
    same = CalibrationDisplay.from_estimator({"a": u, "b": u}, X, y)
    np.testing.assert_array_equal(same.observed["a"], same.observed["b"])


def test_the_band_is_that_of_the_binomial_distribution(u, data):
    X, y = data["test"]
    display = CalibrationDisplay.from_estimator(u, X, y, n_levels=11)
    drawn = display.band_.get_paths()[0].vertices
    for level in (0.3, 0.7):
        ends = drawn[np.isclose(drawn[:, 0], level), 1] * len(y)
        assert {round(end) for end in ends} == set(stats.binom(len(y), level).ppf([0.025, 0.975]))
    assert CalibrationDisplay.from_estimator(u, X, y, band=False).band_ is None


def test_names(u, data):
    X, y = data["test"]
    distribution = u.predict_dist(X)
    assert list(CalibrationDisplay.from_predictions(y, distribution, name="mine").areas) == ["mine"]
    with pytest.raises(InvalidInputError, match="keys of a mapping"):
        CalibrationDisplay.from_predictions(y, {"a": distribution}, name="b")
    with pytest.raises(InvalidInputError, match="empty"):
        CalibrationDisplay.from_predictions(y, {})
