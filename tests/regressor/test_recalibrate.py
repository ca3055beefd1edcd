"""Newer rows choose and calibrate again; the model and the index stay."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError, OldRowsWarning
from ibug.metrics import coverage

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def moved():
    """A model, its training and validation rows, and later rows whose noise is four times as large."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1600, 3))
    noise = np.where(np.arange(1600) < 800, 0.3, 1.2)
    y = 4 * X[:, 0] + rng.normal(size=1600) * noise
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:500], y[:500])
    parts = [(X[a:b], y[a:b]) for a, b in ((0, 500), (500, 800), (800, 1200), (1200, 1600))]
    return model, *parts


def fitted(moved, **parameters):
    model, train, (X_val, y_val), *_ = moved
    return IBUGRegressor(model, prefit=True, random_state=0, **parameters).fit(*train, X_val=X_val, y_val=y_val)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"distribution": "laplace", "k": 30},
        {"conformal": "scale"},
        {"spread": "residuals", "distribution": "normal"},
    ],
    ids=["stack", "laplace", "conformal", "residuals"],
)
def test_coverage_comes_back_and_all_else_stays(moved, parameters):
    u = fitted(moved, **parameters)
    (X_new, y_new), (X, y) = moved[3:]
    before = coverage(y, u.predict_interval(X, 0.9))
    index, points, family = u.source_.index, u.predict(X), u.distribution_
    assert u.recalibrate(X_new, y_new) is u
    assert before < 0.5
    assert 0.85 < coverage(y, u.predict_interval(X, 0.9)) < 0.96
    assert u.source_.index is index
    assert u.distribution_ == family
    np.testing.assert_array_equal(u.predict(X), points)


def test_it_is_what_fit_learns_from_these_rows(moved):
    model, train, _, (X_new, y_new), (X, _) = moved
    u = fitted(moved).recalibrate(X_new, y_new)
    other = IBUGRegressor(model, prefit=True, random_state=0).fit(*train, X_val=X_new, y_val=y_new)
    np.testing.assert_array_equal(u.predict_quantiles(X), other.predict_quantiles(X))
    assert u.affinity_threshold_ == other.affinity_threshold_


def test_what_cannot_be_taken_changes_nothing(moved):
    u = fitted(moved)
    X, y = moved[3]
    rule = u.rule_
    with pytest.raises(ValueError, match="2 features"):
        u.recalibrate(X[:, :2], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        u.recalibrate(X, y[:-1])
    with pytest.raises(InvalidInputError, match="needs rows and their targets"):
        u.recalibrate(X, None)
    with pytest.raises(ValueError, match="NaN"):
        u.recalibrate(X, np.full(len(y), np.nan))
    assert u.rule_ is rule


@pytest.mark.parametrize("parameters", [{}, {"residuals": "none"}], ids=["residuals", "none"])
def test_old_rows_after_an_update_are_warned_of(moved, parameters, tmp_path):
    _, _, old, (X_new, y_new), (X, y) = moved
    u = fitted(moved, **parameters).update(X_new[:200], y_new[:200])
    u.save(tmp_path / "u.ibug")
    for one in (u, ibug.load(tmp_path / "u.ibug")):
        with pytest.warns(OldRowsWarning, match="Divide the new rows"):
            one.recalibrate(*old)
        assert coverage(y, one.predict_interval(X)) < 0.7
        one.recalibrate(X_new[200:], y_new[200:])  # no warning
        assert 0.83 < coverage(y, one.predict_interval(X)) < 0.97


def test_rows_like_the_latest_neighbours_are_not_warned_of():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(8300, 3))
    y = 4 * X[:, 0] + rng.normal(size=8300)
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X[:300], y[:300])
    u = IBUGRegressor(model, prefit=True, k=20, distribution="normal", spread="targets")
    u.set_params(calibrate=False).fit(X[:300], y[:300])
    for start in range(300, 8300, 400):  # warnings are errors
        u.update(X[start : start + 200], y[start : start + 200], keep=400)
        u.recalibrate(X[start + 200 : start + 400], y[start + 200 : start + 400])
