"""Targets that have names must have those of the estimator, in its order."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import ibug
import ibug.report
from ibug import IBUGRegressor
from ibug._validation import check_target_names
from ibug.exceptions import InvalidInputError
from ibug.metrics import DistributionScorer, energy_score, evaluate
from ibug.plotting import JointDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
Y = pd.DataFrame({"price": 100 * X[:, 0], "days": X[:, 1]}) + rng.normal(size=(240, 2))
TRAIN, VALID, NEW = slice(0, 150), slice(150, 200), slice(200, 240)
SWAPPED, RENAMED = Y[["days", "price"]], Y.set_axis(["Price", "days"], axis=1)


def fit(y, y_val):
    model = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X[TRAIN], np.asarray(y)[TRAIN])
    return IBUGRegressor(model, prefit=True).fit(X[TRAIN], y[TRAIN], X_val=X[VALID], y_val=y_val[VALID])


@pytest.fixture(scope="module")
def u():
    return fit(Y, Y)


CALLS = {
    "evaluate": lambda u, y: evaluate(u, X[NEW], y),
    "recalibrate": lambda u, y: u.recalibrate(X[NEW], y),
    "update": lambda u, y: u.update(X[NEW], y),
    "score": lambda u, y: u.score(X[NEW], y),
    "scorer": lambda u, y: DistributionScorer(energy_score)(u, X[NEW], y),
    "report": lambda u, y: pytest.importorskip("plotly") and ibug.report.write(u, X[NEW], y, "never.html"),
    "display": lambda u, y: pytest.importorskip("matplotlib") and JointDisplay.from_estimator(u, X[NEW], y),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_names_are_compared(u, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ask = r"its columns are \['days', 'price'\].* \['price', 'days'\].*y\[\['price', 'days'\]\]"
    with pytest.raises(InvalidInputError, match=rf"in another order: {ask}"):
        CALLS[name](u, SWAPPED[NEW])
    with pytest.raises(InvalidInputError, match="under other names"):
        CALLS[name](u, RENAMED[NEW])
    assert not [*tmp_path.iterdir()]


def test_validation_rows_of_fit():
    with pytest.raises(InvalidInputError, match="y_val has the targets in another order"):
        fit(Y, SWAPPED)
    with pytest.raises(InvalidInputError, match="y_val has the targets under other names"):
        fit(Y, RENAMED)


def test_an_estimator_is_fitted_again_on_other_names(u):
    again = IBUGRegressor(u.estimator_, prefit=True, k=5, distribution="normal")
    for y in (Y, RENAMED):
        again.fit(X[TRAIN], y[TRAIN], X_val=X[VALID], y_val=y[VALID])
        assert again.target_names_ == list(y)


def test_files_keep_the_names(u, tmp_path):
    u.save(tmp_path / "u.ibug")
    with pytest.raises(InvalidInputError, match="in another order"):
        evaluate(ibug.load(tmp_path / "u.ibug"), X[NEW], SWAPPED[NEW])


def test_no_names_go_by_position(u):
    expected = evaluate(u, X[NEW], Y[NEW])
    for y in (Y[NEW].to_numpy(), Y[NEW].to_numpy().tolist(), pd.DataFrame(Y[NEW].to_numpy())):
        assert evaluate(u, X[NEW], y) == expected
    assert u.score(X[NEW], Y[NEW].to_numpy()) == u.score(X[NEW], Y[NEW]) > 0


def test_polars(u):
    polars = pytest.importorskip("polars")
    y = polars.DataFrame({name: Y[NEW][name].to_numpy() for name in Y})
    assert evaluate(u, X[NEW], y) == evaluate(u, X[NEW], Y[NEW])
    assert evaluate(u, X[NEW], polars.DataFrame(y.to_numpy())) == evaluate(u, X[NEW], y)  # column_0 is no name
    with pytest.raises(InvalidInputError, match="in another order"):
        evaluate(u, X[NEW], y[["days", "price"]])


@pytest.mark.parametrize(
    ("expected", "given", "refused"),
    [
        (None, ["b", "a"], False),  # one target
        (["a", "b"], ["a", "b"], False),
        (["a", "b"], ["a", "b", "c"], False),  # their number is told elsewhere
        (["target_0", "target_1"], ["b", "a"], False),  # fitted on an array
        (["a", "b"], ["target_0", "target_1"], False),
        (["0", "1"], ["a", "b"], False),  # fitted on a frame of an array
        (["a", "b"], [0, 1], False),
        (["0", "1"], [0, 1], False),
        (["0", "1"], [1, 0], True),
        (["a", "b"], [1, 0], True),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["a", "A"], True),
    ],
)
def test_which_names_count(expected, given, refused):
    y = pd.DataFrame(np.zeros((3, len(given))), columns=given)
    if refused:
        with pytest.raises(InvalidInputError, match="training targets are"):
            check_target_names(expected, y, "y")
    else:
        check_target_names(expected, y, "y")
