"""Conformal calibration inside IBUGRegressor."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor
from ibug.calibration import ScaleConformal
from ibug.exceptions import InvalidInputError
from ibug.metrics import coverage

pytestmark = pytest.mark.once


def heteroscedastic(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, X[:, 0] + (0.1 + X[:, 1]) * (rng.exponential(size=n) - 1)


@pytest.fixture(scope="module")
def trained():
    X, y = heteroscedastic(0, 500)
    return GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, y), X, y


@pytest.mark.slow
@pytest.mark.parametrize("conformal", ["scale", "distribution"])
def test_coverage_over_splits_of_the_validation_rows(trained, conformal):
    model, X, y = trained
    observed = {None: [], conformal: []}
    for seed in range(30):
        X_new, y_new = heteroscedastic(100 + seed, 500)
        for kind, shares in observed.items():
            paper = {"distribution": "normal", "spread": "targets", "k": 30}
            u = IBUGRegressor(model, prefit=True, **paper, conformal=kind, random_state=seed)
            u.fit(X, y, X_val=X_new[:240], y_val=y_new[:240])
            shares.append(coverage(y_new[240:], u.predict_interval(X_new[240:], 0.5)))
    error = np.std(observed[conformal]) / np.sqrt(30)
    assert 0.5 - 4 * error < np.mean(observed[conformal]) < 0.5 + 2 / 121 + 4 * error
    # without it, clearly off: the noise is skewed, and in the middle the normal distribution is too wide
    assert np.mean(observed[None]) > 0.5 + 4 * np.std(observed[None]) / np.sqrt(30)


@pytest.mark.parametrize(("n_val", "n_tuned", "n_scores"), [(240, 120, 120), (201, 100, 101), (199, 199, 199)])
def test_how_validation_rows_are_divided(trained, n_val, n_tuned, n_scores):
    model, X, y = trained
    X_val, y_val = heteroscedastic(1, n_val)
    seen = []

    def score(y, distribution):
        seen.append(y)
        return float(distribution.crps(y).mean())

    u = IBUGRegressor(model, prefit=True, conformal="scale", scoring=score, random_state=0)
    u.fit(X, y, X_val=X_val, y_val=y_val)
    assert {len(rows) for rows in seen} == {n_tuned}
    held_out = {tuple(x) for x in X_val} - {tuple(x) for x in X_val[np.isin(y_val, seen[0])]}
    assert len(held_out) == (n_scores if n_val >= 200 else 0)  # rows that tuned nothing
    assert len(u.conformal_.maps_[-1].scores) == n_scores


def test_everything_comes_from_the_calibrated_distribution(trained):
    model, X, y = trained
    X_val, y_val = heteroscedastic(1, 300)
    u = IBUGRegressor(model, prefit=True, conformal="distribution", random_state=0)
    u.fit(X, y, X_val=X_val, y_val=y_val)
    distribution = u.predict_dist(X[:20])
    np.testing.assert_array_equal(u.predict_var(X[:20]), distribution.var())
    np.testing.assert_array_equal(u.predict_interval(X[:20], 0.8), np.stack(distribution.interval(0.8), axis=1))
    np.testing.assert_array_equal(u.predict_quantiles(X[:20], [0.1, 0.6]), distribution.ppf([[0.1, 0.6]]))
    np.testing.assert_array_equal(u.predict(X[:20]), model.predict(X[:20]))


def test_a_calibrator_of_ones_own(trained):
    model, X, y = trained
    X_val, y_val = heteroscedastic(1, 400)
    own = ScaleConformal(n_bins=3)
    u = clone(IBUGRegressor(model, prefit=True, conformal=own, random_state=0))
    u.set_params(estimator=model).fit(X, y, X_val=X_val, y_val=y_val)
    assert len(u.conformal_.groups_) == 3
    assert not hasattr(own, "maps_")


def test_an_internal_split_serves_it_too():
    X, y = heteroscedastic(0, 600)
    parameters = {"k": 50, "calibrate": False, "conformal": "scale"}
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=20), spread="targets", **parameters).fit(X, y)
    assert len(u.conformal_.maps_[-1].scores) == 120  # a fifth of the rows; too few to be divided
    assert len(u.source_.index) == 600
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=20), **parameters).fit(X, y)
    assert len(u.conformal_.maps_[-1].scores) == 300  # half of the out-of-fold predictions of all rows
    assert len(u.source_.index) == 600


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["auto", "residuals"])
def test_coverage_with_out_of_fold_predictions(spread):
    shares = []
    for seed in range(10):
        X, y = heteroscedastic(seed, 900)
        u = IBUGRegressor(
            GradientBoostingRegressor(n_estimators=20), spread=spread, conformal="scale", random_state=seed
        ).fit(X[:500], y[:500])
        shares.append(coverage(y[500:], u.predict_interval(X[500:], 0.8)))
    assert np.mean(shares) == pytest.approx(0.8, abs=4 * np.std(shares) / np.sqrt(10) + 0.01)


def test_what_is_refused(trained):
    model, X, y = trained
    with pytest.raises(InvalidInputError, match=r"one of \['distribution', 'scale'\] or a ConformalCalibrator"):
        IBUGRegressor(model, prefit=True, conformal="split").fit(X, y)
    with pytest.raises(InvalidInputError, match="has not seen: pass X_val and y_val"):
        IBUGRegressor(model, prefit=True, k=5, conformal="scale").fit(X, y)
