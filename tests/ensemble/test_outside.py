"""Metrics and plots take every probabilistic regressor."""

import os

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble, plotting
from ibug.exceptions import InvalidInputError
from ibug.metrics import crps, crps_scorer, evaluate, interval_scorer, nll_scorer, rmse

os.environ["MPLBACKEND"] = "Agg"


def cbu():
    catboost = pytest.importorskip("catboost")
    options = {"iterations": 30, "learning_rate": 0.1, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return CBURegressor(catboost.CatBoostRegressor(**options), random_state=0)


def ensemble(combine):
    boosting = GradientBoostingRegressor(n_estimators=20, random_state=0)
    ibug = IBUGRegressor(boosting, distribution="normal")
    both = [("ibug", ibug), ("wide", IBUGRegressor(boosting, distribution="normal", scoring="nll"))]
    return ProbabilisticEnsemble(both, combine=combine, random_state=0)


@pytest.fixture(scope="module", params=["cbu", "average", "mixture"])
def u(request, diabetes):
    regressor = cbu() if request.param == "cbu" else ensemble(request.param)
    return regressor.fit(*diabetes["train"])


def test_scores(u, diabetes):
    X, y = diabetes["test"]
    scores = evaluate(u, X, y)
    assert scores["crps"] == crps(y, u.predict_dist(X))
    assert scores["rmse"] == rmse(y, u.predict(X))
    assert 0 < scores["crps_skill"] < 1
    assert all(np.isfinite(value) for value in scores.values())
    assert -crps_scorer(u, X, y) == scores["crps"]
    assert -nll_scorer(u, X, y) == scores["nll"]
    assert -interval_scorer(u, X, y) == pytest.approx(scores["interval_score"])


@pytest.mark.parametrize("name", ["Calibration", "PIT", "Interval", "SpreadError", "Density"])
def test_displays(u, diabetes, name, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    display = getattr(plotting, f"{name}Display").from_estimator(u, *diabetes["test"])
    display.figure_.savefig(tmp_path / "plot.png")
    if name == "Density":
        assert display.neighbors is None
        np.testing.assert_allclose(display.mean, u.predict_dist(diabetes["test"][0][:5]).mean())
    pyplot.close("all")


def test_displays_of_neighbours_say_what_is_missing(u, diabetes):
    pytest.importorskip("matplotlib.pyplot")
    with pytest.raises(InvalidInputError, match=f"this {type(u).__name__} has no kneighbors"):
        plotting.LeafDensityDisplay.from_estimator(u, diabetes["test"][0])
    with pytest.raises(InvalidInputError, match=f"this {type(u).__name__} has no tuning_"):
        plotting.TuningDisplay.from_estimator(u)
