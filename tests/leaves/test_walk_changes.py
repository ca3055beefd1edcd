"""Rows that come in another form than those the model was trained on: the walk reads what the library would read."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug.leaves import reader_of

MODELS = {
    "LightGBM": lambda: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=9, verbose=-1, n_jobs=1),
    "XGBoost": lambda: pytest.importorskip("xgboost").XGBRegressor(n_estimators=9, n_jobs=1),
    "CatBoost": lambda: pytest.importorskip("catboost").CatBoostRegressor(
        iterations=9, depth=4, verbose=0, allow_writing_files=False, thread_count=1
    ),
    "scikit-learn": lambda: HistGradientBoostingRegressor(max_iter=9),
}


def integral(rng, n):
    """Rows of whole numbers, small and beyond the precision of single-precision floats, which every type can hold."""
    X = rng.integers(0, 60, (n, 3)).astype(np.float64)
    X[:, 1] += 2**24 + 1
    X[:, 2] = X[:, 2] > 30
    return X


TYPES = {
    "double": np.float64, "single": np.float32, "int64": np.int64, "int32": np.int32, "uint64": np.uint64,
}  # fmt: skip


def frames(pandas, X):
    """Return the same rows in frames of several types of columns."""
    frame = pandas.DataFrame(X, columns=list("abc"))
    found = {name: frame.astype(kind) for name, kind in TYPES.items()}
    found["mixed"] = frame.astype({"a": np.int8, "b": np.float32, "c": bool})
    found["nullable"] = frame.astype({"a": "Int64", "b": "Float64"})
    found["category"] = frame.astype({"a": "category"})
    found["text"] = frame.astype({"a": str})
    found["objects"] = frame.astype(object)
    return found


def outcome(read):
    """Return leaves and predictions, or that the rows were refused."""
    try:
        return read()
    except Exception as error:
        return error


def assert_same(reader, queries):
    expected = outcome(lambda: (reader.library_leaves(queries), reader.predict(queries)))
    found = outcome(lambda: reader.read(queries))
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), "the library refuses such rows"
        return
    assert not isinstance(found, Exception), found
    assert_array_equal(found[0], expected[0])
    assert_allclose(found[1], expected[1], rtol=1e-9)
    assert_array_equal(reader.read_leaves(queries, trees=np.array([7, 0, 3])), expected[0][:, [7, 0, 3]])


@pytest.mark.parametrize("trained", TYPES)
@pytest.mark.parametrize("library", MODELS)
def test_arrays_of_another_type(library, trained):
    rng = np.random.default_rng(0)
    X, queries = integral(rng, 400), integral(rng, 30)
    reader = reader_of(MODELS[library]().fit(X.astype(TYPES[trained]), X.sum(axis=1)))
    reader.prepare(X.astype(TYPES[trained]))
    assert reader.how == "compiled walk"
    for kind in (*TYPES.values(), np.float16, ">f8", object):
        with np.errstate(over="ignore"):
            assert_same(reader, queries.astype(kind))


@pytest.mark.parametrize("trained", ["double", "int64", "mixed"])
@pytest.mark.parametrize("library", MODELS)
def test_frames_of_other_types(library, trained):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, queries = frames(pandas, integral(rng, 400)), frames(pandas, integral(rng, 30))
    reader = reader_of(MODELS[library]().fit(X[trained], integral(rng, 400).sum(axis=1)))
    reader.prepare(X[trained])
    for rows in queries.values():
        assert_same(reader, rows)


@pytest.mark.parametrize("library", MODELS)
def test_huge_and_missing_values_in_frames(library):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    queries = X[:6].copy()
    queries.iloc[0, 0], queries.iloc[1, 1], queries.iloc[2, 2] = 1e300, np.nan, -1e39
    queries.iloc[3, 0] = 1e-40
    reader = reader_of(MODELS[library]().fit(X, X.sum(axis=1)))
    reader.prepare(X)
    assert_same(reader, queries)
    assert_same(reader, queries[1:2])


def lightgbm_boosters(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    params = {"verbose": -1, "num_threads": 1}

    def train(**options):
        return lightgbm.train(params, lightgbm.Dataset(X, y, free_raw_data=False), 12, **options)

    yield train().refit(X, 2 * y, decay_rate=0.3)
    yield train(init_model=train())
    for change in (
        lambda booster: booster.rollback_one_iter(),
        lambda booster: booster.shuffle_models(),
        lambda booster: setattr(booster, "best_iteration", 5),
    ):
        booster = train()
        change(booster)
        yield booster


def xgboost_boosters(X, y):
    xgboost = pytest.importorskip("xgboost")
    params, rows = {"max_depth": 4, "nthread": 1}, xgboost.DMatrix(X, y)
    booster = xgboost.train(params, rows, 12)
    yield from (booster[3:9], booster[2:12:2], xgboost.train(params, rows, 5, xgb_model=booster))
    yield xgboost.train(params, xgboost.DMatrix(X, y, base_margin=0.5 * y), 8)


def catboost_models(X, y):
    catboost = pytest.importorskip("catboost")
    options = {"iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostRegressor(**options).fit(X, y)
    yield catboost.CatBoostRegressor(**options).fit(X, y, init_model=model)
    yield catboost.CatBoostRegressor(**options).fit(X, y, baseline=0.4 * y)
    yield catboost.sum_models([model, catboost.CatBoostRegressor(**options, random_seed=4).fit(X, y)], weights=[0.5, 2])
    for change in (
        lambda model: model.set_scale_and_bias(2.5, -1.0),
        lambda model: model.shrink(9),
        lambda model: model.shrink(9, ntree_start=3),
    ):
        copy = model.copy()
        change(copy)
        yield copy


@pytest.mark.parametrize("models", [lightgbm_boosters, xgboost_boosters, catboost_models])
def test_models_that_were_changed_after_training(models, rows):
    for model in models(rows.X, rows.y):
        reader = reader_of(model)
        reader.prepare(rows.X)
        assert reader.how == "compiled walk"
        for found, expected in zip(
            reader.read(rows.queries), (reader.library_leaves(rows.queries), reader.predict(rows.queries)), strict=True
        ):
            assert_allclose(found, expected, rtol=1e-9)
