"""Mistakes with the rows of a trained model are told: rows that it has seen, a unit, intervals that hold too little."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from ibug import IBUGRegressor
from ibug.distributions import Normal
from ibug.exceptions import InvalidInputError, NarrowWarning, NotCentralWarning, SeenRowsWarning, TargetOrderWarning
from ibug.training._diagnostics import evenly_spaced, warn_of_intervals


@pytest.fixture(scope="module")
def rows():
    return make_friedman1(800, n_features=6, random_state=0)


def lightgbm(**parameters):
    return pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, **parameters)


def xgboost(**parameters):
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=20, n_jobs=1, **parameters)


def catboost(**parameters):
    return pytest.importorskip("catboost").CatBoostRegressor(iterations=20, verbose=0, thread_count=1, **parameters)


MODELS = {
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "catboost": catboost,
    "hist": lambda: HistGradientBoostingRegressor(max_iter=20),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=20),
    "forest": lambda: RandomForestRegressor(20, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=20)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_was_trained_on_the_validation_rows_too(name, rows):
    X, y = rows
    with pytest.warns(SeenRowsWarning, match="trained on 800 rows, as many as X and X_val have together"):
        IBUGRegressor(MODELS[name]().fit(X, y), prefit=True).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeenRowsWarning)
        model = MODELS[name]().fit(X[:600], y[:600])
        IBUGRegressor(model, prefit=True).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])


def test_an_objective_that_does_not_tell_the_number_of_rows(rows):
    X, y = rows
    model = xgboost(objective="reg:tweedie").fit(X, y)
    u = IBUGRegressor(model, prefit=True).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    assert u.source_.leaves.reader.n_training_rows is None


def test_a_model_of_logarithms_is_told(rows):
    X, y = rows
    model = HistGradientBoostingRegressor(max_iter=20).fit(X[:600], np.log(y[:600]))
    with pytest.warns(NotCentralWarning, match="in another unit than y"):
        IBUGRegressor(model, prefit=True).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])


@pytest.mark.parametrize(("deviation", "narrow"), [(1.0, False), (0.85, False), (0.5, True)])
def test_intervals_that_do_not_hold_the_rows_that_chose_them_are_told(deviation, narrow):
    y = np.random.default_rng(0).normal(size=1000)
    rule = SimpleNamespace(
        coupling=None,
        parts=[SimpleNamespace(stack=True)],
        distribution=lambda batch: Normal(batch.mean, np.full(len(batch.mean), deviation)),
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in (1000, 100):  # the second are too few to tell
            some = evenly_spaced(n)
            batches = [SimpleNamespace(mean=np.zeros(len(part))) for part in np.array_split(some, 4)]
            warn_of_intervals(rule, batches, y[some], deviation=float(np.std(y[:n])))
    assert [one.category for one in told] == [NarrowWarning] * narrow


def test_targets_in_another_order_than_their_rows(rows):
    X, y = rows
    model = HistGradientBoostingRegressor(max_iter=20).fit(X[:600], y[:600])
    with pytest.warns(TargetOrderWarning, match="is y in the order of the rows of X"):
        IBUGRegressor(model, prefit=True).fit(X[:600], np.sort(y[:600]), X_val=X[600:], y_val=y[600:])
    with warnings.catch_warnings():
        warnings.simplefilter("error", TargetOrderWarning)
        u = IBUGRegressor(model, prefit=True)
        u.fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
        u.fit(X[:600], np.sort(y[:600]), X_val=X[600:], y_val=np.sort(y[600:]))  # nothing tells which is right


@pytest.mark.parametrize("make", [xgboost, lightgbm])
def test_early_stopping_without_rows_to_stop_on(make, rows):
    X, y = rows
    with pytest.raises(InvalidInputError, match=r"early_stopping_rounds?=5.*eval_set"):
        IBUGRegressor(make(early_stopping_rounds=5)).fit(X, y)
    with pytest.raises(InvalidInputError, match="eval_set"):
        IBUGRegressor(make_pipeline(StandardScaler(), make(early_stopping_rounds=5))).fit(X, y)
    stops = {"eval_set": [(X[600:], y[600:])]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM 4.7 has another name for eval_set
        u = IBUGRegressor(make(early_stopping_rounds=5)).fit(X[:600], y[:600], **stops)
    assert np.isfinite(u.predict_interval(X[:3])).all()


def test_a_table_of_pyarrow(rows):
    pa = pytest.importorskip("pyarrow")
    X, y = pd.DataFrame(rows[0], columns=list("abcdef")), rows[1]
    model = lightgbm().fit(X[:600], y[:600])
    known = {"X_val": X[600:], "y_val": y[600:]}
    table = pa.Table.from_pandas(X[:600], preserve_index=False)
    try:
        _safe_indexing(table, slice(0, 1))
    except TypeError:  # an older scikit-learn
        with pytest.raises(InvalidInputError, match=r"X\.to_pandas"):
            IBUGRegressor(model, prefit=True).fit(table, y[:600], **known)
        return
    found = IBUGRegressor(model, prefit=True).fit(table, y[:600], **known)
    usual = IBUGRegressor(model, prefit=True).fit(X[:600], y[:600], **known)
    np.testing.assert_array_equal(found.predict_interval(table), usual.predict_interval(X[:600]))
    assert [each["name"] for each in found.feature_types_] == list("abcdef")


def test_a_model_with_categories_computes_its_residuals():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=5000), "c": pd.Categorical(rng.integers(0, 12, 5000).astype(str))})
    y = X["a"].to_numpy() + X["c"].astype(int).to_numpy() + rng.normal(size=5000)
    u = IBUGRegressor(lightgbm().fit(X[:4000], y[:4000]), prefit=True)
    u.fit(X[:4000], y[:4000], X_val=X[4000:], y_val=y[4000:])
    assert (u.source_.out_of_sample.kind, u.source_.out_of_sample.reason) == ("leave-one-out", "")
    assert np.std(u.residuals_) > np.std(y[:4000] - u.predict(X[:4000]))
