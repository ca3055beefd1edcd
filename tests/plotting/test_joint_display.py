"""The scatter of two targets."""

from copy import copy

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError
from ibug.plotting import JointDisplay, PITDisplay, diagnose

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def several():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, X[:, 2], -y])
    X = np.delete(X, 2, axis=1)
    model = RandomForestRegressor(30, min_samples_leaf=5, random_state=0).fit(X[:250], Y[:250])
    return IBUGRegressor(model, prefit=True).fit(X[:250], Y[:250], X_val=X[250:400], y_val=Y[250:400]), X[400:], Y[400:]


def test_what_is_drawn(several):
    u, X, Y = several
    display = JointDisplay.from_estimator(u, X, Y, targets=(2, 0), n_samples=50)
    np.testing.assert_array_equal(display.samples, u.predict_dist(X[:1])[0].rvs(50, random_state=0)[:, [2, 0]])
    np.testing.assert_array_equal(display.points_.get_offsets(), display.samples)
    np.testing.assert_array_equal(display.box, u.predict_interval(X[:1], 0.9, joint=True)[0][[2, 0]])
    assert display.box_.get_bbox().x0 == display.box[0, 0]
    assert display.mark_.get_xydata().tolist() == [Y[0, [2, 0]].tolist()]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("target_2", "target_0")
    plain = JointDisplay.from_predictions(u.predict_dist(X), n_samples=5)
    assert plain.box_ is None
    assert plain.mark_ is None


def test_targets_by_name(several):
    u, X, Y = several
    by_number = JointDisplay.from_estimator(u, X, Y, targets=(2, 0), n_samples=5)
    named = copy(u)
    named.target_names_ = ["a", "b", "c"]
    for targets in (("c", "a"), ["c", 0]):
        display = JointDisplay.from_estimator(named, X, Y, targets=targets, n_samples=5)
        np.testing.assert_array_equal(display.samples, by_number.samples)
        assert display.names == ("c", "a")
    for wrong in (("a", "d"), ("a", "a"), ("a", 0), "ab", 1, ("a",), (0, 1, "d"), (True, 2), (0, 1.0)):
        with pytest.raises(
            InvalidInputError, match=r"two different numbers from 0 to 2, or two names of \['a', 'b', 'c'"
        ):
            JointDisplay.from_estimator(named, X, targets=wrong)


def test_displays_of_one_target_say_what_to_do(several):
    u, X, Y = several
    for draw in (diagnose, PITDisplay.from_estimator):
        with pytest.raises(InvalidInputError, match=r"one target.*d\.marginal\(j\).*JointDisplay"):
            draw(u, X, Y)


def test_what_is_refused(several, u, data):
    fitted, X, _ = several
    with pytest.raises(InvalidInputError, match="two different numbers from 0 to 2"):
        JointDisplay.from_estimator(fitted, X, targets=(0, 3))
    with pytest.raises(InvalidInputError, match="fitted on several"):
        JointDisplay.from_estimator(u, data["test"][0])
    with pytest.raises(InvalidInputError, match="JointStack is expected"):
        JointDisplay.from_predictions(u.predict_dist(data["test"][0]))
