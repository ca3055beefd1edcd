"""scikit-learn: leaves and predictions against the values in the models' own nodes."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from ibug.leaves import reader_of
from tests.oracles import forest_mean, gradient_boosting_raw, hist_gradient_boosting_raw


def hist(rows, **options):
    return HistGradientBoostingRegressor(**{"max_iter": 12, "random_state": 0} | options).fit(rows.X, rows.y)


def boosting(rows, **options):
    return GradientBoostingRegressor(**{"n_estimators": 12, "random_state": 0} | options).fit(rows.X, rows.y)


def forest(rows, **options):
    return RandomForestRegressor(**{"n_estimators": 12, "random_state": 0} | options).fit(rows.X, rows.y)


def extra_trees(rows, **options):
    return ExtraTreesRegressor(**{"n_estimators": 12, "random_state": 0} | options).fit(rows.X, rows.y)


# By kind: how it is fitted, and its number of trees.
KINDS = {
    "hist": (hist, 12),
    "hist, absolute error": (lambda rows: hist(rows, loss="absolute_error"), 12),
    "hist, early stopping": (lambda rows: hist(rows, max_iter=400, early_stopping=True, n_iter_no_change=3), None),
    "hist, one tree": (lambda rows: hist(rows, max_iter=1), 1),
    "hist, one leaf": (lambda rows: hist(rows, min_samples_leaf=640), 12),
    "hist, many leaves": (lambda rows: hist(rows, max_iter=2, max_leaf_nodes=500, min_samples_leaf=1), 2),
    "boosting": (boosting, 12),
    "boosting, huber": (lambda rows: boosting(rows, loss="huber", subsample=0.7), 12),
    "boosting, early stopping": (lambda rows: boosting(rows, n_estimators=400, n_iter_no_change=3), None),
    "boosting, one tree": (lambda rows: boosting(rows, n_estimators=1), 1),
    "boosting, one leaf": (lambda rows: boosting(rows, min_samples_leaf=640), 12),
    "boosting, many leaves": (lambda rows: boosting(rows, n_estimators=2, max_depth=None), 2),
    "forest": (lambda rows: forest(rows, max_depth=5), 12),
    "forest, one tree": (lambda rows: forest(rows, n_estimators=1), 1),
    "forest, one leaf": (lambda rows: forest(rows, min_samples_leaf=640), 12),
    "forest, many leaves": (forest, 12),
    "extra trees": (lambda rows: extra_trees(rows, max_depth=5), 12),
    "extra trees, one tree": (lambda rows: extra_trees(rows, n_estimators=1), 1),
    "extra trees, one leaf": (lambda rows: extra_trees(rows, min_samples_leaf=640), 12),
    "extra trees, many leaves": (extra_trees, 12),
}


def kinds_with(what):
    return [kind for kind in KINDS if kind.endswith(what)]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind, rows, full_rows):
    """Return the kind's model and its rows: with missing values, where it takes them."""
    its_rows = full_rows if kind.startswith("boosting") else rows
    return KINDS[kind][0](its_rows), its_rows


def assert_leaves_explain(model, X):
    leaves = reader_of(model).library_leaves(X)
    if isinstance(model, HistGradientBoostingRegressor):
        expected = hist_gradient_boosting_raw(model, leaves)
    elif isinstance(model, GradientBoostingRegressor):
        expected = gradient_boosting_raw(model, leaves, X)
    else:
        expected = forest_mean(model, leaves)
    assert_allclose(expected, model.predict(X), rtol=1e-12, atol=1e-12)


def test_leaf_values_give_the_prediction(fitted):
    model, rows = fitted
    assert_leaves_explain(model, rows.queries)


def test_predictions_are_the_models_own(fitted):
    model, rows = fitted
    assert_array_equal(reader_of(model).predict(rows.queries), model.predict(rows.queries))


def test_each_row_has_its_own_leaves_in_every_tree(kind, fitted, check_leaf_numbers):
    model, rows = fitted
    n_trees = KINDS[kind][1] or (model.n_iter_ if kind.startswith("hist") else model.n_estimators_)
    assert n_trees < 400
    check_leaf_numbers(model, rows.queries, n_trees)


def test_neighbors_equal_the_oracle(fitted, check_neighbors):
    check_neighbors(*fitted)


@pytest.mark.parametrize("kind", kinds_with("many leaves"), indirect=True)
def test_more_than_256_leaves_in_a_tree_are_told_apart(fitted, check_neighbors):
    model, rows = fitted
    assert len(np.unique(reader_of(model).library_leaves(rows.X)[:, 0])) > 256
    assert check_neighbors(model, rows).source_.index.code_type == np.uint16


@pytest.mark.parametrize("kind", kinds_with("one leaf"), indirect=True)
def test_one_leaf_makes_all_rows_equally_near(fitted, check_neighbors):
    model, rows = fitted
    assert_array_equal(reader_of(model).library_leaves(rows.X), np.zeros((640, 12)))
    affinities, neighbors = check_neighbors(model, rows).kneighbors(rows.queries, 5)
    assert_array_equal(affinities, np.full((40, 5), 12))
    assert_array_equal(neighbors, np.tile(np.arange(5), (40, 1)))


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_log_link(rows, loss):
    model = hist(replace(rows, y=np.exp(rows.y / 5)), loss=loss)
    raw = hist_gradient_boosting_raw(model, reader_of(model).library_leaves(rows.queries))
    assert_allclose(np.exp(raw), model.predict(rows.queries), rtol=1e-12)


def splits_of(model):
    """Return the records of all inner nodes of a HistGradientBoosting model."""
    nodes = np.concatenate([trees[0].nodes for trees in model._predictors])
    return nodes[nodes["is_leaf"] == 0]


def test_hist_with_missing_values_on_either_side(rows):
    model = hist(rows, max_iter=60)
    splits = splits_of(model)
    numeric_by_side = splits["missing_go_to_left"][np.isfinite(splits["num_threshold"])]
    assert set(numeric_by_side) == {0, 1}
    assert_leaves_explain(model, np.vstack([rows.X, rows.queries]))


CATEGORICAL = {"categorical_features": "from_dtype", "min_samples_leaf": 3, "max_iter": 30}


def assert_has_all_sorts_of_splits(model):
    splits = splits_of(model)
    assert set(splits["is_categorical"]) == {0, 1}
    assert set(splits["missing_go_to_left"]) == {0, 1}


def test_hist_with_pandas_categories(frame_rows, check_leaf_numbers, check_neighbors):
    model = hist(frame_rows, **CATEGORICAL)
    assert_has_all_sorts_of_splits(model)
    for X in (frame_rows.X, frame_rows.queries):
        assert_leaves_explain(model, X)
    assert_array_equal(reader_of(model).predict(frame_rows.queries), model.predict(frame_rows.queries))
    check_leaf_numbers(model, frame_rows.queries, n_trees=30)
    check_neighbors(model, frame_rows)


def test_hist_with_polars_categories(polars_frame_rows, frame_rows, check_leaf_numbers, check_neighbors):
    model = hist(polars_frame_rows, **CATEGORICAL)
    assert_has_all_sorts_of_splits(model)
    check_leaf_numbers(model, polars_frame_rows.queries, n_trees=30)
    assert_leaves_explain(model, polars_frame_rows.queries)
    check_neighbors(model, polars_frame_rows)
    # scikit-learn takes null for a category of its own, unlike NaN, so that unseen categories go elsewhere.
    pandas_leaves = reader_of(hist(frame_rows, **CATEGORICAL)).library_leaves(frame_rows.queries)
    seen = (frame_rows.queries["color"] != "unseen").to_numpy()
    assert_array_equal(reader_of(model).library_leaves(polars_frame_rows.queries)[seen], pandas_leaves[seen])


def test_hist_with_categories_as_numbers(frame_rows, check_neighbors):
    def numbers(frame):
        # With gaps, so that a category's number is not its bin's.
        codes = [np.where(frame[name].isna(), np.nan, 7.0 * frame[name].cat.codes + 2) for name in ("color", "city")]
        return np.column_stack([frame["number"], *codes])

    coded = replace(frame_rows, X=numbers(frame_rows.X), queries=numbers(frame_rows.queries))
    model = hist(coded, **CATEGORICAL | {"categorical_features": [1, 2]})
    assert_has_all_sorts_of_splits(model)
    unseen = np.array([[0.5, 3, 16], [0.5, 9, 254], [np.nan, np.nan, np.nan], [-1e9, 100, 0]])
    for X in (coded.X, coded.queries, unseen):
        assert_leaves_explain(model, X)
    check_neighbors(model, coded)


def test_an_unseen_category_is_a_missing_one_in_hist(frame_rows):
    model = hist(frame_rows, **CATEGORICAL)
    unseen = frame_rows.queries[frame_rows.queries["color"] == "unseen"]
    assert len(unseen) == 6
    missing = unseen.assign(color=unseen["color"].cat.remove_categories("unseen"))
    reader = reader_of(model)
    assert_array_equal(reader.library_leaves(unseen), reader.library_leaves(missing))


@pytest.mark.parametrize("fit", [hist, forest, extra_trees])
def test_polars_frames(fit, polars_rows, rows, check_leaf_numbers, check_neighbors):
    model = fit(polars_rows)
    check_leaf_numbers(model, polars_rows.queries, n_trees=12)
    assert_leaves_explain(model, polars_rows.queries)
    check_neighbors(model, polars_rows)
    assert_array_equal(
        reader_of(model).library_leaves(polars_rows.queries), reader_of(fit(rows)).library_leaves(rows.queries)
    )


@pytest.mark.parametrize("fit", [boosting, forest, extra_trees])
def test_sparse_rows(fit, full_rows, check_leaf_numbers, check_neighbors):
    X, queries = (csr_matrix(np.maximum(dense, 0)) for dense in (full_rows.X, full_rows.queries))
    sparse = replace(full_rows, X=X, queries=queries)
    model = fit(sparse)
    check_leaf_numbers(model, sparse.queries, n_trees=12)
    assert_leaves_explain(model, sparse.queries)
    check_neighbors(model, sparse)
