"""Random models on random rows: the library's own raw prediction and brute force say what is true."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug.leaves import reader_of
from tests.oracles import catboost_raw, hist_gradient_boosting_raw, lightgbm_raw, xgboost_margin


@dataclass(frozen=True)
class Rows:
    X: Any
    y: Any
    queries: Any


@st.composite
def random_rows(draw):
    """Draw training rows and queries with few or many distinct and missing values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_queries, n_features = draw(st.integers(20, 150)), draw(st.integers(1, 30)), draw(st.integers(1, 4))
    X = np.round(rng.normal(size=(n_rows + n_queries, n_features)), draw(st.integers(0, 3)))
    y = X.sum(axis=1) + rng.normal(size=len(X))
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.5]))] = np.nan
    return Rows(X[:n_rows], y[:n_rows], X[n_rows:])


@dataclass(frozen=True)
class Options:
    n_trees: int
    depth: int
    learning_rate: float
    min_rows: int
    variant: int
    seed: int


OPTIONS = st.builds(
    Options,
    n_trees=st.integers(1, 9),
    depth=st.integers(1, 6),
    learning_rate=st.sampled_from([0.05, 0.3, 1.0]),
    min_rows=st.sampled_from([1, 5, 20, 200]),
    variant=st.integers(0, 2),
    seed=st.integers(0, 1000),
)


def fit_lightgbm(rows, options):
    model = (
        pytest.importorskip("lightgbm")
        .LGBMRegressor(
            n_estimators=options.n_trees,
            num_leaves=2**options.depth,
            learning_rate=options.learning_rate,
            min_child_samples=options.min_rows,
            boosting_type=("gbdt", "dart", "rf")[options.variant],
            subsample=0.7,
            subsample_freq=1,
            random_state=options.seed,
            verbose=-1,
            n_jobs=1,
        )
        .fit(rows.X, rows.y)
    )
    return model, lambda leaves: lightgbm_raw(model.booster_, leaves), model.predict(rows.queries, raw_score=True)


def fit_xgboost(rows, options):
    model = (
        pytest.importorskip("xgboost")
        .XGBRegressor(
            n_estimators=options.n_trees,
            max_depth=options.depth,
            learning_rate=options.learning_rate,
            min_child_weight=options.min_rows,
            booster=("gbtree", "gbtree", "dart")[options.variant],
            num_parallel_tree=(1, 3, 1)[options.variant],
            rate_drop=(None, None, 0.5)[options.variant],
            subsample=0.7,
            random_state=options.seed,
            n_jobs=1,
        )
        .fit(rows.X, rows.y)
    )
    margins = model.predict(rows.queries, output_margin=True)
    return model, lambda leaves: xgboost_margin(model.get_booster(), leaves), margins


def fit_catboost(rows, options):
    grow_policy = ("SymmetricTree", "Depthwise", "Lossguide")[options.variant]
    model = (
        pytest.importorskip("catboost")
        .CatBoostRegressor(
            iterations=options.n_trees,
            depth=options.depth,
            learning_rate=options.learning_rate,
            min_data_in_leaf=1 if options.variant == 0 else options.min_rows,
            grow_policy=grow_policy,
            random_seed=options.seed,
            verbose=0,
            allow_writing_files=False,
            thread_count=1,
        )
        .fit(rows.X, rows.y)
    )
    return model, lambda leaves: catboost_raw(model, leaves), model.predict(rows.queries)


def fit_hist_gradient_boosting(rows, options):
    model = HistGradientBoostingRegressor(
        max_iter=options.n_trees,
        max_leaf_nodes=2**options.depth,
        learning_rate=options.learning_rate,
        min_samples_leaf=options.min_rows,
        max_bins=(3, 20, 255)[options.variant],
        random_state=options.seed,
    ).fit(rows.X, rows.y)
    return model, lambda leaves: hist_gradient_boosting_raw(model, leaves), model.predict(rows.queries)


@pytest.mark.parametrize("fit", [fit_lightgbm, fit_xgboost, fit_catboost, fit_hist_gradient_boosting])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(rows=random_rows(), options=OPTIONS)
def test_leaves_explain_predictions_and_neighbors_equal_the_oracle(fit, rows, options, check_neighbors):
    model, raw_of, raw = fit(rows, options)
    reader = reader_of(model)
    assert_allclose(
        raw_of(reader.library_leaves(rows.queries)), raw, rtol=1e-5, atol=1e-5
    )  # XGBoost sums in single precision
    assert_array_equal(reader.predict(rows.queries), model.predict(rows.queries))
    check_neighbors(model, rows)
