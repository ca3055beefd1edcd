"""Histogram of the probability integral transform."""

import numpy as np
import pytest
from scipy import stats

from ibug.metrics import pit
from ibug.plotting import PITDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_the_bars_are_the_share_of_each_bin(u, data):
    X, y = data["test"]
    display = PITDisplay.from_estimator(u, X, y, n_bins=8)
    values = pit(y, u.predict_dist(X))
    np.testing.assert_array_equal(display.values, values)
    counts = [np.sum((values >= i / 8) & (values < (i + 1) / 8)) for i in range(8)]
    np.testing.assert_array_equal(display.counts, counts)
    heights = np.array([bar.get_height() for bar in display.bars_])
    np.testing.assert_allclose(heights, np.array(counts) * 8 / len(y))
    assert heights.mean() == pytest.approx(1)  # an area of 1
    assert display.line_.get_ydata()[0] == 1


def test_all_values_are_in_a_bin():
    # F(y) of exactly 0, 1 and an edge
    display = PITDisplay.from_predictions([-1e9, 0.0, 1e9], (np.zeros(3), np.ones(3)), n_bins=2)
    assert display.counts.tolist() == [1, 2]


def test_the_band_is_that_of_the_binomial_distribution(u, data):
    X, y = data["test"]
    display = PITDisplay.from_estimator(u, X, y, n_bins=10)
    low, high = stats.binom(len(y), 0.1).ppf([0.025, 0.975]) * 10 / len(y)
    box = display.band_.get_extents().transformed(display.ax_.transData.inverted())
    assert (box.y0, box.y1) == pytest.approx((low, high))
    assert display.plot(band=False).band_ is None
