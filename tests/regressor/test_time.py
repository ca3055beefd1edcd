"""Rows in the order of time: folds that only look back."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    t = np.arange(700)
    y = np.sin(t / 20) + 0.3 * rng.normal(size=700)
    return np.column_stack([np.roll(y, lag) for lag in (1, 2, 24)])[24:], y[24:]


MODEL = GradientBoostingRegressor(n_estimators=20, random_state=0)


@pytest.mark.parametrize("parameters", [{}, {"conformal": "scale"}, {"prefit": True}])
def test_tuned_on_the_rows_that_folds_predict(series, parameters):
    X, y = series
    model = clone(MODEL).fit(X[:500], y[:500]) if "prefit" in parameters else MODEL
    u = IBUGRegressor(model, cv=TimeSeriesSplit(5, gap=3), random_state=0, **parameters).fit(X[:500], y[:500])
    assert u.residuals_ is None
    assert "targets" in u.tuning_["spread"]
    lower, upper = u.predict_interval(X[500:], 0.9).T
    assert 0.8 < np.mean((lower <= y[500:]) & (y[500:] <= upper)) < 0.99


def test_residuals_alone_cannot_be_had(series):
    with pytest.raises(InvalidInputError, match="no fold of cv predicts"):
        IBUGRegressor(MODEL, cv=TimeSeriesSplit(3), spread="residuals").fit(*series)
