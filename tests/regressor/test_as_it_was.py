"""What later calls and failed ones leave behind: an estimator is as it was, or as it should be."""

import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

import ibug
from ibug import IBUGRegressor, ProbabilisticEnsemble, Sampling
from ibug.exceptions import InvalidInputError, NotCentralWarning
from ibug.explain import plain_neighbors
from ibug.online import AdaptiveIntervals

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def rows():
    X, y = make_friedman1(900, n_features=5, random_state=0)
    return X, y


def small(**parameters):
    return HistGradientBoostingRegressor(max_iter=15, random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y = rows
    return IBUGRegressor(small().fit(X[:400], y[:400]), prefit=True, random_state=0).fit(
        X[:400], y[:400], X_val=X[400:700], y_val=y[400:700]
    )


def test_a_fit_that_fails_changes_nothing(rows):
    X, y = pd.DataFrame(rows[0], columns=list("abcde")), rows[1]
    model = lgb.LGBMRegressor(n_estimators=10, verbose=-1).fit(X[:400], y[:400])
    u = IBUGRegressor(model, prefit=True).fit(X[:400], y[:400], X_val=X[400:700], y_val=y[400:700])
    before = u.predict_interval(X[700:])
    with pytest.raises(ValueError, match="NaN"):
        u.fit(X[list("badce")], np.full(len(y), np.nan))
    assert list(u.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(u.predict_interval(X[700:]), before)
    with pytest.raises(ValueError, match="feature names"):
        u.predict(X[list("badce")])
    new = IBUGRegressor(small())
    with pytest.raises(ValueError, match="NaN"):
        new.fit(X, np.full(len(y), np.nan))
    assert vars(new) == vars(IBUGRegressor(new.estimator))


def test_an_ensemble_whose_fit_fails_keeps_its_weights(rows, fitted):
    X, y = rows
    members = [("one", fitted), ("two", fitted)]
    ensemble = ProbabilisticEnsemble(members, prefit=True, weights=[9, 1], combine="mixture", calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        ensemble.set_params(weights=[1, 9]).fit(X, np.full(len(y), np.nan))
    np.testing.assert_allclose(ensemble.weights_, [0.9, 0.1])


@pytest.mark.parametrize("k", [1, 2.5, True, "foo", 0, 10**6])
def test_k_is_checked_when_rows_come_later(k, rows, fitted):
    X, y = rows
    u = IBUGRegressor(fitted.estimator, prefit=True, spread="targets", calibrate=False, k=5).fit(X[:400], y[:400])
    with pytest.raises(InvalidInputError, match="k, unless it is"):
        u.set_params(k=k).recalibrate(X[400:700], y[400:700])


def test_validation_targets_must_be_inside_the_support(rows):
    X, y = rows
    y = y - y.min()
    model = small().fit(X[:400], y[:400])
    outside = y[400:700].copy()
    outside[:3] = -1
    u = IBUGRegressor(model, prefit=True, support=(0, np.inf), conformal="scale")
    with pytest.raises(InvalidInputError, match="Some validation targets are outside the support"):
        u.fit(X[:400], y[:400], X_val=X[400:700], y_val=outside)
    u.fit(X[:400], y[:400], X_val=X[400:700], y_val=y[400:700])
    with pytest.raises(InvalidInputError, match="Some validation targets are outside the support"):
        u.recalibrate(X[400:700], outside)


def test_small_updates_keep_the_share_of_rows(rows):
    X, y = rows
    model = small().fit(X[:300], y[:300])
    u = IBUGRegressor(
        model, prefit=True, sampling=Sampling(row_fraction=0.1), k=5, calibrate=False, spread="targets", random_state=0
    )
    u.fit(X[:300], y[:300])
    assert u.source_.index.n_rows == 30
    for row in range(300, 400):
        u.update(X[[row]], y[[row]])
    assert u.source_.index.n_rows == 40
    assert len(u.training_targets_) == 400
    u.update(X[400:500], y[400:500], keep=200)
    assert u.source_.index.n_rows == pytest.approx(20, abs=10)
    numbers = u.source_.rows
    assert np.all(np.diff(numbers) > 0)
    assert numbers.max() < 200
    assert np.all(np.isfinite(u.predict_interval(X[500:])))


def test_an_update_that_leaves_too_few_neighbours_is_refused(rows):
    X, y = rows
    model = small().fit(X[:300], y[:300])
    messages = []
    for seed in range(12):
        u = IBUGRegressor(
            model, prefit=True, sampling=Sampling(row_fraction=0.5), k=50, calibrate=False, spread="targets"
        )
        u.set_params(random_state=seed).fit(X[:300], y[:300])
        try:
            u.update(X[300:310], y[300:310], keep=100)
        except InvalidInputError as error:
            messages.append(str(error))
            assert len(u.training_targets_) == 300
        assert np.all(u.predict_var(X[:3]) > 0)  # either way
    assert 0 < len(messages) < 12
    assert all("rows that can be neighbours" in message for message in messages)


def test_no_weight_among_the_rows_that_are_held_out(rows):
    X, y = rows[0][:60], rows[1][:60]
    weights = np.zeros(60)
    weights[:4] = 1
    messages = []
    for seed in range(8):
        try:
            IBUGRegressor(GradientBoostingRegressor(n_estimators=3), spread="targets", random_state=seed).fit(
                X, y, sample_weight=weights
            )
        except InvalidInputError as error:
            messages.append(str(error))
    assert messages
    assert all("has a weight above zero" in message for message in messages)


def test_the_guard_against_quantile_models_knows_several_targets(rows):
    X, y = rows
    Y = np.column_stack([y, X[:, 0] + y])
    model = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=10, loss="quantile", alpha=0.9))
    model.fit(X[:400], Y[:400])
    for weights in (None, [1, 2]):
        with pytest.warns(NotCentralWarning, match=r"0\.9 quantile"):
            IBUGRegressor(model, prefit=True, sampling=Sampling(output_weights=weights)).fit(
                X[:400], Y[:400], X_val=X[400:700], y_val=Y[400:700]
            )


def test_splits_that_number_other_rows(rows):
    X, y = rows
    folds = [(np.arange(450), np.arange(450, 900)), (np.arange(450, 900), np.arange(450))]
    with pytest.raises(InvalidInputError, match=r"row number 899.*refit=False"):
        IBUGRegressor(small(), cv=folds, refit=False, random_state=0).fit(X, y)


def test_targets_whose_squares_are_no_numbers(rows):
    X, y = rows
    with pytest.raises(InvalidInputError, match="power of ten"):
        IBUGRegressor(small()).fit(X, y * 1e-163)


def test_uncalibrated_has_no_threshold_of_another_k(fitted):
    plain = plain_neighbors(fitted)
    assert np.isnan(plain.affinity_threshold_) or plain.k_ == fitted.k_


def test_what_is_saved_here_loads_in_a_new_process(rows, fitted, tmp_path):
    X, y = rows
    ensemble = ProbabilisticEnsemble([("a", fitted)], prefit=True, combine="mixture", calibrate=False).fit(X, y)
    saved = {"regressor": fitted, "ensemble": ensemble, "adaptive": AdaptiveIntervals(fitted)}
    for name, one in saved.items():
        one.save(tmp_path / f"{name}.ibug")
    np.save(tmp_path / "rows.npy", X[:3])
    code = (
        "import sys, numpy as np, ibug; X = np.load('rows.npy')\n"
        "for name in sys.argv[1:]: np.save(name, ibug.load(name + '.ibug').predict_interval(X))"
    )
    subprocess.run([sys.executable, "-c", code, *saved], check=True, cwd=tmp_path)
    for name, one in saved.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), one.predict_interval(X[:3]))


def test_the_same_public_attributes_after_loading(fitted, tmp_path):
    fitted.save(tmp_path / "one.ibug")
    assert {name for name in vars(fitted) if name.endswith("_")} == {
        name for name in vars(ibug.load(tmp_path / "one.ibug")) if name.endswith("_")
    }
