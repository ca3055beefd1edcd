"""What widens and what narrows, and what drives the spread."""

import numpy as np
import pytest

from ibug.exceptions import InvalidInputError
from ibug.explain import explain_width

pytest.importorskip("matplotlib")
from ibug.plotting import DriversDisplay, WidthDisplay

pytestmark = pytest.mark.once

VALUES = np.array([0.02, -0.4, 0.7, 0.01, 0.0])


def display(**options):
    names, shown = list("abcde"), ["1", "2", "red", "missing", "5"]
    return WidthDisplay(names, shown, VALUES, np.log(3.0)).plot(**options)


def test_bars_are_the_largest_effects_and_the_rest():
    drawn = display(n_features=2)
    assert [label.get_text() for label in drawn.ax_.get_yticklabels()] == ["c = red", "b = 2", "3 other features"]
    widens, narrows = drawn.bars_
    assert [bar.get_width() for bar in widens] == pytest.approx([0.7, 0.03])
    assert [bar.get_width() for bar in narrows] == pytest.approx([-0.4])
    assert [text.get_text() for text in drawn.texts_] == ["× 2.01", "× 0.67", "× 1.03"]
    assert drawn.ax_.get_xlabel() == "Factor of σ: typical 3.00, of this row 4.17"


def test_of_an_estimator(u, data):
    pytest.importorskip("shap", exc_type=ImportError)
    X, X_train = data["test"][0], data["train"][0]
    options = {"n_background": 8, "n_evaluations": 21}
    drawn = WidthDisplay.from_estimator(u, X, X_train, row=3, **options)
    std = u.predict_dist(X[3:4]).std()[0]
    assert np.exp(drawn.base + drawn.values.sum()) == pytest.approx(std)
    assert drawn.shown[0] == f"{X[3, 0]:.4g}"
    again = WidthDisplay.from_results(explain_width(u, X[:5], X_train, **options), row=3)
    np.testing.assert_array_equal(again.values, drawn.values)
    with pytest.raises(InvalidInputError, match="row must be a number from 0 to 71"):
        WidthDisplay.from_estimator(u, X, X_train, row=72)


def test_drivers_of_an_estimator(u, data):
    pytest.importorskip("shap", exc_type=ImportError)
    drawn = DriversDisplay.from_estimator(
        u, data["test"][0][:3], data["train"][0], n_background=5, n_evaluations=21, n_features=4
    )
    spread, prediction = drawn.bars_
    assert len(spread) == len(prediction) == 4
    assert drawn.spread.sum() == pytest.approx(1.0)
    widths = [bar.get_width() for bar in spread]
    assert widths == sorted(widths, reverse=True)
