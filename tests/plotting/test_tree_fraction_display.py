"""Score and time against the share of the trees."""

import numpy as np
import pytest

from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps
from ibug.plotting import TreeFractionDisplay

pytestmark = pytest.mark.once

plt = pytest.importorskip("matplotlib.pyplot")

ALL = ("train", "validation", "test")


def test_each_point_is_a_regressor_with_so_many_trees(u, data):
    parts = [array for name in ALL for array in data[name]]
    display = TreeFractionDisplay.from_estimator(u, *parts, fractions=[1.0, 0.2], orders=["first", "last"], n_repeats=1)
    assert display.fractions.tolist() == [0.2, 1.0]
    X_val, y_val = data["validation"]
    X, y = data["test"]
    for order in ("first", "last"):
        few = IBUGRegressor(u.estimator_, prefit=True, sampling=Sampling(tree_fraction=0.2, tree_order=order))
        few.fit(*data["train"], X_val=X_val, y_val=y_val)
        scores = [crps(y, few.predict_dist(X)), crps(y, u.predict_dist(X))]
        np.testing.assert_allclose(display.scores[order], scores)
        assert np.all(display.seconds[order] > 0)
    # With all trees the order does not matter, so it is measured once.
    assert display.seconds["first"][-1] == display.seconds["last"][-1]
    for line, order in zip(display.score_lines_, ("first", "last"), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), display.scores[order])


def test_the_estimator_is_left_as_it_was(u, data):
    parts = [array for name in ALL for array in data[name]]
    before = u.get_params(deep=False), u.k_, u.source_.index
    TreeFractionDisplay.from_estimator(u, *parts, fractions=[0.5], orders=["random"], n_repeats=1)
    assert (u.get_params(deep=False), u.k_, u.source_.index) == before


@pytest.mark.parametrize(("seconds", "unit", "drawn"), [(2.5, "s", 2.5), (0.25, "ms", 250), (3e-5, "µs", 30)])
def test_times_have_a_readable_unit(seconds, unit, drawn):
    display = TreeFractionDisplay.from_results([1.0], {"first": [1.0]}, {"first": [seconds]})
    assert display.ax_[1].get_ylabel().endswith(f"({unit})")
    assert display.time_lines_[0].get_ydata() == pytest.approx([drawn])


def test_a_pair_of_axes():
    _, pair = plt.subplots(2, 1)
    display = TreeFractionDisplay.from_results([0.5, 1.0], {"a": [2, 1]}, {"a": [1, 2]}, ax=pair)
    assert list(display.ax_) == list(pair)


@pytest.mark.parametrize(
    ("fractions", "scores", "seconds", "message"),
    [
        ([], {"a": []}, {"a": []}, "fractions must have shape"),
        ([0.0], {"a": [1]}, {"a": [1]}, "above 0 and up to 1"),
        ([1.0], {}, {}, "same names"),
        ([1.0], {"a": [1]}, {"b": [1]}, "same names"),
        ([1.0], {"a": [1, 2]}, {"a": [1]}, r"scores\['a'\] must have shape \(1,\)"),
        ([1.0], {"a": [1]}, {"a": [np.nan]}, r"seconds\['a'\] contains 1 NaN"),
    ],
)
def test_bad_results(fractions, scores, seconds, message):
    with pytest.raises(InvalidInputError, match=message):
        TreeFractionDisplay.from_results(fractions, scores, seconds)


@pytest.mark.parametrize("orders", ["first", []])
def test_bad_orders(u, data, orders):
    parts = [array for name in ALL for array in data[name]]
    with pytest.raises(InvalidInputError, match="orders must be a list"):
        TreeFractionDisplay.from_estimator(u, *parts, orders=orders)
