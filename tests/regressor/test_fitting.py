"""The ways to fit, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import CBURegressor, IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError, ModelNotFittedError, NotCalibratedWarning, UnsupportedModelError


class Recorder(GradientBoostingRegressor):
    """Remembers what each fit was given."""

    calls: list = []  # noqa: RUF012 - shared by clones on purpose

    def fit(self, X, y, sample_weight=None, **others):
        self.calls.append({"X": X, "y": y, "sample_weight": sample_weight, **others})
        return super().fit(X, y, sample_weight)


@pytest.fixture
def recorder():
    Recorder.calls = []
    return Recorder(n_estimators=10, random_state=0)


def test_split_tune_refit(recorder, diabetes):
    X, y = diabetes["train"]
    weight = np.arange(300.0) + 1
    u = IBUGRegressor(recorder, spread="targets", random_state=0).fit(X, y, sample_weight=weight, note="hello")
    part, everything = recorder.calls
    assert len(part["y"]) == 240
    assert len(everything["y"]) == 300
    # each row keeps its own target and weight
    where = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in part["X"]]
    np.testing.assert_array_equal(part["y"], y[where])
    np.testing.assert_array_equal(part["sample_weight"], weight[where])
    np.testing.assert_array_equal(everything["sample_weight"], weight)
    assert part["note"] == everything["note"] == "hello"
    assert len(u.source_.index) == 300
    assert u.kneighbors(X, 300)[1].max() == 299
    np.testing.assert_array_equal(u.predict(X), clone(recorder).fit(X, y, weight).predict(X))


def test_without_refit_the_held_out_rows_stay_out(recorder, diabetes):
    u = IBUGRegressor(recorder, spread="targets", refit=False, cv=0.5, random_state=0)
    u.fit(*diabetes["train"])
    assert len(recorder.calls) == 1
    assert len(u.source_.index) == 150


def test_a_share_is_held_out_in_place_of_folds(recorder, diabetes):
    IBUGRegressor(recorder, cv=0.25, random_state=0).fit(*diabetes["train"])
    assert [len(call["y"]) for call in recorder.calls] == [225, 300]  # no clones for residuals


def test_given_validation_rows_the_estimator_trains_on_all_of_x(recorder, diabetes):
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(recorder, spread="targets").fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert [len(call["y"]) for call in recorder.calls] == [300]
    assert len(u.source_.index) == 300


def test_nothing_is_held_out_where_nothing_is_tuned(recorder, diabetes):
    u = IBUGRegressor(recorder, k=20, distribution="normal", calibrate=False).fit(*diabetes["train"])
    assert [len(call["y"]) for call in recorder.calls] == [300]
    assert u.k_ == 20
    assert {name: len(column) for name, column in u.tuning_.items()} == dict.fromkeys(
        ("spread", "distribution", "k", "score", "calibrated", "reason"), 0
    )


def test_a_fixed_k_is_calibrated(diabetes):
    model, options = (
        GradientBoostingRegressor(n_estimators=30, random_state=0),
        {"k": 50, "spread": "targets", "random_state": 0},
    )
    u = IBUGRegressor(model, distribution="normal", **options)
    u.fit(*diabetes["train"])
    assert u.k_ == 50
    assert u.tuning_["k"].tolist() == [50]
    assert (u.rule_.gamma, u.rule_.delta) != (1.0, 0.0)


def test_the_estimator_is_not_touched(diabetes):
    estimator = GradientBoostingRegressor(n_estimators=5)
    IBUGRegressor(estimator).fit(*diabetes["train"])
    assert not hasattr(estimator, "estimators_")


def test_the_default_estimator(diabetes):
    u = IBUGRegressor(random_state=0).fit(*diabetes["train"])
    assert isinstance(u.estimator_, HistGradientBoostingRegressor)
    assert u.predict_interval(diabetes["test"][0]).shape == (62, 2)


def test_the_same_seed_gives_the_same_result(diabetes):
    X, _ = diabetes["test"]
    one, other = (
        IBUGRegressor(
            sampling=Sampling(tree_order="random", tree_fraction=0.5, row_fraction=0.7),
            k=15,
            random_state=seed,
            calibrate=False,
        )
        .fit(*diabetes["train"])
        .predict_var(X)
        for seed in (3, np.random.RandomState(3))
    )
    np.testing.assert_array_equal(one, other)


def test_frozen_counts_as_prefit(model, diabetes):
    u = IBUGRegressor(FrozenEstimator(model), k=9, calibrate=False).fit(*diabetes["train"])
    np.testing.assert_array_equal(u.predict(diabetes["test"][0]), model.predict(diabetes["test"][0]))


def test_sample_weight_reaches_the_last_step_of_a_pipeline(recorder, diabetes):
    X, y = diabetes["train"]
    IBUGRegressor(make_pipeline(StandardScaler(), recorder)).fit(X, y, sample_weight=np.full(300, 2.0))
    assert [np.unique(call["sample_weight"]).tolist() for call in recorder.calls] == [[2.0]] * 7  # six clones, too


def test_own_score_chooses_k(model, diabetes):
    X_val, y_val = diabetes["validation"]
    paper = {"distribution": "normal", "calibrate": False}
    u = IBUGRegressor(model, prefit=True, **paper, scoring=lambda y, distribution: -distribution.std().mean())
    u.fit(*diabetes["train"], X_val=X_val, y_val=y_val)
    assert np.nanargmin(u.tuning_["score"]) == u.tuning_["k"].tolist().index(u.k_)
    assert u.k_ == 201  # the widest


def test_floor_without_validation_rows(model, diabetes):
    X, y = diabetes["train"]
    u = IBUGRegressor(model, prefit=True, k=3, calibrate=False).fit(X, y)
    variance = y[u.kneighbors(X)[1]].var(axis=1)
    assert u.rule_.min_variance == pytest.approx(variance[variance > 0].min())


def test_prefit_without_validation_rows_tells_the_two_ways_out(model, diabetes):
    with pytest.raises(InvalidInputError, match=r"X_val=X_val, y_val=y_val.*k=100"):
        IBUGRegressor(model, prefit=True).fit(*diabetes["train"])
    with pytest.warns(NotCalibratedWarning, match="not calibrated"):
        IBUGRegressor(model, prefit=True, k=5).fit(*diabetes["train"])


def test_prefit_refuses_fit_parameters(model, diabetes):
    with pytest.raises(InvalidInputError, match=r"\['sample_weight'\] would have no effect"):
        IBUGRegressor(model, prefit=True, k=5).fit(*diabetes["train"], sample_weight=np.ones(300))


def test_prefit_that_is_not_fitted(diabetes):
    with pytest.raises(ModelNotFittedError, match="GradientBoostingRegressor is not fitted"):
        IBUGRegressor(GradientBoostingRegressor(), prefit=True, k=5, calibrate=False).fit(*diabetes["train"])


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        RandomForestClassifier(),
        "lightgbm",
        make_pipeline(None),
        GridSearchCV(LinearRegression(), {}),
    ],
)
def test_unsupported_estimators_fail_before_training(estimator, diabetes):
    with pytest.raises(UnsupportedModelError, match="Supported are LightGBM"):
        IBUGRegressor(estimator).fit(*diabetes["train"])


@pytest.mark.parametrize("k", [0, 1, -3, 301, 2.0, "auto", None, True])
@pytest.mark.parametrize("prefit", [True, False])
def test_impossible_k(recorder, model, diabetes, k, prefit):
    u = IBUGRegressor(model if prefit else recorder, prefit=prefit, k=k, calibrate=False)
    with pytest.raises(
        InvalidInputError, match=r'k, unless it is "tune", must be an integer from 2 to the 300 training'
    ):
        u.fit(*diabetes["train"])
    assert recorder.calls == []  # before anything is trained


def test_a_k_that_only_all_rows_can_supply(diabetes):
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=5), k=290, random_state=0).fit(*diabetes["train"])
    assert u.k_ == 290
    assert u.kneighbors(diabetes["test"][0])[1].shape == (62, 290)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scoring": "rmse"}, r"scoring must be one of \['crps', 'nll'\]"),
        ({"sampling": {"tree_fraction": 0.5}}, "sampling must be None or an ibug.Sampling"),
        ({"cv": 1.0}, "cv must be the share of the rows that is held out, a number between 0 and 1"),
        ({"cv": 20.0}, "cv must be the share"),
        ({"calibrate": "no"}, "calibrate must be True or False, or one of .*; got 'no'"),
        ({"prefit": 1}, "prefit must be True or False"),
        ({"conformal": "split"}, "conformal must be None"),
    ],
)
def test_impossible_parameters(recorder, diabetes, parameters, message):
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(recorder, **parameters).fit(*diabetes["train"])
    assert recorder.calls == []  # before anything is trained


@pytest.mark.parametrize("columns", [[2, 1, 0], [0, 1]])
def test_columns_that_the_trained_model_does_not_know(diabetes, columns):
    pd, lightgbm = pytest.importorskip("pandas"), pytest.importorskip("lightgbm")
    X, y = diabetes["train"]
    frame = pd.DataFrame(X[:, :3], columns=["a b", "b", "c"])  # LightGBM writes "a b" as "a_b"
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(frame, y)
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False)
    assert u.fit(frame, y).predict_var(frame).shape == (300,)
    with pytest.raises(InvalidInputError, match=r"trained on these columns .* It expects \['a_b', 'b', 'c'\]"):
        u.fit(frame.iloc[:, columns], y)


def test_a_catboost_that_scikit_learn_cannot_clone(diabetes):
    catboost, pd = pytest.importorskip("catboost"), pytest.importorskip("pandas")
    X, y = diabetes["train"]
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(c=np.where(X[:, 2] > 0, "u", "v"))
    estimator = catboost.CatBoostRegressor(iterations=5, cat_features=["c"], verbose=0, allow_writing_files=False)
    u = IBUGRegressor(estimator, random_state=0).fit(frame, y)
    assert not estimator.is_fitted()
    np.testing.assert_allclose(u.predict(frame), estimator.copy().fit(frame, y).predict(frame))


def test_a_booster_cannot_be_trained(diabetes):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.train({"verbose": -1}, lightgbm.Dataset(*diabetes["train"]), 2)
    with pytest.raises(UnsupportedModelError, match="If it is trained already, set prefit=True"):
        IBUGRegressor(booster).fit(*diabetes["train"])


def test_a_copy_of_a_prefit_model_is_told_what_happened(model, diabetes):
    u = clone(IBUGRegressor(model, prefit=True, k=5, calibrate=False))
    with pytest.raises(ModelNotFittedError, match=r"clone, cross-validation\), wrap it in a FrozenEstimator"):
        u.fit(*diabetes["train"])
    frozen = clone(IBUGRegressor(FrozenEstimator(model), k=5, calibrate=False))
    assert frozen.fit(*diabetes["train"]).k_ == 5


def test_columns_of_the_same_name_are_refused(model, diabetes):
    (X, y), (X_val, y_val) = diabetes["train"], diabetes["validation"]
    names = list("abcdefghaa")
    table = pa.Table.from_arrays([pa.array(column) for column in X.T], names)
    for given in (pd.DataFrame(X, columns=names), table):
        for u in (IBUGRegressor(model, prefit=True), IBUGRegressor(), CBURegressor()):
            with pytest.raises(InvalidInputError, match=r"X has several columns of the same name, \['a'\]: rename"):
                u.fit(given, y)
    u = IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(InvalidInputError, match="several columns of the same name"):
        u.predict_interval(pd.DataFrame(X, columns=names))
    with pytest.raises(InvalidInputError, match="y has several columns of the same name"):
        IBUGRegressor().fit(X, pd.DataFrame({"a": y, "b": y}).set_axis(["a", "a"], axis=1))


def test_bad_targets(model, diabetes):
    X, y = diabetes["train"]
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        u.fit(X, np.where(np.arange(300) == 7, np.nan, y))
    with pytest.raises(ValueError, match="Input y contains infinity"):
        u.fit(X, np.where(np.arange(300) == 7, np.inf, y))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[300, 299\]"):
        u.fit(X, y[:-1])
    with pytest.raises(InvalidInputError, match="y has 2 targets, and a GradientBoostingRegressor is for one"):
        u.fit(X, np.stack([y, y], axis=1))
    with pytest.raises(InvalidInputError, match="the target y is None"):
        u.fit(X, None)
    with pytest.raises(InvalidInputError, match="y must be numbers; got dates"):
        u.fit(X, np.arange(300).astype("datetime64[s]"))
    with pytest.raises(ValueError, match="could not convert string to float"):
        u.fit(X, np.array(["a"] * 300))


def test_bad_validation_rows(model, diabetes):
    X, y = diabetes["train"]
    X_val, y_val = diabetes["validation"]
    u = IBUGRegressor(model, prefit=True)
    with pytest.raises(InvalidInputError, match="y_val is missing"):
        u.fit(X, y, X_val=X_val)
    with pytest.raises(InvalidInputError, match="X_val is missing"):
        u.fit(X, y, y_val=y_val)
    with pytest.raises(ValueError, match="Input y_val contains NaN"):
        u.fit(X, y, X_val=X_val, y_val=y_val * np.nan)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        u.fit(X, y, X_val=X_val, y_val=y_val[1:])
    with pytest.raises(ValueError, match="X has 9 features, but IBUGRegressor is expecting 10"):
        u.fit(X, y, X_val=X_val[:, 1:], y_val=y_val)


def test_too_few_rows():
    with pytest.raises(InvalidInputError, match="n_samples=2: at least 3 rows"):
        IBUGRegressor().fit([[1.0], [2.0]], [1.0, 2.0])


def test_three_rows_are_enough():
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=2), random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 2, 4])
    assert np.all(u.predict_dist([[1.5]]).std() > 0)


def test_a_class_instead_of_a_model(diabetes):
    with pytest.raises(UnsupportedModelError, match=r"it is a class; write ExtraTreesRegressor\(\) for a model"):
        IBUGRegressor(ExtraTreesRegressor).fit(*diabetes["train"])


def test_tuning_does_not_depend_on_the_unit(diabetes):
    X, y = diabetes["train"]

    def tuned_k(unit):
        same_trees = TransformedTargetRegressor(
            GradientBoostingRegressor(n_estimators=30, random_state=0),
            func=lambda t: t / unit,
            inverse_func=lambda t: t * unit,
        )
        return IBUGRegressor(same_trees, calibrate=False, random_state=0).fit(X, unit * y).k_

    assert tuned_k(1.0) == tuned_k(2.0**-40) == tuned_k(2.0**40) > 3


def test_bad_rows_to_predict(model, diabetes):
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False)
    with pytest.raises(NotFittedError):
        u.predict(diabetes["test"][0])
    u.fit(*diabetes["train"])
    with pytest.raises(ValueError, match="X has 3 features, but IBUGRegressor is expecting 10"):
        u.predict_dist(diabetes["test"][0][:, :3])
    with pytest.raises(InvalidInputError, match="Reshape your data"):
        u.predict_dist(diabetes["test"][0][0])
    with pytest.raises(InvalidInputError, match="at least one row"):
        u.predict_dist(diabetes["test"][0][:0])
    with pytest.raises(InvalidInputError, match="a list of rows; got object"):
        u.predict_dist(object())


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_dist", "predict_interval", "predict_quantiles", "predict_var", "kneighbors",
     "predict_with_neighbors", "affinity_score"],
)  # fmt: skip
def test_every_method_says_that_it_is_not_fitted(diabetes, method):
    with pytest.raises(NotFittedError):
        getattr(IBUGRegressor(), method)(diabetes["test"][0])


@pytest.mark.parametrize("attribute", ["k_", "tuning_", "training_targets_", "estimator_"])
def test_attributes_of_an_unfitted_one_are_absent(attribute):
    assert not hasattr(IBUGRegressor(), attribute)
    with pytest.raises(NotFittedError, match="call fit"):
        getattr(IBUGRegressor(), attribute)


def test_views_cannot_be_set(model, diabetes):
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(*diabetes["train"])
    with pytest.raises(AttributeError):
        u.k_ = 7
    with pytest.raises(TypeError):
        u.rule_.needs["targets"] = 7


def test_variances_alone_need_no_prediction(diabetes, monkeypatch):
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(*diabetes["train"])
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False, distribution="normal").fit(*diabetes["train"])
    expected = u.predict_dist(diabetes["test"][0]).var()
    monkeypatch.setattr(type(u.source_.leaves.reader), "predict", lambda *_: pytest.fail("predicted"))
    np.testing.assert_allclose(u.predict_var(diabetes["test"][0]), expected, rtol=1e-12)


def test_progress_is_shown_when_asked_for(model, diabetes, capsys):
    IBUGRegressor(model, prefit=True, k=5, calibrate=False, verbose=1).fit(*diabetes["train"])
    assert "indexing training rows: done" in capsys.readouterr().err
    IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(*diabetes["train"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("size", [1e300, 1e200, -1e160])
def test_targets_that_are_too_large_are_named(size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    y[17] = size
    with pytest.raises(InvalidInputError, match=r"y has the target -?1e\+\d+ in row 17, .*power of ten"):
        IBUGRegressor(HistGradientBoostingRegressor(max_iter=3)).fit(X, y)
    y = np.full(60, size) * rng.uniform(0.5, 1, 60)
    with pytest.raises(InvalidInputError, match="y has the target"):
        IBUGRegressor(HistGradientBoostingRegressor(max_iter=3)).fit(X, y)
