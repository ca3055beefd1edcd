"""Pipeline, FrozenEstimator and TransformedTargetRegressor: the outer model predicts, the inner one has the leaves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from ibug import IBUGRegressor
from ibug.leaves import reader_of
from tests.oracles import forest_mean

QUIET_CATBOOST = {"iterations": 8, "verbose": 0, "allow_writing_files": False, "thread_count": 1}

MODELS = {
    "LGBMRegressor": lambda: pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1),
    "XGBRegressor": lambda: pytest.importorskip("xgboost").XGBRegressor(n_estimators=8, n_jobs=1),
    "XGBRFRegressor": lambda: pytest.importorskip("xgboost").XGBRFRegressor(n_estimators=8, n_jobs=1),
    "CatBoostRegressor": lambda: pytest.importorskip("catboost").CatBoostRegressor(**QUIET_CATBOOST),
    "CatBoost": lambda: pytest.importorskip("catboost").CatBoost(QUIET_CATBOOST),
    "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(max_iter=8),
    "GradientBoostingRegressor": lambda: GradientBoostingRegressor(n_estimators=8),
    "RandomForestRegressor": lambda: RandomForestRegressor(n_estimators=8, random_state=0),
    "ExtraTreesRegressor": lambda: ExtraTreesRegressor(n_estimators=8, random_state=0),
}


class Rotation(TransformerMixin, BaseEstimator):
    """A transformer without any learned attribute, so that scikit-learn cannot tell it from an unfitted one."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X @ np.linalg.qr(np.vander(np.arange(1.0, 6.0)))[0]


@pytest.fixture(params=MODELS)
def last_step(request):
    return MODELS[request.param]()


@pytest.fixture
def forest():
    return MODELS["RandomForestRegressor"]()


def assert_reads(model, inner, inner_queries, rows):
    """Check that the leaves are the inner model's, of the rows as it sees them, and the predictions the outer one's."""
    reader = reader_of(model)
    assert_array_equal(reader.library_leaves(rows.queries), reader_of(inner).library_leaves(inner_queries))
    assert_array_equal(reader.predict(rows.queries), model.predict(rows.queries))


def test_pipeline(last_step, full_rows, check_leaf_numbers, check_neighbors):
    model = make_pipeline(StandardScaler(), PCA(4), last_step).fit(full_rows.X, full_rows.y)
    transformed = model[1].transform(model[0].transform(full_rows.queries))
    assert_reads(model, model[-1], transformed, full_rows)
    check_leaf_numbers(model, full_rows.queries, n_trees=8)
    check_neighbors(model, full_rows)


def test_leaves_of_a_pipeline_explain_its_predictions(forest, full_rows):
    model = make_pipeline(StandardScaler(), PCA(4), forest).fit(full_rows.X, full_rows.y)
    leaves = reader_of(model).library_leaves(full_rows.queries)
    assert_allclose(forest_mean(model[-1], leaves), model.predict(full_rows.queries), rtol=1e-12)


def test_pipeline_of_one_step(last_step, full_rows, check_neighbors):
    model = make_pipeline(last_step).fit(full_rows.X, full_rows.y)
    assert_reads(model, model[-1], full_rows.queries, full_rows)
    check_neighbors(model, full_rows)


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_pipeline_with_steps_that_do_nothing(nothing, forest, full_rows, check_neighbors):
    steps = [("first", nothing), ("scale", StandardScaler()), ("third", nothing), ("model", forest)]
    model = Pipeline(steps).fit(full_rows.X, full_rows.y)
    assert_reads(model, model[-1], model["scale"].transform(full_rows.queries), full_rows)
    check_neighbors(model, full_rows)


@pytest.mark.parametrize("transformer", [Rotation(), FunctionTransformer(np.arctan)], ids=["own class", "function"])
def test_pipeline_with_a_transformer_without_state(transformer, forest, full_rows, check_neighbors):
    model = make_pipeline(StandardScaler(), transformer, forest).fit(full_rows.X, full_rows.y)
    inner_queries = transformer.transform(model[0].transform(full_rows.queries))
    assert_reads(model, model[-1], inner_queries, full_rows)
    check_neighbors(model, full_rows)


def test_pipeline_in_a_pipeline(forest, rows, check_neighbors):
    model = make_pipeline(SimpleImputer(), make_pipeline(StandardScaler(), forest)).fit(rows.X, rows.y)
    inner = model[-1]
    inner_queries = inner[0].transform(model[0].transform(rows.queries))
    assert_reads(model, inner[-1], inner_queries, rows)
    check_neighbors(model, rows)


def test_pipeline_that_encodes_a_frame(forest, frame_rows, check_neighbors):
    known = [[*frame_rows.X[name].cat.categories, np.nan] for name in ("color", "city")]
    names = OneHotEncoder(categories=known)
    encode = ColumnTransformer([("number", SimpleImputer(), ["number"]), ("names", names, ["color", "city"])])
    model = make_pipeline(encode, forest).fit(frame_rows.X, frame_rows.y)
    assert_reads(model, model[-1], model[0].transform(frame_rows.queries), frame_rows)
    check_neighbors(model, frame_rows)


def test_frozen_estimator(last_step, full_rows, check_leaf_numbers, check_neighbors):
    inner = last_step.fit(full_rows.X, full_rows.y)
    model = FrozenEstimator(inner)
    assert_reads(model, inner, full_rows.queries, full_rows)
    check_leaf_numbers(model, full_rows.queries, n_trees=8)
    check_neighbors(model, full_rows)


def test_frozen_estimator_counts_as_trained(forest, full_rows):
    inner = forest.fit(full_rows.X, full_rows.y)
    regressor = IBUGRegressor(FrozenEstimator(inner), k=5, calibrate=False).fit(full_rows.X[:300], full_rows.y[:300])
    assert_array_equal(regressor.predict(full_rows.queries), inner.predict(full_rows.queries))


@pytest.mark.parametrize("last_step", sorted(MODELS.keys() - {"CatBoost"}), indirect=True)  # which sklearn cannot clone
def test_transformed_target(last_step, full_rows, check_leaf_numbers, check_neighbors):
    model = TransformedTargetRegressor(last_step, func=np.sinh, inverse_func=np.arcsinh, check_inverse=False)
    model.fit(full_rows.X, full_rows.y / 5)
    inner = model.regressor_
    assert_reads(model, inner, full_rows.queries, full_rows)
    assert_allclose(
        reader_of(model).predict(full_rows.queries), np.arcsinh(inner.predict(full_rows.queries)), rtol=1e-12
    )
    check_leaf_numbers(model, full_rows.queries, n_trees=8)
    check_neighbors(model, full_rows)


def test_wrappers_in_wrappers(forest, full_rows, check_neighbors):
    scaled = TransformedTargetRegressor(make_pipeline(StandardScaler(), forest), transformer=StandardScaler())
    model = FrozenEstimator(make_pipeline(PCA(4), scaled).fit(full_rows.X, full_rows.y))
    inner = model.estimator[-1].regressor_
    inner_queries = inner[0].transform(model.estimator[0].transform(full_rows.queries))
    assert_reads(model, inner[-1], inner_queries, full_rows)
    check_neighbors(model, full_rows)
