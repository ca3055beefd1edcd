"""Densities of chosen rows over the rug of their neighbours."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from ibug.exceptions import InvalidInputError
from ibug.plotting import DensityDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_density_and_neighbours_of_the_chosen_rows(normal, data):
    u, (X, y) = normal, data["test"]
    display = DensityDisplay.from_estimator(u, X, y, rows=[7, 2])
    distribution = u.predict_dist(X[[7, 2]])
    np.testing.assert_array_equal(display.density, distribution.pdf(display.grid))
    np.testing.assert_allclose(trapezoid(display.density, display.grid, axis=1), 0.998, atol=1e-4)
    np.testing.assert_array_equal(display.mean, distribution.mean())
    targets = data["train"][1]
    np.testing.assert_array_equal(display.neighbors, targets[u.kneighbors(X[[7, 2]])[1]])
    np.testing.assert_array_equal(display.y, y[[7, 2]])
    np.testing.assert_array_equal(display.observed_.get_xdata(), y[[7, 2]])
    # the first on top, each in a strip of its own, with its peak at the same height
    tops = [curve.get_ydata().max() for curve, _ in display.curves_]
    assert tops[0] - tops[1] == pytest.approx(1, abs=1e-3)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["row 7", "row 2"]
    for rug, values in zip(display.rugs_, display.neighbors, strict=True):
        np.testing.assert_array_equal([line[0, 0] for line in rug.get_segments()], np.unique(values))


def test_the_density_of_a_stack_is_smooth(u, data):
    X, y = data["test"]
    display = DensityDisplay.from_estimator(u, X, y, rows=[7, 2])
    distribution = u.predict_dist(X[[7, 2]])
    np.testing.assert_array_equal(display.density, distribution.pdf(display.grid))
    area = trapezoid(display.density, display.grid, axis=1)
    assert np.all((area > 0.99) & (area < 1))  # kernels reach a little beyond the outermost quantiles
    np.testing.assert_array_equal(display.mean, distribution.mean())


def test_the_rug_is_longer_where_several_values_are_equal():
    display = DensityDisplay.from_predictions(None, ([0.0], [1.0]), [[1.0, 2.0, 2.0, 2.0]], rows=[0])
    one, three = (np.ptp(line[:, 1]) for line in display.rugs_[0].get_segments())
    assert three > 1.5 * one


def test_without_values_and_neighbours(u, data):
    X, _ = data["test"]
    assert DensityDisplay.from_estimator(u, X).observed_ is None
    display = DensityDisplay.from_predictions(None, u.predict_dist(X), rows=3)
    assert display.rows.tolist() == [3]
    assert display.neighbors is None
    assert display.rugs_ == []


def test_estimator_and_predictions_are_the_same(u, data):
    X, y = data["test"]
    neighbors = data["train"][1][u.kneighbors(X)[1]]
    one = DensityDisplay.from_predictions(y, u.predict_dist(X), neighbors, rows=[4])
    other = DensityDisplay.from_estimator(u, X, y, rows=[4], targets=data["train"][1])
    for name in ("grid", "density", "mean", "neighbors", "y"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))


def test_an_infinite_density_is_drawn_as_the_highest():
    display = DensityDisplay(
        np.array([0]), np.array([[0.0, 1.0, 2.0]]), np.array([[np.inf, 2.0, 1.0]]), np.array([1.0]), None, None
    ).plot()
    heights = display.curves_[0][0].get_ydata()
    assert np.all(np.isfinite(heights))
    assert heights[0] == heights[1] > heights[2]


@pytest.mark.parametrize("rows", [[], [-1], [72], [0.5], "all", [[1]]])
def test_rows_that_are_not_there(u, data, rows):
    X, y = data["test"]
    with pytest.raises(InvalidInputError, match="rows must be"):
        DensityDisplay.from_estimator(u, X, y, rows=rows)


def test_neighbours_of_another_shape(u, data):
    X, _ = data["test"]
    with pytest.raises(InvalidInputError, match=r"of shape \(72, k\); got shape \(3, 5\)"):
        DensityDisplay.from_predictions(None, u.predict_dist(X), np.zeros((3, 5)))


@pytest.mark.parametrize("distribution", ["normal", 3.0, (0.0, 1.0)])
def test_what_is_no_batch_of_distributions(distribution):
    with pytest.raises(InvalidInputError, match="distribution"):
        DensityDisplay.from_predictions(None, distribution)
