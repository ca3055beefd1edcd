"""σ against absolute error."""

import numpy as np
import pytest

from ibug.distributions import Normal
from ibug.metrics import rmse
from ibug.plotting import SpreadErrorDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_points_and_bins(u, data):
    X, y = data["test"]
    distribution = u.predict_dist(X)
    display = SpreadErrorDisplay.from_estimator(u, X, y, n_bins=4)
    np.testing.assert_allclose(display.std, distribution.std())
    np.testing.assert_allclose(display.error, np.abs(y - distribution.mean()))
    order = np.argsort(distribution.std(), kind="stable")
    for i, rows in enumerate(np.split(order, 4)):
        assert display.bin_rmse[i] == pytest.approx(rmse(y[rows], distribution[rows]))
        assert display.bin_std[i] == pytest.approx(np.sqrt(np.mean(distribution.var()[rows])))
    np.testing.assert_array_equal(display.bins_.get_xdata(), display.bin_std)
    np.testing.assert_array_equal(display.bins_.get_ydata(), display.bin_rmse)
    np.testing.assert_array_equal(display.diagonal_.get_xdata(), display.diagonal_.get_ydata())


def test_true_spreads_are_on_the_diagonal():
    rng = np.random.default_rng(0)
    distribution = Normal(np.zeros(20_000), np.exp(rng.normal(size=20_000)))
    display = SpreadErrorDisplay.from_predictions(distribution.rvs(random_state=0), distribution)
    np.testing.assert_allclose(display.bin_rmse / display.bin_std, 1, atol=0.1)
    assert len(display.points_.get_xdata()) == 2000
    assert display.points_.get_label() == "row (2000 of 20000)"


def test_scale():
    distribution = Normal(np.zeros(3), [1.0, 2.0, 3.0])
    display = SpreadErrorDisplay.from_predictions([0.0, 1.0, 2.0], distribution, n_bins=1)
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    # An error of zero has no place on a log scale, and is drawn at the least.
    np.testing.assert_allclose(display.points_.get_ydata(), [0.01, 1, 2])
    linear = SpreadErrorDisplay.from_predictions([0.0, 1.0, 2.0], distribution, scale="linear")
    assert linear.ax_.get_yscale() == "linear"
    # No errors at all: no logarithm.
    perfect = SpreadErrorDisplay.from_predictions(np.zeros(3), distribution)
    assert perfect.ax_.get_yscale() == "linear"
    assert perfect.bin_rmse.tolist() == [0, 0, 0]
