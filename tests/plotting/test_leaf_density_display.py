"""How full the leaves are."""

import numpy as np
import pytest

from ibug.exceptions import InvalidInputError
from ibug.explain import leaf_density
from ibug.plotting import LeafDensityDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_along_the_trees(u, data):
    X, _ = data["test"]
    display = LeafDensityDisplay.from_estimator(u, X)
    density = leaf_density(u, X, per="tree")
    np.testing.assert_array_equal(display.density["GradientBoostingRegressor"], density)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), np.arange(1, 31))
    np.testing.assert_allclose(display.lines_[0].get_ydata(), density)  # too few trees to smooth
    assert display.lines_[0].get_label() == f"GradientBoostingRegressor: {100 * density.mean():.1f} % on average"


def test_the_line_is_a_running_mean_of_many_trees():
    density = np.random.default_rng(0).random(100)
    drawn = LeafDensityDisplay.from_results({"a": density}).lines_[0].get_ydata()
    expected = [density[max(0, i - 2) : i + 3].mean() for i in range(100)]
    np.testing.assert_allclose(drawn, expected)


def test_over_the_rows(u, data):
    X, _ = data["test"]
    display = LeafDensityDisplay.from_estimator({"a": u, "b": u}, X, per="row", n_bins=5)
    density = leaf_density(u, X, per="row")
    np.testing.assert_array_equal(display.density["b"], density)
    shares, edges, _ = display.lines_[0].get_data()
    np.testing.assert_allclose(shares, np.histogram(density, bins=edges)[0] / len(density))
    assert shares.sum() == pytest.approx(1)


def test_bad_results():
    with pytest.raises(InvalidInputError, match=r"density\['a'\] contains 1 NaN"):
        LeafDensityDisplay.from_results({"a": [0.1, np.nan]})
    with pytest.raises(InvalidInputError, match="empty"):
        LeafDensityDisplay.from_results({})
