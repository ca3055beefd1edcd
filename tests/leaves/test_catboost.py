"""CatBoost: leaves and predictions against the model's own leaf values."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.fixes import parse_version

from ibug.leaves import reader_of
from tests.oracles import catboost_raw

catboost = pytest.importorskip("catboost")

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
MANY_LEAVES = {"iterations": 2, "depth": 14, "random_strength": 0, "bootstrap_type": "No"}
takes_polars = pytest.mark.skipif(
    parse_version(catboost.__version__) < parse_version("1.2.9"), reason="CatBoost takes polars frames from 1.2.9 on"
)


def regressor(rows, **options):
    return catboost.CatBoostRegressor(**{"iterations": 12, "depth": 4} | QUIET | options).fit(rows.X, rows.y)


def from_file(rows, folder):
    regressor(rows).save_model(folder / "model.cbm")
    return catboost.CatBoost().load_model(folder / "model.cbm")


def sum_of_models(rows):
    return catboost.sum_models([regressor(rows), regressor(rows, random_seed=5, depth=3)], weights=[0.3, 0.7])


KINDS = {
    "symmetric": lambda rows, _: regressor(rows),
    "depthwise": lambda rows, _: regressor(rows, grow_policy="Depthwise"),
    "lossguide": lambda rows, _: regressor(rows, grow_policy="Lossguide", max_leaves=11),
    "CatBoost": lambda rows, _: catboost.CatBoost({"iterations": 12, "depth": 3} | QUIET).fit(rows.X, rows.y),
    "CatBoost from a file": from_file,
    "sum of models": lambda rows, _: sum_of_models(rows),
    "quantile": lambda rows, _: regressor(rows, loss_function="Quantile:alpha=0.8"),
    "one tree": lambda rows, _: regressor(rows, iterations=1),
    "one leaf, depthwise": lambda rows, _: regressor(rows, grow_policy="Depthwise", min_data_in_leaf=10_000),
    "one leaf, lossguide": lambda rows, _: regressor(rows, grow_policy="Lossguide", min_data_in_leaf=10_000),
    "many leaves, symmetric": lambda rows, _: regressor(rows, iterations=2, depth=14),
    "many leaves, depthwise": lambda rows, _: regressor(rows, **MANY_LEAVES, grow_policy="Depthwise"),
    "many leaves, lossguide": lambda rows, _: regressor(rows, **MANY_LEAVES, grow_policy="Lossguide", max_leaves=400),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, rows, tmp_path_factory):
    return KINDS[request.param](rows, tmp_path_factory.mktemp("catboost"))


def assert_leaves_explain(model, X):
    raw = catboost_raw(model, reader_of(model).library_leaves(X))
    assert_allclose(raw, model.predict(X, prediction_type="RawFormulaVal"), rtol=1e-10, atol=1e-10)


def test_leaf_values_sum_to_the_raw_prediction(model, rows):
    assert_leaves_explain(model, rows.queries)


def test_predictions_are_the_models_own(model, rows):
    assert_array_equal(reader_of(model).predict(rows.queries), model.predict(rows.queries))


def test_each_row_has_its_own_leaves_in_every_tree(model, rows, check_leaf_numbers):
    check_leaf_numbers(model, rows.queries, n_trees=model.tree_count_)


@pytest.mark.filterwarnings("ignore::ibug.exceptions.NotCentralWarning")  # one model is for a quantile
def test_neighbors_equal_the_oracle(model, rows, check_neighbors):
    check_neighbors(model, rows)


def test_log_link_of_the_plain_class_is_brought_to_the_unit_of_the_target(rows):
    counts = replace(rows, y=np.round(np.exp(rows.y / 5)))
    options = {"loss_function": "Poisson", "iterations": 12, "verbose": 0, "allow_writing_files": False}
    plain = catboost.CatBoost(options).fit(counts.X, counts.y)
    prediction = reader_of(plain).predict(counts.queries)
    np.testing.assert_allclose(prediction, np.exp(plain.predict(counts.queries)))
    assert_array_equal(
        prediction, catboost.CatBoostRegressor(**options).fit(counts.X, counts.y).predict(counts.queries)
    )


def test_log_link(rows):
    model = regressor(replace(rows, y=np.exp(rows.y / 5)), loss_function="Poisson")
    assert_leaves_explain(model, rows.queries)
    raw = catboost_raw(model, reader_of(model).library_leaves(rows.queries))
    assert_allclose(reader_of(model).predict(rows.queries), np.exp(raw), rtol=1e-10)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("many leaves")])
def test_more_than_256_leaves_in_a_tree_are_told_apart(kind, rows, check_neighbors):
    model = KINDS[kind](rows, None)
    assert len(np.unique(reader_of(model).library_leaves(rows.X)[:, 0])) > 256
    assert check_neighbors(model, rows).source_.index.code_type == np.uint16


@pytest.mark.parametrize("kind", ["one leaf, depthwise", "one leaf, lossguide"])
def test_one_leaf_makes_all_rows_equally_near(kind, rows, check_neighbors):
    model = KINDS[kind](rows, None)
    assert_array_equal(reader_of(model).library_leaves(rows.X), np.zeros((640, 12)))
    affinities, neighbors = check_neighbors(model, rows).kneighbors(rows.queries, 5)
    assert_array_equal(affinities, np.full((40, 5), 12))
    assert_array_equal(neighbors, np.tile(np.arange(5), (40, 1)))


@pytest.mark.parametrize("use_best_model", [True, False])
@pytest.mark.parametrize("grow_policy", ["SymmetricTree", "Depthwise", "Lossguide"])
def test_early_stopping(rows, use_best_model, grow_policy, check_leaf_numbers, check_neighbors):
    model = catboost.CatBoostRegressor(
        iterations=300, learning_rate=0.5, early_stopping_rounds=4, grow_policy=grow_policy, depth=4, **QUIET
    )
    validation = (rows.X[500:], rows.y[500:])
    model.fit(rows.X[:500], rows.y[:500], eval_set=validation, use_best_model=use_best_model)
    n_best, n_trained = model.best_iteration_ + 1, len(model.evals_result_["learn"]["RMSE"])
    assert 1 < n_best < n_trained < 300
    # Without use_best_model, CatBoost's predictions use the later trees too.
    check_leaf_numbers(model, rows.queries, n_trees=n_best if use_best_model else n_trained)
    assert_leaves_explain(model, rows.queries)
    check_neighbors(model, rows)


@pytest.fixture(scope="module")
def named_frame_rows(frame_rows):
    """Return the frames with a name for the missing color, as CatBoost wants it."""

    def named(frame):
        return frame.assign(color=frame["color"].cat.add_categories("none").fillna("none"))

    return replace(frame_rows, X=named(frame_rows.X), queries=named(frame_rows.queries))


@pytest.mark.parametrize("grow_policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("one_hot_max_size", [2, 50])
def test_pandas_categories(named_frame_rows, grow_policy, one_hot_max_size, check_leaf_numbers, check_neighbors):
    rows = named_frame_rows
    model = regressor(rows, cat_features=["color", "city"], grow_policy=grow_policy, one_hot_max_size=one_hot_max_size)
    assert model.get_feature_importance()[1:].min() > 0
    check_leaf_numbers(model, rows.queries, n_trees=12)
    assert_leaves_explain(model, rows.queries)
    assert_array_equal(reader_of(model).predict(rows.queries), model.predict(rows.queries))
    check_neighbors(model, rows)


@takes_polars
def test_polars_frames(polars_rows, rows, check_leaf_numbers, check_neighbors):
    model = regressor(polars_rows)
    check_leaf_numbers(model, polars_rows.queries, n_trees=12)
    assert_leaves_explain(model, polars_rows.queries)
    check_neighbors(model, polars_rows)
    assert_array_equal(
        reader_of(model).library_leaves(polars_rows.queries), reader_of(regressor(rows)).library_leaves(rows.queries)
    )


@takes_polars
@pytest.mark.filterwarnings("ignore::ibug.exceptions.UnknownCategoryWarning")  # a colour that no training row has
def test_polars_categories(polars_frame_rows, check_leaf_numbers, check_neighbors):
    import polars

    def named(frame):
        return frame.with_columns(polars.col("color").cast(polars.String).fill_null("none"))

    rows = replace(polars_frame_rows, X=named(polars_frame_rows.X), queries=named(polars_frame_rows.queries))
    model = regressor(rows, cat_features=["color", "city"])
    check_leaf_numbers(model, rows.queries, n_trees=12)
    assert_leaves_explain(model, rows.queries)
    check_neighbors(model, rows)
