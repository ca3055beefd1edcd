"""The score of each k."""

import numpy as np
import pytest
from sklearn.base import clone

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError
from ibug.plotting import TuningDisplay

pytestmark = pytest.mark.once

pytest.importorskip("matplotlib")


def test_the_curve_is_tuning_(normal, data):
    X_val, y_val = data["validation"]
    u = clone(normal).set_params(estimator=normal.estimator_, spread="targets")
    u.fit(*data["train"], X_val=X_val, y_val=y_val)
    display = TuningDisplay.from_estimator(u, unit="points")
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xdata(), u.tuning_["k"])
    np.testing.assert_array_equal(line.get_ydata(), u.tuning_["score"])
    assert line.get_label() == "validation score"
    assert display.best_k == u.k_
    assert display.best_.get_xydata()[0].tolist() == [u.k_, u.tuning_["score"].min()]
    assert display.above_ is None
    assert display.ax_.get_ylabel() == "CRPS (points), lower is better"


def test_a_line_for_each_spread(normal):
    u = normal
    display = TuningDisplay.from_estimator(u)
    assert set(display.curves) == {"normal, targets", "normal, combination"}
    assert display.best_.get_label() == f"chosen: normal, {u.spread_}, k = {u.k_}"
    chosen = (u.tuning_["spread"] == u.spread_) & (u.tuning_["k"] == u.k_)
    assert display.best_.get_xydata()[0].tolist() == [u.k_, u.tuning_["score"][chosen][0]]


def test_the_stack_is_a_point_of_its_own(u):
    display = TuningDisplay.from_estimator(u)
    assert set(display.curves) == {"normal, targets", "normal, combination", "stack"}
    assert display.best_.get_label() == "chosen: stack, of up to 63 neighbours"
    assert display.best_.get_xydata().tolist() == [[63, u.tuning_["score"][-1]]]


def test_results_without_a_choice_take_the_lowest():
    display = TuningDisplay.from_results({"k": [9, 3, 5], "score": [1.0, np.nan, 2.0]}, scoring="nll")
    assert display.lines_[0].get_xdata().tolist() == [3, 5, 9]
    assert display.best_k == 9
    assert display.ax_.get_ylabel() == "NLL, lower is better"


def test_an_astronomical_score_does_not_hide_the_others():
    score = np.array([1e13, np.inf, 1.2, 1.1, 1.0, 1.1, 1.2])
    display = TuningDisplay.from_results({"k": [3, 5, 7, 9, 11, 15, 31], "score": score})
    assert display.ax_.get_ylim()[1] < 3
    assert display.above_.get_xdata().tolist() == [3]
    assert "1e+13" in display.above_.get_label()
    assert np.isnan(display.lines_[0].get_ydata()[:2]).all()


def test_a_line_for_each_family():
    tuning = {
        "distribution": ["normal", "normal", "laplace", "laplace", "weibull", "lognormal", "lognormal"],
        "k": [3, 9, 3, 9, 0, 3, 9],  # weibull was refused, lognormal never scored
        "score": [2.0, 1.5, 1.0, 1.2, np.nan, np.inf, np.nan],
    }
    display = TuningDisplay.from_results(tuning)
    assert [line.get_label() for line in display.lines_] == ["normal", "laplace"]
    assert display.lines_[1].get_ydata().tolist() == [1.0, 1.2]
    assert (display.best_family, display.best_k) == ("laplace", 3)
    assert display.best_.get_label() == "chosen: laplace, k = 3"
    # Where another k was chosen, the best family there.
    assert TuningDisplay.from_results(tuning, best_k=9).best_.get_xydata().tolist() == [[9, 1.2]]
    assert TuningDisplay.from_results(tuning, best_k=7).best_ is None


def test_six_families_have_different_lines():
    names = [f"family {i}" for i in range(6)]
    display = TuningDisplay.from_results({"distribution": names, "k": [3] * 6, "score": range(6)})
    assert len({(line.get_color(), line.get_marker()) for line in display.lines_}) == 6
    assert [line.get_label() for line in display.lines_] == names


def test_of_many_families_the_best_and_the_chosen_have_names():
    names = np.repeat([f"family {i}" for i in range(21)], 2)
    tuning = {"distribution": names, "k": [3, 9] * 21, "score": np.arange(42)[::-1]}
    display = TuningDisplay.from_results(tuning, best_family="family 2", best_k=9)
    assert len(display.lines_) == 21
    _, labels = display.ax_.get_legend_handles_labels()
    expected = ["family 20", "family 19", "family 18", "family 17", "family 16", "family 2"]
    assert labels == [*expected, "15 others", "chosen: family 2, k = 9"]
    assert len({line.get_color() for line in display.lines_[6:]}) == 1


def test_after_tune_the_legend_leaves_most_of_the_figure_to_the_curves(u, data):
    X_val, y_val = data["validation"]
    tuned = IBUGRegressor(u.estimator_, prefit=True, distribution="tune").fit(*data["train"], X_val=X_val, y_val=y_val)
    display = TuningDisplay.from_estimator(tuned)
    assert len(display.curves) > 10
    display.figure_.canvas.draw()
    assert display.ax_.get_position().height > 0.6


def test_equal_scores_are_all_drawn():
    display = TuningDisplay.from_results({"k": [3, 5], "score": [1.0, 1.0]})
    assert display.above_ is None
    assert display.best_k == 3


def test_the_name_of_the_users_own_score():
    def median_error(y, distribution):
        return 0.0

    display = TuningDisplay.from_results({"k": [3], "score": [1.0]}, scoring=median_error)
    assert display.ax_.get_ylabel().startswith("median_error")


def test_k_that_was_not_tuned(u, data):
    fixed = IBUGRegressor(u.estimator_, prefit=True, k=5, calibrate=False).fit(*data["train"])
    with pytest.raises(InvalidInputError, match="k=5 was given, not tuned"):
        TuningDisplay.from_estimator(fixed)


@pytest.mark.parametrize(
    ("tuning", "message"),
    [
        ({"k": [3]}, '"k" and "score"'),
        ({"k": [], "score": []}, "k must have shape"),
        ({"k": [3, 5], "score": [1.0]}, "must have shape"),
        ({"k": [3], "score": [np.nan]}, "no finite score"),
        ({"k": [0], "score": [1.0]}, "no finite score"),
        ({"k": [3], "score": [1.0], "distribution": []}, "must have shape"),
    ],
)
def test_bad_results(tuning, message):
    with pytest.raises(InvalidInputError, match=message):
        TuningDisplay.from_results(tuning)
