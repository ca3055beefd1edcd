"""XGBoost: leaves and predictions against the leaf values of the JSON dump and the booster's own margins."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.utils.fixes import parse_version

from ibug.leaves import reader_of
from tests.oracles import xgboost_margin

xgboost = pytest.importorskip("xgboost")

MANY_LEAVES = {"grow_policy": "lossguide", "max_leaves": 500, "max_depth": 0, "min_child_weight": 0, "reg_lambda": 0}


def regressor(rows, **options):
    return xgboost.XGBRegressor(**{"n_estimators": 12, "n_jobs": 1} | options).fit(rows.X, rows.y)


def booster(rows, n_rounds=12, **options):
    return xgboost.train({"nthread": 1} | options, matrix(rows.X, label=rows.y), n_rounds)


def matrix(X, **options):
    return xgboost.DMatrix(X, enable_categorical=True, **options)


def booster_from_file(rows, folder):
    booster(rows).save_model(folder / "model.ubj")
    return xgboost.Booster(model_file=folder / "model.ubj")


def regressor_from_file(rows, folder):
    regressor(rows).save_model(folder / "model.json")
    model = xgboost.XGBRegressor()
    model.load_model(folder / "model.json")
    return model


def forest(rows):
    return xgboost.XGBRFRegressor(n_estimators=12, n_jobs=1, random_state=0).fit(rows.X, rows.y)


def own_objective(target, prediction):
    return prediction - target, np.ones_like(target)


KINDS = {
    "regressor": lambda rows, _: regressor(rows),
    "regressor from a file": regressor_from_file,
    "booster": lambda rows, _: booster(rows),
    "booster from a file": booster_from_file,
    "random forest": lambda rows, _: forest(rows),
    "dart": lambda rows, _: regressor(rows, booster="dart", rate_drop=0.5, random_state=0),
    "dart booster": lambda rows, _: booster(rows, booster="dart", rate_drop=0.5),
    "parallel trees": lambda rows, _: regressor(rows, n_estimators=4, num_parallel_tree=3, subsample=0.5),
    "parallel trees in a booster": lambda rows, _: booster(rows, 4, num_parallel_tree=3, subsample=0.5),
    "exact": lambda rows, _: regressor(rows, tree_method="exact"),
    "absolute error": lambda rows, _: regressor(rows, objective="reg:absoluteerror"),
    "own objective": lambda rows, _: regressor(rows, objective=own_objective),
    "one tree": lambda rows, _: regressor(rows, n_estimators=1),
    "one tree in a booster": lambda rows, _: booster(rows, 1),
    "one leaf": lambda rows, _: regressor(rows, gamma=1e9),
    "more than 256 leaves": lambda rows, _: regressor(rows, n_estimators=3, **MANY_LEAVES),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, rows, tmp_path_factory):
    return KINDS[request.param](rows, tmp_path_factory.mktemp("xgboost"))


def booster_of(model):
    return model if isinstance(model, xgboost.Booster) else model.get_booster()


def predict(model, X, **options):
    return model.predict(matrix(X) if isinstance(model, xgboost.Booster) else X, **options)


def assert_leaves_explain(model, X, **link):
    # XGBoost sums in single precision.
    margin = xgboost_margin(booster_of(model), reader_of(model).library_leaves(X), **link)
    assert_allclose(margin, predict(model, X, output_margin=True), rtol=1e-5, atol=1e-5)


def test_leaf_values_sum_to_the_margin(model, rows):
    assert_leaves_explain(model, rows.queries)


def test_predictions_are_the_models_own(model, rows):
    assert_array_equal(reader_of(model).predict(rows.queries), predict(model, rows.queries))


def test_each_row_has_its_own_leaves_in_every_tree(model, rows, check_leaf_numbers):
    check_leaf_numbers(model, rows.queries, n_trees=len(booster_of(model).get_dump()))


def test_neighbors_equal_the_oracle(model, rows, check_neighbors):
    check_neighbors(model, rows)


def test_log_link(rows):
    counts = replace(rows, y=np.exp(rows.y / 5))
    assert_leaves_explain(regressor(counts, objective="reg:gamma"), rows.queries, link=np.log)


def test_more_than_256_leaves_in_a_tree_are_told_apart(rows, check_neighbors):
    model = KINDS["more than 256 leaves"](rows, None)
    assert len(np.unique(reader_of(model).library_leaves(rows.X)[:, 0])) > 256
    assert check_neighbors(model, rows).source_.index.code_type == np.uint16


def test_one_leaf_makes_all_rows_equally_near(rows, check_neighbors):
    model = KINDS["one leaf"](rows, None)
    assert_array_equal(reader_of(model).library_leaves(rows.X), np.zeros((640, 12)))
    affinities, neighbors = check_neighbors(model, rows).kneighbors(rows.queries, 5)
    assert_array_equal(affinities, np.full((40, 5), 12))
    assert_array_equal(neighbors, np.tile(np.arange(5), (40, 1)))


@pytest.mark.parametrize("kind", ["gbtree", "dart"])
@pytest.mark.parametrize("num_parallel_tree", [1, 2])
def test_early_stopping_of_a_regressor(rows, tmp_path, kind, num_parallel_tree, check_leaf_numbers, check_neighbors):
    model = xgboost.XGBRegressor(
        n_estimators=200, early_stopping_rounds=4, booster=kind, num_parallel_tree=num_parallel_tree, n_jobs=1
    )
    model.fit(rows.X[:500], rows.y[:500], eval_set=[(rows.X[500:], rows.y[500:])], verbose=False)
    n_rounds = model.best_iteration + 1
    assert 1 < n_rounds < model.get_booster().num_boosted_rounds()
    model.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBRegressor()
    loaded.load_model(tmp_path / "model.json")
    for each in (model, loaded):
        check_leaf_numbers(each, rows.queries, n_trees=n_rounds * num_parallel_tree)
        assert_leaves_explain(each, rows.queries)
        check_neighbors(each, rows)


def test_a_booster_predicts_with_all_trees_also_after_early_stopping(rows, check_leaf_numbers, check_neighbors):
    model = xgboost.train(
        {"nthread": 1},
        matrix(rows.X[:500], label=rows.y[:500]),
        num_boost_round=200,
        evals=[(matrix(rows.X[500:], label=rows.y[500:]), "validation")],
        early_stopping_rounds=4,
        verbose_eval=False,
    )
    n_rounds = model.num_boosted_rounds()
    assert model.best_iteration + 1 < n_rounds
    best = model[: model.best_iteration + 1]
    for each, n_trees in ((model, n_rounds), (best, model.best_iteration + 1)):
        check_leaf_numbers(each, rows.queries, n_trees=n_trees)
        assert_leaves_explain(each, rows.queries)
        check_neighbors(each, rows)


CATEGORICAL = {"enable_categorical": True, "max_cat_to_onehot": 4}


def test_pandas_categories(frame_rows, check_leaf_numbers, check_neighbors):
    models = [regressor(frame_rows, **CATEGORICAL), booster(frame_rows, max_cat_to_onehot=4)]
    assert any("city:{" in tree for tree in models[0].get_booster().get_dump())  # a set of categories goes one way
    for model in models:
        check_leaf_numbers(model, frame_rows.queries, n_trees=12)
        assert_leaves_explain(model, frame_rows.queries)
        assert_array_equal(reader_of(model).predict(frame_rows.queries), predict(model, frame_rows.queries))
        check_neighbors(model, frame_rows)


def test_categories_as_numbers_in_an_array(frame_rows, check_leaf_numbers, check_neighbors):
    def numbers(frame):
        return np.column_stack([frame["number"], frame["city"].cat.codes])

    coded = replace(frame_rows, X=numbers(frame_rows.X), queries=numbers(frame_rows.queries))
    model = regressor(coded, feature_types=["q", "c"], **CATEGORICAL)
    assert any("f1:{" in tree for tree in model.get_booster().get_dump())
    for each in (model, model.get_booster()):
        check_leaf_numbers(each, coded.queries, n_trees=12)
        assert_leaves_explain(each, coded.queries)
        check_neighbors(each, coded)


def test_a_number_that_stands_for_missing(rows, check_neighbors):
    marked = replace(rows, X=np.nan_to_num(rows.X, nan=-999), queries=np.nan_to_num(rows.queries, nan=-999))
    model = regressor(marked, missing=-999)
    assert_array_equal(
        reader_of(model).library_leaves(marked.queries), reader_of(regressor(rows)).library_leaves(rows.queries)
    )
    assert_leaves_explain(model, marked.queries)
    check_neighbors(model, marked)


def test_polars_frames(polars_rows, rows, check_leaf_numbers, check_neighbors):
    for fit in (regressor, booster):
        model = fit(polars_rows)
        check_leaf_numbers(model, polars_rows.queries, n_trees=12)
        assert_leaves_explain(model, polars_rows.queries)
        check_neighbors(model, polars_rows)
        assert_array_equal(
            reader_of(model).library_leaves(polars_rows.queries), reader_of(fit(rows)).library_leaves(rows.queries)
        )


@pytest.mark.skipif(
    parse_version(xgboost.__version__) < parse_version("3.1"), reason="XGBoost takes polars categories from 3.1 on"
)
def test_polars_categories(polars_frame_rows, frame_rows, check_leaf_numbers, check_neighbors):
    model = regressor(polars_frame_rows, **CATEGORICAL)
    check_leaf_numbers(model, polars_frame_rows.queries, n_trees=12)
    assert_leaves_explain(model, polars_frame_rows.queries)
    check_neighbors(model, polars_frame_rows)
    assert_array_equal(
        reader_of(model).library_leaves(polars_frame_rows.queries),
        reader_of(regressor(frame_rows, **CATEGORICAL)).library_leaves(frame_rows.queries),
    )


def test_sparse_rows(full_rows, check_leaf_numbers, check_neighbors):
    X, queries = (csr_matrix(np.maximum(dense, 0)) for dense in (full_rows.X, full_rows.queries))
    sparse = replace(full_rows, X=X, queries=queries)
    for fit in (regressor, booster):
        model = fit(sparse)
        check_leaf_numbers(model, sparse.queries, n_trees=12)
        assert_leaves_explain(model, sparse.queries)
        check_neighbors(model, sparse)
