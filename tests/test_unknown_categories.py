"""Categories that the training rows did not have are named, whatever the library and the container."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBRegressor

import ibug
from ibug import CBURegressor, IBUGRegressor
from ibug.exceptions import UnknownCategoryWarning

N = 200


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    texts = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], N), "size": rng.normal(size=N)})
    texts.loc[3, "kind"] = None
    return texts, texts["size"].to_numpy() + (texts["kind"] == "a") + rng.normal(size=N)


def as_categories(texts):
    return texts.assign(kind=texts["kind"].astype("category"))


def as_texts(texts):
    return texts.assign(kind=texts["kind"].fillna("missing").astype(object))


def as_polars(texts):
    return pl.from_pandas(texts).with_columns(pl.col("kind").cast(pl.Categorical))


def as_array(texts):
    return as_texts(texts).to_numpy(object)


def catboost(**options):
    return CatBoostRegressor(iterations=5, cat_features=[0], verbose=0, allow_writing_files=False, **options)


CASES = {
    "lightgbm": (lambda: LGBMRegressor(n_estimators=5, verbose=-1), as_categories),
    "histograms": (lambda: HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype"), as_categories),
    "histograms, polars": (lambda: HistGradientBoostingRegressor(max_iter=5), as_polars),
    "catboost": (catboost, as_texts),
    "catboost, array": (catboost, as_array),
    "pipeline": (
        lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), GradientBoostingRegressor(n_estimators=5)),
        as_texts,
    ),
}


def unknown(action, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action(X)
    return [one for one in caught if issubclass(one.category, UnknownCategoryWarning)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_warning(name, rows, tmp_path):
    make, form = CASES[name]
    texts, y = rows
    u = IBUGRegressor(make(), spread="targets").fit(form(texts), y)
    u.save(tmp_path / "u.ibug", trusted=())
    new = texts.assign(kind="zebra")
    for model in (u, ibug.load(tmp_path / "u.ibug")):
        for few in (slice(None), slice(0, 1)):
            assert not unknown(model.predict, form(texts)[few])
            (found,) = unknown(model.predict_interval, form(new[few]))
            assert "'zebra'" in str(found.message)
            assert found.filename == __file__
    if name == "lightgbm":  # categories of which no row is left are no reason
        both = as_categories(pd.concat([texts, new]))
        assert not unknown(u.predict, both.iloc[:N])
        assert unknown(u.predict, both)


@pytest.mark.filterwarnings("ignore")
def test_xgboost_and_cbu(rows):
    texts, y = rows
    u = IBUGRegressor(XGBRegressor(n_estimators=5, enable_categorical=True), spread="targets")
    u.fit(as_categories(texts), y)
    assert not unknown(u.predict, as_categories(texts))
    extended = as_categories(texts)
    extended["kind"] = extended["kind"].cat.add_categories(["zebra"])
    extended.loc[5, "kind"] = "zebra"

    def tried(X):  # which versions of XGBoost refuse
        with contextlib.suppress(ValueError):
            u.predict(X)

    assert len(unknown(tried, extended)) == 1
    cbu = CBURegressor(catboost(), calibrate=False).fit(as_texts(texts), y)
    assert len(unknown(cbu.predict, as_texts(texts.assign(kind="zebra")))) == 1


def test_numbers_have_no_categories(rows):
    X = np.random.default_rng(0).normal(size=(N, 3))
    u = IBUGRegressor(k=5, calibrate=False).fit(X, rows[1])
    assert not unknown(u.predict, X + 100)
