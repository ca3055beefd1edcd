"""LightGBM: leaves and predictions against the booster's own leaf outputs and raw scores."""

from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.utils.fixes import parse_version

from ibug.leaves import reader_of
from tests.oracles import lightgbm_raw

lightgbm = pytest.importorskip("lightgbm")

QUIET = {"verbose": -1, "num_threads": 1}


def regressor(rows, **options):
    return lightgbm.LGBMRegressor(**{"n_estimators": 12, "random_state": 0} | QUIET | options).fit(rows.X, rows.y)


def booster(rows, n_rounds=12, **options):
    return lightgbm.train(QUIET | options, lightgbm.Dataset(rows.X, rows.y), n_rounds)


def from_text_file(rows, folder):
    booster(rows).save_model(folder / "model.txt")
    return lightgbm.Booster(model_file=folder / "model.txt")


def own_objective(target, prediction):
    return prediction - target, np.ones_like(target)


KINDS = {
    "regressor": lambda rows, _: regressor(rows),
    "booster": lambda rows, _: booster(rows),
    "text file": from_text_file,
    "dart": lambda rows, _: regressor(rows, boosting_type="dart", drop_rate=0.5, skip_drop=0.0),
    "random forest": lambda rows, _: regressor(rows, boosting_type="rf", subsample=0.6, subsample_freq=1),
    "goss": lambda rows, _: regressor(rows, data_sample_strategy="goss", learning_rate=0.5),
    "log link": lambda rows, _: booster(replace(rows, y=np.exp(rows.y / 5)), objective="poisson"),
    "own objective": lambda rows, _: regressor(rows, objective=own_objective),
    "one tree": lambda rows, _: regressor(rows, n_estimators=1),
    "one leaf": lambda rows, _: regressor(rows, min_child_samples=10_000),
    "more than 256 leaves": lambda rows, _: regressor(rows, n_estimators=3, num_leaves=500, min_child_samples=1),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, rows, tmp_path_factory):
    return KINDS[request.param](rows, tmp_path_factory.mktemp("lightgbm"))


def booster_of(model):
    return model if isinstance(model, lightgbm.Booster) else model.booster_


def assert_leaves_explain(model, X):
    raw = lightgbm_raw(booster_of(model), reader_of(model).library_leaves(X))
    assert_allclose(raw, model.predict(X, raw_score=True), rtol=1e-10, atol=1e-10)


def test_leaf_values_sum_to_the_raw_prediction(model, rows):
    assert_leaves_explain(model, rows.queries)


def test_predictions_are_the_models_own(model, rows):
    assert_array_equal(reader_of(model).predict(rows.queries), model.predict(rows.queries))


def test_each_row_has_its_own_leaves_in_every_tree(model, rows, check_leaf_numbers):
    check_leaf_numbers(model, rows.queries, n_trees=booster_of(model).num_trees())


def test_neighbors_equal_the_oracle(model, rows, check_neighbors):
    check_neighbors(model, rows)


def test_more_than_256_leaves_in_a_tree_are_told_apart(rows, check_neighbors):
    model = KINDS["more than 256 leaves"](rows, None)
    assert len(np.unique(reader_of(model).library_leaves(rows.X)[:, 0])) > 256
    assert check_neighbors(model, rows).source_.index.code_type == np.uint16


def test_one_leaf_makes_all_rows_equally_near(rows, check_neighbors):
    model = KINDS["one leaf"](rows, None)
    assert_array_equal(reader_of(model).library_leaves(rows.X), np.zeros((640, 1)))
    affinities, neighbors = check_neighbors(model, rows).kneighbors(rows.queries, 5)
    assert_array_equal(affinities, np.ones((40, 5)))
    assert_array_equal(neighbors, np.tile(np.arange(5), (40, 1)))


@pytest.fixture(scope="module")
def stopped(rows):
    """Return a model that was stopped early."""
    X, y = rows.X[500:], rows.y[500:]
    renamed = "eval_X" in signature(lightgbm.LGBMRegressor.fit).parameters  # since LightGBM 4.7
    validation = {"eval_X": X, "eval_y": y} if renamed else {"eval_set": [(X, y)]}
    stop = lightgbm.early_stopping(5, verbose=False)
    model = lightgbm.LGBMRegressor(n_estimators=300, learning_rate=0.3, **QUIET)
    return model.fit(rows.X[:500], rows.y[:500], callbacks=[stop], **validation)


def test_early_stopping_of_a_regressor(stopped, rows, check_leaf_numbers, check_neighbors):
    assert 1 < stopped.best_iteration_ < 295
    check_leaf_numbers(stopped, rows.queries, n_trees=stopped.best_iteration_)
    assert_leaves_explain(stopped, rows.queries)
    check_neighbors(stopped, rows)


def test_early_stopping_of_a_booster_that_keeps_the_later_trees(rows, check_leaf_numbers, check_neighbors):
    data = lightgbm.Dataset(rows.X[:500], rows.y[:500], params=QUIET)
    model = lightgbm.train(
        QUIET | {"learning_rate": 0.3},
        data,
        num_boost_round=300,
        valid_sets=[lightgbm.Dataset(rows.X[500:], rows.y[500:], reference=data)],
        callbacks=[lightgbm.early_stopping(5, verbose=False)],
        keep_training_booster=True,
    )
    assert 1 < model.best_iteration < model.num_trees()
    check_leaf_numbers(model, rows.queries, n_trees=model.best_iteration)
    assert_leaves_explain(model, rows.queries)
    check_neighbors(model, rows)


def test_early_stopping_survives_a_text_file(stopped, rows, tmp_path, check_leaf_numbers):
    stopped.booster_.save_model(tmp_path / "model.txt")
    loaded = lightgbm.Booster(model_file=tmp_path / "model.txt")
    check_leaf_numbers(loaded, rows.queries, n_trees=stopped.best_iteration_)
    assert_array_equal(reader_of(loaded).library_leaves(rows.queries), reader_of(stopped).library_leaves(rows.queries))
    assert_array_equal(reader_of(loaded).predict(rows.queries), stopped.predict(rows.queries))


CATEGORICAL = {"min_data_per_group": 1, "cat_smooth": 1.0, "min_child_samples": 5}


def test_pandas_categories(frame_rows, tmp_path, check_leaf_numbers, check_neighbors):
    model = regressor(frame_rows, **CATEGORICAL)
    assert model.booster_.trees_to_dataframe()["decision_type"].eq("==").any()
    model.booster_.save_model(tmp_path / "model.txt")
    for each in (model, model.booster_, lightgbm.Booster(model_file=tmp_path / "model.txt")):
        check_leaf_numbers(each, frame_rows.queries, n_trees=12)
        assert_leaves_explain(each, frame_rows.queries)
        assert_array_equal(reader_of(each).predict(frame_rows.queries), model.predict(frame_rows.queries))
        check_neighbors(each, frame_rows)


def test_pandas_categories_in_another_order_are_the_same_rows(frame_rows):
    reader = reader_of(regressor(frame_rows, **CATEGORICAL))
    queries = frame_rows.queries
    reordered = queries.assign(city=queries["city"].cat.reorder_categories(queries["city"].cat.categories[::-1]))
    assert_array_equal(reader.library_leaves(reordered), reader.library_leaves(queries))


takes_polars = pytest.mark.skipif(
    parse_version(lightgbm.__version__) < parse_version("4.7"), reason="LightGBM takes polars frames from 4.7 on"
)


@takes_polars
@pytest.mark.skipif(
    parse_version(lightgbm.__version__) < parse_version("4.7"), reason="LightGBM takes polars frames from 4.7 on"
)
@pytest.mark.parametrize("fit", [regressor, booster])
def test_polars_frames(fit, polars_rows, rows, check_leaf_numbers, check_neighbors):
    model = fit(polars_rows)
    check_leaf_numbers(model, polars_rows.queries, n_trees=12)
    assert_leaves_explain(model, polars_rows.queries)
    check_neighbors(model, polars_rows)
    assert_array_equal(
        reader_of(model).library_leaves(polars_rows.queries), reader_of(fit(rows)).library_leaves(rows.queries)
    )


def test_sparse_rows(full_rows, check_leaf_numbers, check_neighbors):
    X, queries = (csr_matrix(np.maximum(dense, 0)) for dense in (full_rows.X, full_rows.queries))
    sparse = replace(full_rows, X=X, queries=queries)
    model = regressor(sparse)
    check_leaf_numbers(model, sparse.queries, n_trees=12)
    assert_leaves_explain(model, sparse.queries)
    check_neighbors(model, sparse)


def test_linear_trees_are_read_by_their_leaves(full_rows, check_leaf_numbers, check_neighbors):
    # Their leaves hold linear models, so there is no value to sum. But rows that share all leaves share the models:
    # their predictions are linear in the features.
    model = booster(full_rows, n_rounds=3, linear_tree=True, num_leaves=3)
    check_leaf_numbers(model, full_rows.queries, n_trees=3)
    check_neighbors(model, full_rows)

    leaves, prediction = reader_of(model).library_leaves(full_rows.X), model.predict(full_rows.X)
    design = np.column_stack([full_rows.X, np.ones(len(leaves))])
    assert not is_linear(design, prediction)
    for shared in np.unique(leaves, axis=0):
        inside = (leaves == shared).all(axis=1)
        assert is_linear(design[inside], prediction[inside])


def is_linear(design, values):
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return np.allclose(fitted, values, rtol=0, atol=1e-6)
