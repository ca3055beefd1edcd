"""Whose residuals IBUGRegressor takes: which rows models are trained on, when, and what is refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor
from ibug.exceptions import InvalidInputError, UnsupportedModelError


class Counting(GradientBoostingRegressor):
    """Counts its trainings."""

    sizes: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None):
        self.sizes.append(len(y))
        return super().fit(X, y, sample_weight)


@pytest.fixture
def counting():
    Counting.sizes = []
    return Counting(n_estimators=20, random_state=0)


def test_without_validation_rows_it_is_tuned_on_out_of_fold_predictions(counting, diabetes):
    X, y = diabetes["train"]
    for spread in ("auto", "residuals"):
        Counting.sizes = []
        u = IBUGRegressor(counting, spread=spread, random_state=0).fit(X, y)
        assert Counting.sizes == [240] * 5 + [180, 300]
        assert len(u.source_.index) == 300
        np.testing.assert_array_equal(u.predict(X), clone(counting).fit(X, y).predict(X))
        expected = np.empty(300)
        folds = KFold(5, shuffle=True, random_state=np.random.RandomState(0).randint(2**31 - 1))
        for train, test in folds.split(X):
            expected[test] = y[test] - clone(counting).fit(X[train], y[train]).predict(X[test])
        np.testing.assert_array_equal(u.residuals_, expected)


def test_given_validation_rows_clones_give_residuals_of_the_training_rows(counting, diabetes):
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(counting, cv=3, random_state=0).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert Counting.sizes == [200] * 3 + [300]
    assert u.residuals_.shape == (300,)
    assert {"targets", "residuals", "combination"} == set(u.tuning_["spread"])


def test_without_refit_a_part_is_held_out(counting, diabetes):
    u = IBUGRegressor(counting, refit=False, random_state=0).fit(*diabetes["train"])
    assert Counting.sizes == [192] * 5 + [240]
    assert u.residuals_.shape == (240,)


def test_a_prefit_model_is_never_trained_unasked(counting, diabetes):
    X_val, y_val = diabetes["validation"]
    model = clone(counting).fit(*diabetes["train"])
    Counting.sizes = []
    for estimator, prefit in ((model, True), (FrozenEstimator(model), False)):
        for spread in ("targets", "residuals", "auto"):
            u = IBUGRegressor(estimator, prefit=prefit, spread=spread)
            u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
            assert np.isfinite(u.predict_var(diabetes["test"][0])).all()
    assert Counting.sizes == []


def test_cv_is_the_permission_to_train_clones_of_a_prefit_model(counting, diabetes):
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    model = clone(counting).fit(X, y)
    for estimator in (model, FrozenEstimator(model)):
        Counting.sizes = []
        u = IBUGRegressor(estimator, prefit=True, cv=4, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
        assert Counting.sizes == [225] * 4
        assert set(u.tuning_["spread"]) == {"targets", "residuals", "combination"}
        assert u.estimator_ is estimator
        # Without validation rows it is tuned on the out-of-fold predictions.
        Counting.sizes = []
        other = IBUGRegressor(estimator, prefit=True, cv=4, random_state=0).fit(X, y)
        assert Counting.sizes == [225] * 4 + [150]
        np.testing.assert_array_equal(other.residuals_, u.residuals_)
        np.testing.assert_array_equal(other.predict(X_val), model.predict(X_val))
    with_weights = IBUGRegressor(model, prefit=True, cv=4, random_state=0).fit(X, y, sample_weight=np.arange(300.0))
    assert not np.array_equal(with_weights.residuals_, u.residuals_)


def test_the_papers_rule_can_be_tuned_on_out_of_fold_predictions_too(counting, diabetes):
    u = IBUGRegressor(counting, spread="targets", cv=5, random_state=0).fit(*diabetes["train"])
    assert Counting.sizes == [240] * 5 + [180, 300]
    assert u.spread_ == "targets"


def test_nothing_to_tune_means_no_clones_unless_residuals_are_asked_for(counting, diabetes):
    u = IBUGRegressor(counting, k=20, calibrate=False).fit(*diabetes["train"])
    assert (Counting.sizes, u.spread_, u.residuals_) == ([300], "targets", None)
    Counting.sizes = []
    u = IBUGRegressor(counting, k=20, calibrate=False, spread="residuals", random_state=0).fit(*diabetes["train"])
    assert Counting.sizes == [240] * 5 + [300]
    rows = u.kneighbors(diabetes["test"][0])[1]
    expected = np.maximum((u.residuals_[rows] ** 2).mean(axis=1), u.rule_.min_variance)
    np.testing.assert_allclose(u.predict_var(diabetes["test"][0]), expected)


def test_residuals_of_a_fixed_partition(counting, diabetes):
    fold = np.arange(300) % 3
    u = IBUGRegressor(counting, cv=PredefinedSplit(fold), random_state=0).fit(*diabetes["train"])
    assert Counting.sizes == [200] * 3 + [100, 300]
    assert u.residuals_.shape == (300,)


def test_residuals_of_a_trained_model_need_unseen_rows_or_permission(model, sampled_model, diabetes):
    with pytest.raises(InvalidInputError, match=r"rows it has not seen; .*X_val=X_val.*cv=5.*spread=\"targets\""):
        IBUGRegressor(model, prefit=True, spread="residuals", k=5).fit(*diabetes["train"])
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(sampled_model, prefit=True, spread="residuals", k=100)
    with pytest.raises(InvalidInputError, match=r"80 of them are too few for k=100: at least 101 are needed"):
        u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)


def test_a_booster_can_use_validation_rows_only(diabetes):
    lightgbm = pytest.importorskip("lightgbm")
    X_val, y_val = diabetes["validation"]
    booster = lightgbm.train({"verbose": -1}, lightgbm.Dataset(*diabetes["train"]), 20)
    for spread in ("residuals", "auto"):
        u = IBUGRegressor(booster, prefit=True, spread=spread).fit(*diabetes["train"], X_val=X_val, y_val=y_val)
        assert np.all(u.predict_var(X_val) > 0)
    with pytest.raises(UnsupportedModelError, match="cv trains clones, and a Booster cannot be trained"):
        IBUGRegressor(booster, prefit=True, cv=5).fit(*diabetes["train"], X_val=X_val, y_val=y_val)


def test_a_frozen_step_would_give_residuals_in_sample(model, diabetes):
    with pytest.raises(InvalidInputError, match="holds a FrozenEstimator, whose clones are not trained anew"):
        IBUGRegressor(make_pipeline(StandardScaler(), FrozenEstimator(model))).fit(*diabetes["train"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"spread": "errors"}, r"spread must be one of \('auto', 'targets', 'residuals'\); got 'errors'"),
        ({"calibrate": "newton"}, r"calibrate must be True or False, or one of \['continuous', 'grid'\]"),
        ({"calibrate": ["grid"]}, r"got \['grid'\]"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": "five"}, "cv must be a number of folds"),
    ],
)
def test_impossible_parameters(counting, diabetes, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(counting, **parameters).fit(*diabetes["train"])
    assert Counting.sizes == []


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_clones_of_the_libraries_in_threads(library, n_jobs, diabetes):
    module = pytest.importorskip(library)
    estimator = {
        "lightgbm": lambda: module.LGBMRegressor(n_estimators=15, verbose=-1, n_jobs=1),
        "xgboost": lambda: module.XGBRegressor(n_estimators=15, n_jobs=1),
        "catboost": lambda: module.CatBoostRegressor(
            iterations=15, verbose=0, allow_writing_files=False, thread_count=1, random_seed=0
        ),
    }[library]()
    X, y = diabetes["train"]
    u = IBUGRegressor(estimator, n_jobs=n_jobs, random_state=0).fit(X, y)
    expected = np.empty(300)
    folds = KFold(5, shuffle=True, random_state=np.random.RandomState(0).randint(2**31 - 1))
    for train, test in folds.split(X):
        expected[test] = y[test] - clone(estimator).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_allclose(u.residuals_, expected, rtol=1e-5, atol=1e-4)
