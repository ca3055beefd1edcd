"""What is loaded predicts what was saved, bit for bit, for every supported model."""

import pickle
import re
import warnings

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ibug
from ibug import IBUGRegressor, Sampling
from ibug.training import fresh
from tests.persistence.same import assert_same

LIGHTGBM = lightgbm.LGBMRegressor(n_estimators=8, num_leaves=6, verbose=-1, n_jobs=1)
XGBOOST = xgboost.XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1)
CATBOOST = catboost.CatBoostRegressor(n_estimators=8, depth=3, verbose=0, allow_writing_files=False, thread_count=1)
GRADIENT = GradientBoostingRegressor(n_estimators=8, random_state=0)
HISTOGRAM = HistGradientBoostingRegressor(max_iter=8, random_state=0)
ONE_HOT = ColumnTransformer([("letter", OneHotEncoder(), ["letter"])], remainder="passthrough")

ESTIMATORS = {
    "default": (None, "numbers"),
    "lightgbm": (LIGHTGBM, "array"),
    "lightgbm, names": (LIGHTGBM, "numbers"),
    "lightgbm, categories": (LIGHTGBM, "categories"),
    "lightgbm, dart": (clone(LIGHTGBM).set_params(boosting_type="dart"), "numbers"),
    "lightgbm, linear": (clone(LIGHTGBM).set_params(linear_tree=True), "numbers"),
    "lightgbm, gamma": (clone(LIGHTGBM).set_params(objective="gamma"), "numbers"),
    "xgboost": (XGBOOST, "array"),
    "xgboost, names": (XGBOOST, "numbers"),
    "xgboost, categories": (clone(XGBOOST).set_params(enable_categorical=True), "categories"),
    "xgboost, dart": (clone(XGBOOST).set_params(booster="dart", rate_drop=0.2), "numbers"),
    "xgboost, forest": (xgboost.XGBRFRegressor(n_estimators=8, max_depth=3, n_jobs=1), "numbers"),
    "xgboost, missing": (clone(XGBOOST).set_params(missing=-1.0), "numbers"),
    "catboost": (CATBOOST, "array"),
    "catboost, names": (CATBOOST, "numbers"),
    "catboost, categories": (CATBOOST.copy().set_params(cat_features=["letter"]), "categories"),
    "catboost, poisson": (CATBOOST.copy().set_params(loss_function="Poisson"), "numbers"),
    "catboost, lossguide": (CATBOOST.copy().set_params(grow_policy="Lossguide"), "numbers"),
    "gradient boosting": (GRADIENT, "numbers"),
    "gradient boosting, huber": (clone(GRADIENT).set_params(loss="huber"), "array"),
    "histogram": (HISTOGRAM, "array"),
    "histogram, gamma": (clone(HISTOGRAM).set_params(loss="gamma"), "numbers"),
    "histogram, categories": (clone(HISTOGRAM).set_params(categorical_features="from_dtype"), "categories"),
    "random forest": (RandomForestRegressor(8, max_leaf_nodes=9, random_state=0), "numbers"),
    "extra trees": (ExtraTreesRegressor(8, max_leaf_nodes=9, random_state=0), "array"),
    "pipeline": (make_pipeline(StandardScaler(), GRADIENT), "numbers"),
    "pipeline, categories": (make_pipeline(ONE_HOT, HISTOGRAM), "categories"),
    "pipeline, lightgbm": (make_pipeline(StandardScaler().set_output(transform="pandas"), LIGHTGBM), "numbers"),
    "pipeline, catboost": (make_pipeline(StandardScaler(), CATBOOST), "array"),
    "pipeline, xgboost": (make_pipeline(ONE_HOT, XGBOOST), "categories"),
    "pipeline in pipeline": (make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), XGBOOST)), "array"),
    "log target": (TransformedTargetRegressor(HISTOGRAM, func=np.log, inverse_func=np.exp), "numbers"),
    "log target, lightgbm": (TransformedTargetRegressor(LIGHTGBM, func=np.log, inverse_func=np.exp), "numbers"),
}


def saved_and_loaded(u, tmp_path, **options):
    path = tmp_path / "model.ibug"
    u.save(path, **options)
    return ibug.load(path)


def shown(u):
    """Return all parameters in words; CatBoost has them in any order, and older versions show an address."""
    return sorted((name, sorted(re.sub("0x[0-9a-f]+", "", repr(value)))) for name, value in u.get_params().items())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name, rows, tmp_path):
    estimator, kind = ESTIMATORS[name]
    X = rows[kind]
    u = IBUGRegressor(estimator, random_state=0).fit(X, rows["y"])
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, v, X)
    assert type(v.estimator_) is type(u.estimator_)
    assert v.source_.walk == u.source_.walk
    assert v.feature_types_ == u.feature_types_
    assert v.estimator_.predict(X).tobytes() == u.estimator_.predict(X).tobytes()
    w = saved_and_loaded(v, tmp_path, compress=False)  # saved again
    assert_same(u, w, X)
    assert shown(w) == shown(u)
    assert shown(fresh(w)) == shown(fresh(u))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "gradient boosting", "pipeline, lightgbm"])
def test_the_loaded_one_is_fitted_anew_as_before(name, rows, tmp_path):
    estimator, _ = ESTIMATORS[name]
    X, y = rows["numbers"], rows["y"]
    u = IBUGRegressor(estimator, k=10, random_state=0, cv=2).fit(X, y)
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, clone(v).fit(X, y), X)


def trained(model, rows, **options):
    return model.fit(rows["numbers"][:200], rows["y"][:200], **options)


def early_stopped_lightgbm(rows):
    model = clone(LIGHTGBM).set_params(n_estimators=200, learning_rate=0.5)
    stop = lightgbm.early_stopping(3, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM 4.7 would have the rows under another name, which 4.6 does not know
        trained(model, rows, eval_set=[(rows["numbers"][200:], rows["y"][200:])], callbacks=[stop])
    assert model.best_iteration_ < 200
    return model


def early_stopped_booster(rows):
    """Return a booster that has trees beyond its best iteration, as LightGBM's training one has."""
    training = lightgbm.Dataset(rows["numbers"][:200], rows["y"][:200])
    booster = lightgbm.train(
        {"verbose": -1, "num_leaves": 6, "num_threads": 1},
        training,
        200,
        valid_sets=[lightgbm.Dataset(rows["numbers"][200:], rows["y"][200:], reference=training)],
        callbacks=[lightgbm.early_stopping(3, verbose=False)],
        keep_training_booster=True,
    )
    assert booster.best_iteration < booster.num_trees()
    return booster


def early_stopped_xgboost(rows):
    model = clone(XGBOOST).set_params(n_estimators=200, early_stopping_rounds=3)
    trained(model, rows, eval_set=[(rows["numbers"][200:], rows["y"][200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    return model


PLAIN = {"iterations": 8, "verbose": 0, "allow_writing_files": False}
PREFIT = {
    "lightgbm": early_stopped_lightgbm,
    "lightgbm booster": early_stopped_booster,
    "xgboost": early_stopped_xgboost,
    "xgboost booster": lambda rows: early_stopped_xgboost(rows).get_booster(),
    "catboost": lambda rows: trained(CATBOOST.copy(), rows),
    "plain catboost": lambda rows: trained(
        catboost.CatBoost({"iterations": 8, "verbose": 0, "allow_writing_files": False, "loss_function": "Poisson"}),
        rows,
    ),
    "frozen lightgbm": lambda rows: FrozenEstimator(trained(clone(LIGHTGBM), rows)),
    "frozen forest": lambda rows: FrozenEstimator(trained(RandomForestRegressor(5, random_state=0), rows)),
    "frozen pipeline": lambda rows: FrozenEstimator(trained(make_pipeline(StandardScaler(), clone(XGBOOST)), rows)),
}


@pytest.mark.filterwarnings("ignore::ibug.exceptions.OtherUnitWarning")  # of plain CatBoost
@pytest.mark.parametrize("name", PREFIT)
def test_trained_models(name, rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    u = IBUGRegressor(PREFIT[name](rows), prefit=True)
    u.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, v, X)
    assert v.estimator is v.estimator_
    assert type(v.estimator_) is type(u.estimator_)
    if hasattr(u.estimator_, "best_iteration_"):
        assert v.estimator_.best_iteration_ == u.estimator_.best_iteration_


OPTIONS = {
    **{family: {"distribution": family} for family in ibug.distributions.families()},
    "class": {"distribution": ibug.distributions.KDE},
    "tuned family": {"distribution": ["normal", "laplace", ibug.distributions.Weibull]},
    "neighbors": {"distribution": "gumbel", "location": "neighbors"},
    "support": {"support": (0, np.inf)},
    "targets": {"spread": "targets"},
    "residuals": {"spread": "residuals"},
    "not calibrated": {"calibrate": False, "k": 20},
    "nll": {"scoring": "nll"},
    "scale": {"conformal": "scale"},
    "distribution": {"conformal": "distribution"},
    "bins": {"conformal": ibug.calibration.ScaleConformal(n_bins=3)},
    "trees": {"sampling": Sampling(tree_fraction=0.5, tree_order="random")},
    "rows": {"sampling": Sampling(row_fraction=0.6)},
    "no refit": {"refit": False},
    "random state": {"random_state": np.random.RandomState(3)},
    "folds": {"cv": [(np.arange(120), np.arange(120, 240)), (np.arange(120, 240), np.arange(120))]},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option(name, rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    u = IBUGRegressor(LIGHTGBM, **{"random_state": 0, **OPTIONS[name]}).fit(X, y)
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, v, X)
    for learned in ("k_", "spread_", "distribution_", "affinity_threshold_"):
        np.testing.assert_equal(getattr(v, learned), getattr(u, learned))
    for learned in ("min_variance", "gamma", "delta"):
        np.testing.assert_equal(getattr(v.rule_, learned), getattr(u.rule_, learned))
    assert pd.DataFrame(u.tuning_).equals(pd.DataFrame(v.tuning_))
    for one in (u, v):  # both learn the same from other rows
        one.set_params(random_state=0).recalibrate(X[:100], y[:100], distribution=["normal", "logistic"])
    assert_same(u, v, X)


def test_residuals_of_validation_rows(rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    u = IBUGRegressor(trained(clone(LIGHTGBM), rows), prefit=True, spread="residuals", residuals="none")
    u.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    v = saved_and_loaded(u, tmp_path)
    assert v.source_.residual_index is not None
    assert_same(u, v, X)


def test_wide_codes(rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    forest = RandomForestRegressor(3, min_samples_leaf=2, random_state=0).fit(X, X.sum(axis=1))
    u = IBUGRegressor(forest, prefit=True, k=5, calibrate=False).fit(X, X.sum(axis=1))
    assert u.source_.index.code_type == np.uint16
    assert_same(u, saved_and_loaded(u, tmp_path), X[:50])


def test_the_same_bytes_each_time(wrapped, tmp_path):
    for name in ("first", "second"):
        wrapped.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_loaded_one_can_be_pickled(wrapped, rows, tmp_path):
    for compress in (True, False):
        v = saved_and_loaded(wrapped, tmp_path, compress=compress)
        assert_same(wrapped, pickle.loads(pickle.dumps(v)), rows["numbers"])


def test_cbu(rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    u = ibug.CBURegressor(CATBOOST, conformal="scale", random_state=0).fit(X, y)
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, v, X)
    assert_same(clone(u).fit(X, y), clone(v).fit(X, y), X)
    model = u.estimator_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prefit = ibug.CBURegressor(FrozenEstimator(model)).fit(X, y)
    assert_same(prefit, saved_and_loaded(prefit, tmp_path), X)


@pytest.mark.parametrize("options", [{}, {"combine": "mixture", "weights": [1, 3, 2]}, {"calibrate": True}])
def test_ensembles(options, rows, tmp_path):
    X, y = rows["numbers"], rows["y"]
    normal = IBUGRegressor(LIGHTGBM, distribution="normal")
    members = [("ibug", normal), ("cbu", ibug.CBURegressor(CATBOOST)), ("none", "drop")]
    u = ibug.ProbabilisticEnsemble(members, random_state=0, **options).fit(X, y)
    v = saved_and_loaded(u, tmp_path)
    assert_same(u, v, X)
    assert [name for name, _ in v.estimators] == ["ibug", "cbu", "none"]
    assert_same(u, clone(v).fit(X, y), X)
    prefit = ibug.ProbabilisticEnsemble(list(u.named_estimators_.items()), prefit=True).fit(X, y)
    w = saved_and_loaded(prefit, tmp_path)
    assert w.estimators[0][1] is w.estimators_[0]
    assert_same(prefit, w, X)
