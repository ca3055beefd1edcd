"""The estimator as the regressor of a forecasting library, which makes the lagged columns itself."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor

pd = pytest.importorskip("pandas")
recursive = pytest.importorskip("skforecast.recursive")

MODEL = GradientBoostingRegressor(n_estimators=30, random_state=0)
LAGS = 24


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    t = np.arange(600)
    dates = pd.date_range("2026-01-01", periods=len(t), freq="h")
    return pd.Series(np.sin(2 * np.pi * t / 24) + 0.1 * rng.normal(size=len(t)), index=dates, name="demand")


@pytest.fixture(scope="module")
def forecaster(series):
    u = IBUGRegressor(clone(MODEL), random_state=0)
    forecaster = recursive.ForecasterRecursive(u, lags=LAGS)
    forecaster.fit(series[:500])
    return forecaster


def test_forecasts_are_those_of_the_model(series, forecaster):
    plain = recursive.ForecasterRecursive(clone(MODEL), lags=LAGS)
    plain.fit(series[:500])
    pd.testing.assert_series_equal(forecaster.predict(steps=12), plain.predict(steps=12))


def test_intervals_of_the_next_hour_hold_its_truth(series, forecaster):
    X, y = forecaster.create_train_X_y(series)
    lower, upper = forecaster.estimator.predict_interval(X.to_numpy()[-100:], 0.9).T
    truths = y.to_numpy()[-100:]
    assert 0.8 <= np.mean((lower <= truths) & (truths <= upper)) <= 0.99


def test_backtesting_trains_clones_of_it(series):
    selection = pytest.importorskip("skforecast.model_selection")
    u = IBUGRegressor(clone(MODEL), spread="targets", k=10)
    folds = selection.TimeSeriesFold(steps=12, initial_train_size=560, refit=True)
    metric, predictions = selection.backtesting_forecaster(
        recursive.ForecasterRecursive(u, lags=LAGS),
        y=series,
        cv=folds,
        metric="mean_absolute_error",
        show_progress=False,
        n_jobs=1,
    )
    assert len(predictions) == 40
    assert metric["mean_absolute_error"].iloc[0] < 0.3
