"""Intervals over sorted rows."""

import numpy as np
import pytest

from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage
from ibug.plotting import IntervalDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_rows_are_sorted_by_prediction(u, data):
    X, y = data["test"]
    display = IntervalDisplay.from_estimator(u, X, y, coverage=0.8)
    assert sorted(display.rows) == list(range(len(y)))
    np.testing.assert_array_equal(display.prediction, np.sort(u.predict(X)))
    np.testing.assert_array_equal(display.y, y[display.rows])
    ends = u.predict_interval(X, coverage=0.8)
    np.testing.assert_array_equal(np.stack([display.lower, display.upper], axis=1), ends[display.rows])
    np.testing.assert_array_equal(display.line_.get_ydata(), display.prediction)
    assert display.observed_coverage == coverage(y, u.predict_dist(X), 0.8)
    label = display.band_.get_label()
    assert label == f"80 % interval: {100 * display.observed_coverage:.1f} % of all {len(y)} values inside"


def test_values_inside_and_outside_are_told_apart(u, data):
    X, y = data["test"]
    display = IntervalDisplay.from_estimator(u, X, y, coverage=0.5)
    n_inside, n_outside = len(display.inside_.get_ydata()), len(display.outside_.get_ydata())
    assert n_inside + n_outside == len(y)
    assert n_inside == round(coverage(y, u.predict_dist(X), 0.5) * len(y))
    assert display.inside_.get_marker() != display.outside_.get_marker()


def test_rows_are_thinned_evenly_and_the_coverage_is_that_of_all():
    y = np.arange(1000.0)[::-1]
    distribution = Normal(y, 1.0)
    display = IntervalDisplay.from_predictions(np.where(y < 990, y, y + 9), distribution, n_rows=11)
    assert display.position.tolist() == [1, 101, 201, 301, 401, 501, 600, 700, 800, 900, 1000]
    np.testing.assert_array_equal(display.prediction, display.position - 1)
    np.testing.assert_array_equal(display.rows, 1000 - display.position)
    assert display.observed_coverage == pytest.approx(0.99)
    assert "(11 of 1000 shown)" in display.ax_.get_xlabel()


def test_sorting_by_y(u, data):
    X, y = data["test"]
    display = IntervalDisplay.from_estimator(u, X, y, sort_by="y")
    np.testing.assert_array_equal(display.y, np.sort(y))
    assert "observed value" in display.ax_.get_xlabel()


def test_intervals_as_an_array():
    ends = [[0.0, 2.0], [1.0, 5.0]]
    display = IntervalDisplay.from_predictions([1.0, 9.0], ends)
    assert display.prediction.tolist() == [1, 3]
    assert display.observed_coverage == 0.5
    display = IntervalDisplay.from_predictions([1.0, 9.0], ends, prediction=[4.0, 2.0])
    assert display.rows.tolist() == [1, 0]
    with pytest.raises(InvalidInputError, match="shape"):
        IntervalDisplay.from_predictions([1.0, 9.0], ends, prediction=[4.0])
