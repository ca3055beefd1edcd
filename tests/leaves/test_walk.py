"""Readers that walk the trees themselves: when they do, when they leave it to the library, and that nobody can tell."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor
from ibug.leaves import LeafReader, reader_of
from ibug.leaves._walk import NotWalkableError

MODELS = {
    "LightGBM": lambda **o: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=9, verbose=-1, n_jobs=1, **o),
    "XGBoost": lambda **o: pytest.importorskip("xgboost").XGBRegressor(n_estimators=9, n_jobs=1, **o),
    "CatBoost": lambda **o: pytest.importorskip("catboost").CatBoostRegressor(
        iterations=9, depth=4, verbose=0, allow_writing_files=False, thread_count=1, **o
    ),
    "scikit-learn": lambda **o: HistGradientBoostingRegressor(max_iter=9, **o),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, rows):
    return MODELS[request.param]().fit(rows.X, rows.y)


def prepared(model, X):
    reader = reader_of(model)
    reader.prepare(X)
    return reader


def forbid_library(monkeypatch, reader):
    """Let every call of the library's own functions fail."""

    def fail(*_):
        raise AssertionError("the library was asked")

    for name in ("library_leaves", "predict"):
        monkeypatch.setattr(type(reader), name, fail)


def assert_walked(monkeypatch, reader, X):
    """Check that the walk answers by itself, and as the library does, for all rows together and for one."""
    expected = reader.library_leaves(X), reader.predict(X)
    with monkeypatch.context() as patched:
        forbid_library(patched, reader)
        found = reader.read(X)
        assert_array_equal(reader.read_leaves(X), expected[0])
    assert found[0].dtype == np.int32
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


def test_the_walk_is_used(fitted, rows, monkeypatch):
    reader = prepared(fitted, rows.X)
    assert reader.how == "compiled walk"
    assert_walked(monkeypatch, reader, rows.queries)


def test_without_preparation_the_library_is_asked(fitted, rows):
    reader = reader_of(fitted)
    assert reader.how.endswith("own functions")
    assert not reader.predicts_by_walk
    assert_array_equal(reader.read(rows.queries)[0], reader.library_leaves(rows.queries))


ARRAYS = {
    "single precision": lambda X: X.astype(np.float32),
    "half precision": lambda X: np.clip(X, -60_000, 60_000).astype(np.float16),
    "Fortran order": np.asfortranarray,
    "a slice": lambda X: np.repeat(X, 2, axis=0)[::2],
    "integers": lambda X: np.nan_to_num(1000 * X, nan=5).astype(np.int64),
    "large integers": lambda X: np.nan_to_num(1e6 * np.clip(X, -9, 9), nan=5).astype(np.int64) + 2**30 + 1,
    "unsigned bytes": lambda X: np.nan_to_num(np.clip(20 * X, 0, 255)).astype(np.uint8),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("library", MODELS)
def test_arrays(library, kind, rows, monkeypatch):
    if (library, kind) == ("CatBoost", "half precision"):
        pytest.skip("CatBoost does not take it")
    X, queries = ARRAYS[kind](rows.X), ARRAYS[kind](rows.queries)
    assert_walked(monkeypatch, prepared(MODELS[library]().fit(X, rows.y), X), queries)


@pytest.mark.parametrize("library", MODELS)
def test_pandas_frames(library, rows, monkeypatch):
    pandas = pytest.importorskip("pandas")

    def frame(X):
        table = pandas.DataFrame(X, columns=list("abcde"))
        table["d"] = np.nan_to_num(table["d"]).astype(np.int64) + 2**30
        return table.astype({"b": np.float32})

    reader = prepared(MODELS[library]().fit(frame(rows.X), rows.y), frame(rows.X))
    assert_walked(monkeypatch, reader, frame(rows.queries))
    assert_walked(monkeypatch, reader, frame(rows.queries)[:1])


def test_pandas_categories_of_lightgbm(frame_rows, monkeypatch):
    model = MODELS["LightGBM"](min_data_per_group=1, cat_smooth=1.0, min_child_samples=5)
    reader = prepared(model.fit(frame_rows.X, frame_rows.y), frame_rows.X)
    queries = frame_rows.queries
    other_order = queries["city"].cat.reorder_categories(queries["city"].cat.categories[::-1])
    for frame in (
        queries,
        queries.assign(city=other_order),
        queries.assign(city=queries["city"].cat.add_categories("?")),
    ):
        assert_walked(monkeypatch, reader, frame)


@pytest.mark.parametrize("library", ["XGBoost", "scikit-learn"])
def test_pandas_categories_of_others(library, frame_rows, monkeypatch):
    options = {"enable_categorical": True} if library == "XGBoost" else {"categorical_features": "from_dtype"}
    model = MODELS[library](**options).fit(frame_rows.X, frame_rows.y)
    assert_walked(monkeypatch, prepared(model, frame_rows.X), frame_rows.queries)
    assert_walked(monkeypatch, copy.deepcopy(prepared(model, frame_rows.X)), frame_rows.queries)


def test_other_pandas_categories_are_left_to_xgboost(frame_rows):
    model = MODELS["XGBoost"](enable_categorical=True).fit(frame_rows.X, frame_rows.y)
    reader, queries = prepared(model, frame_rows.X), frame_rows.queries
    other_order = queries["city"].cat.reorder_categories(queries["city"].cat.categories[::-1])
    assert reader._matrix(queries) is not None
    assert reader._matrix(queries.assign(city=other_order)) is None
    assert_array_equal(
        reader.read(queries.assign(city=other_order))[0], reader.library_leaves(queries.assign(city=other_order))
    )


def test_a_wrapper_that_predicts_otherwise_predicts_by_itself(full_rows):
    class Doubled(TransformedTargetRegressor):
        def predict(self, X):
            return 2 * super().predict(X)

    model = Doubled(MODELS["scikit-learn"]()).fit(full_rows.X, full_rows.y)
    reader = prepared(model, full_rows.X)
    for _ in range(2):  # to prepare again must not make it forget
        leaves, predictions = reader.read(full_rows.queries)
        assert_array_equal(leaves, reader.library_leaves(full_rows.queries))
        assert_array_equal(predictions, model.predict(full_rows.queries))
        reader.prepare(full_rows.X)


def test_training_rows_that_only_the_library_reads_leave_everything_to_it(polars_rows, rows):
    model = MODELS["LightGBM"]().fit(rows.X, rows.y)
    reader = prepared(model, polars_rows.X)
    assert "the training rows are no array" in reader.how
    assert_array_equal(reader.read(rows.queries)[0], reader.library_leaves(rows.queries))


def test_mapped_arrays_are_walked(rows, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", rows.X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert_walked(monkeypatch, prepared(MODELS["LightGBM"]().fit(rows.X, rows.y), mapped), mapped)


@pytest.mark.parametrize("trained_on", ["the same categories", "others"])
def test_rare_categories_are_among_the_rows_to_check(trained_on):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = np.zeros(20_000, np.int8)
    unlooked = np.setdiff1d(np.arange(20_000), np.linspace(0, 19_999, 512).astype(int))
    codes[unlooked[7000:7004]], codes[unlooked[8000:8004]] = 1, 2  # rarer than the rows that are looked at
    y = rng.normal(size=20_000) * 0.01 + np.array([0, 50, -50])[codes]

    def frame(categories):
        named = np.array(["usual", "high", "low"])[codes]
        return pandas.DataFrame({"kind": pandas.Categorical(named, categories), "x": rng.normal(size=20_000)})

    X = frame(["usual", "high", "low"])
    other = X.assign(kind=X["kind"].cat.reorder_categories(["usual", "low", "high"]))
    model = MODELS["XGBoost"](enable_categorical=True, min_child_weight=0).fit(X, y)
    reader = prepared(model, X if trained_on == "the same categories" else other)
    for queries in (X[7000:9000], other[7000:9000]):
        leaves, predictions = reader.read(queries)
        assert_array_equal(leaves, reader.library_leaves(queries))
        assert_array_equal(predictions, reader.predict(queries))


def test_what_only_the_library_reads_goes_to_the_library(fitted, rows):
    reader = prepared(fitted, rows.X)
    as_list = rows.queries.tolist()
    assert_array_equal(reader.read(as_list)[0], reader.library_leaves(as_list))
    masked = np.ma.masked_array(rows.queries)
    assert_array_equal(reader.read(masked)[1], reader.predict(masked))


def test_wrappers_walk_too(fitted, full_rows, monkeypatch):
    X, y, queries = full_rows.X, full_rows.y, full_rows.queries
    pipeline = make_pipeline(StandardScaler(), copy.deepcopy(fitted)).fit(X, y)
    transformed = TransformedTargetRegressor(
        copy.deepcopy(fitted), func=np.sinh, inverse_func=np.arcsinh, check_inverse=False
    )
    for model in (pipeline, FrozenEstimator(pipeline), transformed.fit(X, y / 5)):
        reader = prepared(model, X)
        assert reader.how == "compiled walk"
        expected = reader.library_leaves(queries), reader.predict(queries)
        with monkeypatch.context() as patched:
            forbid_library(patched, reader)
            leaves, predictions = reader.read(queries)
        assert_array_equal(leaves, expected[0])
        assert_array_equal(predictions, expected[1])


KEPT_FOR_LEAVES = {
    "linear leaves": lambda: MODELS["LightGBM"](linear_tree=True),
    "dart": lambda: MODELS["XGBoost"](booster="dart", rate_drop=0.5),
}


@pytest.mark.parametrize("kind", KEPT_FOR_LEAVES)
def test_where_leaf_values_do_not_sum_to_the_prediction_the_library_predicts(kind, full_rows):
    reader = prepared(KEPT_FOR_LEAVES[kind]().fit(full_rows.X, full_rows.y), full_rows.X)
    assert reader.how.startswith("compiled walk for leaf numbers; predictions by")
    assert not reader.predicts_by_walk
    leaves, predictions = reader.read(full_rows.queries)
    assert_array_equal(leaves, reader.library_leaves(full_rows.queries))
    assert_array_equal(predictions, reader.predict(full_rows.queries))


LEFT_TO_LIBRARY = {
    "not symmetric": lambda: MODELS["CatBoost"](grow_policy="Depthwise"),
    "no plain numbers": lambda: MODELS["CatBoost"](cat_features=[3]),
}


@pytest.mark.parametrize("reason", LEFT_TO_LIBRARY)
def test_what_the_walk_does_not_know_is_left_to_the_library(reason, full_rows):
    pandas = pytest.importorskip("pandas")

    def frame(X):
        return pandas.DataFrame(X, columns=list("abcde")).astype({"d": int})

    reader = prepared(LEFT_TO_LIBRARY[reason]().fit(frame(full_rows.X), full_rows.y), frame(full_rows.X))
    assert reader.how.startswith("CatBoost's own functions: ")
    assert reason in reader.how
    assert_array_equal(reader.read(frame(full_rows.queries))[0], reader.library_leaves(frame(full_rows.queries)))


@pytest.mark.parametrize("model", [RandomForestRegressor(n_estimators=3), GradientBoostingRegressor(n_estimators=3)])
def test_readers_without_a_walk(model, full_rows):
    reader = prepared(model.fit(full_rows.X, full_rows.y), full_rows.X)
    assert reader.how == LeafReader.how
    assert_array_equal(reader.read(full_rows.queries)[1], model.predict(full_rows.queries))


def falsify(reader, monkeypatch, change):
    """Let the reader read its trees with a change."""
    read = reader._trees

    def changed():
        trees, link = read()
        return change(trees, link)

    monkeypatch.setattr(reader, "_trees", changed)


def with_nodes(trees, **columns):
    nodes = trees.nodes.copy()
    for name, change in columns.items():
        nodes[name] = change(nodes[name])
    return replace(trees, nodes=nodes)


WRONG_TREES = {
    "thresholds": lambda trees: with_nodes(trees, threshold=lambda t: np.nextafter(t, np.inf)),
    "default sides": lambda trees: with_nodes(trees, default_left=lambda left: 1 - left),
    "features": lambda trees: with_nodes(trees, feature=lambda f: (f + 1) % trees.n_features),
}


@pytest.mark.parametrize("wrong", WRONG_TREES)
def test_a_walk_that_finds_other_leaves_is_not_used(wrong, fitted, rows, monkeypatch):
    reader = reader_of(fitted)
    if wrong == "thresholds" and reader.library in ("XGBoost", "CatBoost"):  # of single precision
        change = lambda trees: with_nodes(trees, threshold=lambda t: np.nextafter(np.float32(t), np.float32(np.inf)))  # noqa: E731
    else:
        change = WRONG_TREES[wrong]
    falsify(reader, monkeypatch, lambda trees, link: (change(trees), link))
    reader.prepare(rows.X)
    assert "own functions: the walk finds other leaves" in reader.how
    assert_array_equal(reader.read(rows.queries)[0], reader.library_leaves(rows.queries))
    assert_array_equal(reader.read(rows.queries)[1], reader.predict(rows.queries))


def test_a_sum_that_is_not_the_prediction_is_not_used(fitted, rows, monkeypatch):
    reader = reader_of(fitted)
    falsify(reader, monkeypatch, lambda trees, link: (trees, lambda sums: link(sums) * (1 + 1e-6)))
    reader.prepare(rows.X)
    assert reader.how.startswith("compiled walk for leaf numbers; predictions by")
    assert_array_equal(reader.read(rows.queries)[1], reader.predict(rows.queries))


@pytest.mark.parametrize(
    "error", [KeyError("left_children"), AttributeError("nodes"), NotWalkableError("of a new kind")]
)
def test_a_format_of_the_future_is_left_to_the_library(error, fitted, rows, monkeypatch):
    def fail():
        raise error

    reader = reader_of(fitted)
    monkeypatch.setattr(reader, "_trees", fail)
    reader.prepare(rows.X)
    assert "own functions: " in reader.how
    assert str(error) in reader.how
    assert_array_equal(reader.read(rows.queries)[0], reader.library_leaves(rows.queries))


def test_preparing_again_forgets_what_was(fitted, rows, monkeypatch):
    reader = prepared(fitted, rows.X)
    falsify(reader, monkeypatch, lambda trees, link: (WRONG_TREES["features"](trees), link))
    reader.prepare(rows.X)
    assert not reader.predicts_by_walk
    assert_array_equal(reader.read(rows.queries)[0], reader.library_leaves(rows.queries))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda reader: pickle.loads(pickle.dumps(reader))])
def test_copies_walk_too(fitted, rows, copied, monkeypatch):
    reader = copied(prepared(fitted, rows.X))
    assert reader.how == "compiled walk"
    assert_walked(monkeypatch, reader, rows.queries)


def test_copies_keep_to_what_was_found_out(fitted, rows):
    reader = prepared(fitted, rows.X)
    reader._link, reader.how = None, "compiled walk for leaf numbers; predictions by the library"
    loaded = copy.deepcopy(reader)
    assert not loaded.predicts_by_walk
    assert loaded.how == reader.how
    assert_array_equal(loaded.read(rows.queries)[0], reader.library_leaves(rows.queries))
    reader._walk, reader.how = None, "the library's own functions: a reason"
    loaded = copy.deepcopy(reader)
    assert loaded._walk is None
    assert loaded.how == reader.how


def test_regressor_predicts_what_the_model_predicts(fitted, rows, capsys):
    u = IBUGRegressor(fitted, prefit=True, k=9, calibrate=False, verbose=1).fit(rows.X, rows.y)
    assert u.source_.walk == "compiled walk"
    assert "checking the tree walk: done in" in capsys.readouterr().err
    u.verbose = 0
    assert_array_equal(u.predict_dist(rows.queries).mean(), fitted.predict(rows.queries))
    for i in range(3):
        assert u.predict_dist(rows.queries[i : i + 1]).mean() == fitted.predict(rows.queries[i : i + 1])
    assert_allclose(u.predict_interval(rows.queries).mean(axis=1), fitted.predict(rows.queries), rtol=1e-6)


def test_regressor_says_why_it_asks_the_library(full_rows, capsys):
    model = MODELS["CatBoost"](grow_policy="Lossguide").fit(full_rows.X, full_rows.y)
    u = IBUGRegressor(model, prefit=True, k=9, calibrate=False, verbose=1).fit(full_rows.X, full_rows.y)
    assert u.source_.walk == "CatBoost's own functions: its trees are not symmetric"
    assert u.source_.walk in capsys.readouterr().err


def test_infinite_values_are_refused_by_xgboost_as_ever(rows):
    model = MODELS["XGBoost"]().fit(rows.X, rows.y)
    u = IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(rows.X, rows.y)
    assert u.source_.walk == "compiled walk"
    queries = rows.queries.copy()
    queries[3, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        u.predict_dist(queries)


@pytest.mark.parametrize("wrong", ["text", "features", "no rows"])
def test_bad_rows_are_refused_as_ever(wrong, fitted, rows):
    u = IBUGRegressor(fitted, prefit=True, k=9, calibrate=False).fit(rows.X, rows.y)
    bad = {"text": np.full((2, 5), "a"), "features": rows.queries[:, :4], "no rows": rows.queries[:0]}[wrong]
    with pytest.raises(Exception, match=r"(?i)features|sample|convert|string|float|type"):
        u.predict_dist(bad)
