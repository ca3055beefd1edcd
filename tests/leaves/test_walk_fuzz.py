"""Random models on awkward rows: the compiled walk finds the leaves and predictions that the library itself finds."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug._compiled import walk as kernel
from ibug.leaves import reader_of
from ibug.leaves._walk import TreeWalk, make_probes

pytestmark = pytest.mark.kernel

# What rows are made of: missing, zero and nearly zero, huge, infinite, equal to others.
SPECIAL = np.array([np.nan, 0.0, -0.0, 1e-36, -1e-36, 5e-324, 1e-30, 1e30, -1e30, np.inf, -np.inf, 0.5, 2.0])

SEEDS = st.integers(0, 2**32 - 1)


def awkward(rng, n_rows, n_features, *, special, infinite=True, decimals=1):
    X = np.round(rng.normal(size=(n_rows, n_features)), decimals)
    choice = SPECIAL if infinite else SPECIAL[np.isfinite(SPECIAL) | np.isnan(SPECIAL)]
    return np.where(rng.random(X.shape) < special, rng.choice(choice, X.shape), X)


def targets(rng, X):
    return np.exp(0.3 * np.nan_to_num(np.clip(X, -3, 3)).sum(axis=1) + 0.3 * rng.normal(size=len(X)))


def assert_walks(model, X, queries, *, exact=True, by_sum=True):
    """Compare walk and library without the check that `prepare` makes, and then see that it lets the walk pass."""
    reader = reader_of(model)
    trees, link = reader._trees()
    walk = TreeWalk(trees)
    assert (link is not None) == by_sum
    for rows in (queries, make_probes(trees, 60, seed=1)):
        leaves, predictions = reader._ask_library(rows)
        for instruction_set in kernel.instruction_sets():
            walked, sums = walk(rows, instruction_set=instruction_set)
            assert_array_equal(walked, leaves)
        for i in (0, len(rows) - 1):  # one row goes another way
            assert_array_equal(walk(rows[i : i + 1])[0], leaves[i : i + 1])
            assert walk(rows[i : i + 1])[1] == sums[i]
        if by_sum and exact:
            assert_array_equal(link(sums), predictions)
        elif by_sum:
            assert_allclose(link(sums), predictions, rtol=1e-12)
    reader.prepare(X)
    assert reader.how.startswith("compiled walk")
    assert ("predictions by" not in reader.how) == by_sum == reader.predicts_by_walk
    for found, expected in zip(
        reader.read(queries), (reader.library_leaves(queries), reader.predict(queries)), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-9)


LIGHTGBM_OBJECTIVES = [
    "regression", "regression_l1", "huber", "fair", "quantile", "mape", "poisson", "gamma", "tweedie",
]  # fmt: skip


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    special=st.sampled_from([0.0, 0.1, 0.5]),
    objective=st.sampled_from(LIGHTGBM_OBJECTIVES),
    boosting=st.sampled_from(["gbdt", "gbdt", "dart", "rf"]),
    n_leaves=st.sampled_from([2, 5, 31, 300]),
    options=st.fixed_dictionaries(
        {
            "zero_as_missing": st.booleans(),
            "use_missing": st.booleans(),
            "boost_from_average": st.booleans(),
            "extra_trees": st.booleans(),
            "reg_sqrt": st.booleans(),
            "linear_tree": st.sampled_from([False, False, False, True]),
            "max_bin": st.sampled_from([3, 255, 400]),
            "monotone_constraints": st.sampled_from([None, [1, 0, -1]]),
            "categorical_feature": st.sampled_from(["", "0", "1,2"]),
        }
    ),
)
def test_lightgbm(seed, special, objective, boosting, n_leaves, options):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    X = awkward(rng, 160, 3, special=special, decimals=int(rng.integers(0, 4)))
    queries = np.concatenate([awkward(rng, 40, 3, special=0.4), rng.permutation(X)[:20]])
    y = targets(rng, X)
    categorical = [int(i) for i in options.pop("categorical_feature").split(",") if i]
    for column in categorical:
        X[:, column] = np.where(rng.random(160) < 0.1, np.nan, rng.integers(0, 40, 160))
        queries[:, column] = rng.choice([-1.0, -0.5, 0.0, 3.7, 12.0, 39.0, 41.0, 1e6, 1e12, np.nan, np.inf], 60)
    linear = options["linear_tree"]
    if linear:
        options |= {"boost_from_average": True, "zero_as_missing": False}  # which LightGBM asks for
        X, queries = np.nan_to_num(X, posinf=5, neginf=-5), np.nan_to_num(queries, posinf=5, neginf=-5)
    if linear or categorical or objective not in ("regression", "poisson", "gamma", "tweedie"):
        options["monotone_constraints"] = None
    if linear and objective == "regression_l1":
        objective = "regression"  # which LightGBM asks for
    params = {
        **options, "objective": objective, "boosting": "gbdt" if linear else boosting, "num_leaves": n_leaves,
        "verbose": -1, "min_data_in_leaf": 3, "min_data_in_bin": 1, "bagging_freq": 1, "bagging_fraction": 0.7,
        "seed": seed % 1000, "num_threads": 1, "cat_smooth": 1.0, "min_data_per_group": 1, "feature_pre_filter": False,
    }  # fmt: skip
    data = lightgbm.Dataset(X, y, categorical_feature=categorical, params=params)
    booster = lightgbm.train(params, data, int(rng.integers(1, 12)))
    # NumPy's exponential function and the C library's differ in the last digit.
    assert_walks(booster, X, queries, exact=objective not in ("poisson", "gamma", "tweedie"), by_sum=not linear)


XGBOOST_OBJECTIVES = [
    "reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:squaredlogerror", "reg:quantileerror",
    "count:poisson", "reg:gamma", "reg:tweedie", "reg:logistic",
]  # fmt: skip


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    special=st.sampled_from([0.0, 0.1, 0.5]),
    objective=st.sampled_from(XGBOOST_OBJECTIVES),
    categorical=st.booleans(),
    options=st.fixed_dictionaries(
        {
            "booster": st.sampled_from(["gbtree", "gbtree", "gbtree", "dart"]),
            "tree_method": st.sampled_from(["hist", "hist", "exact", "approx"]),
            "max_depth": st.sampled_from([1, 3, 6, 11]),
            "num_parallel_tree": st.sampled_from([1, 1, 3]),
            "missing": st.sampled_from([np.nan, 0.0, -1.0, 0.1]),
            "max_bin": st.sampled_from([3, 256, 400]),
            "base_score": st.sampled_from([None, 0.5, 0.3]),
            "monotone_constraints": st.sampled_from([None, (1, 0, -1)]),
            "early_stopping_rounds": st.sampled_from([None, 1]),
            "grow_policy": st.sampled_from(["depthwise", "lossguide"]),
            "gamma": st.sampled_from([0.0, 0.5]),
        }
    ),
)
def test_xgboost(seed, special, objective, categorical, options):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(seed)
    X = awkward(rng, 160, 3, special=special, infinite=False, decimals=int(rng.integers(0, 4)))
    queries = np.concatenate([awkward(rng, 40, 3, special=0.4, infinite=False), rng.permutation(X)[:20]])
    y = targets(rng, X)
    if categorical and options["missing"] != -1.0:
        options |= {"feature_types": ["q", "q", "c"], "enable_categorical": True, "max_cat_to_onehot": 3}
        options |= {"tree_method": "hist", "monotone_constraints": None}
        X[:, 2] = np.where(rng.random(160) < 0.1, np.nan, rng.integers(0, 40, 160))
        queries[:, 2] = rng.choice([0.0, 3.0, 3.7, 12.0, 39.0, 41.0, 1e6, np.nan], 60)
    if objective == "reg:quantileerror":
        options["quantile_alpha"] = 0.3
    if options["grow_policy"] == "lossguide" and options["tree_method"] == "exact":
        options["grow_policy"] = "depthwise"
    y = np.clip(y, 0, 1) if objective == "reg:logistic" else y
    if objective in ("reg:absoluteerror", "reg:quantileerror"):
        options["booster"] = "gbtree"
    n_estimators = int(rng.integers(1, 12))
    stops = options["early_stopping_rounds"] is not None
    model = xgboost.XGBRegressor(
        n_estimators=n_estimators, objective=objective, subsample=0.7, random_state=seed % 1000, n_jobs=1, **options
    )
    model.fit(X, y, eval_set=[(X[::2], y[::-2])] if stops else None, verbose=False)
    assert_walks(model, X, queries, by_sum=options["booster"] == "gbtree" and objective != "reg:logistic")


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    special=st.sampled_from([0.0, 0.1, 0.5]),
    options=st.fixed_dictionaries(
        {
            "loss_function": st.sampled_from(
                ["RMSE", "MAE", "Quantile:alpha=0.3", "Poisson", "Tweedie:variance_power=1.5"]
            ),
            "depth": st.sampled_from([1, 4, 9]),
            "nan_mode": st.sampled_from(["Min", "Max"]),
            "border_count": st.sampled_from([4, 254, 400]),
            "boost_from_average": st.booleans(),
        }
    ),
    native=st.booleans(),
)
def test_catboost(seed, special, options, native):
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(seed)
    X = awkward(rng, 160, 3, special=special, infinite=False, decimals=int(rng.integers(0, 4)))
    queries = np.concatenate([awkward(rng, 40, 3, special=0.4), rng.permutation(X)[:20]])
    if options["loss_function"].startswith(("Poisson", "Tweedie")):
        options["boost_from_average"] = False  # which CatBoost asks for
    options |= {"iterations": int(rng.integers(1, 12)), "random_seed": seed % 1000, "thread_count": 1}
    options |= {"verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoost(options) if native else catboost.CatBoostRegressor(**options)
    model.fit(X, targets(rng, X))
    log_link = options["loss_function"].startswith(("Poisson", "Tweedie"))
    assert_walks(model, X, queries, exact=not log_link)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    special=st.sampled_from([0.0, 0.1, 0.5]),
    options=st.fixed_dictionaries(
        {
            "loss": st.sampled_from(["squared_error", "absolute_error", "poisson", "gamma", "quantile"]),
            "max_leaf_nodes": st.sampled_from([2, 31, 100]),
            "max_bins": st.sampled_from([3, 255]),
            "categorical_features": st.sampled_from([None, [0], [1, 2]]),
            "early_stopping": st.booleans(),
            "monotonic_cst": st.sampled_from([None, [1, 0, -1]]),
        }
    ),
)
def test_hist_gradient_boosting(seed, special, options):
    rng = np.random.default_rng(seed)
    X = awkward(rng, 160, 3, special=special, decimals=int(rng.integers(0, 4)))
    queries = np.concatenate([awkward(rng, 40, 3, special=0.4), rng.permutation(X)[:20]])
    for column in options["categorical_features"] or ():
        X[:, column] = np.where(rng.random(160) < 0.1, np.nan, rng.integers(0, 40, 160))
        queries[:, column] = rng.choice([0.0, 3.0, 12.0, 39.0, 41.0, 1e6, np.nan], 60)
    if options["categorical_features"]:
        options |= {"monotonic_cst": None, "max_bins": 255}
        X, queries = (np.where(np.isinf(rows), 1.0, rows) for rows in (X, queries))  # the model's encoder refuses these
    if options["loss"] == "quantile":
        options["quantile"] = 0.3
    n_rounds = int(rng.integers(1, 12))
    model = HistGradientBoostingRegressor(
        max_iter=n_rounds, min_samples_leaf=3, random_state=seed % 1000, **options
    ).fit(X, targets(rng, X))
    reader = reader_of(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_walks(model, X, queries if options["categorical_features"] is None else reader._matrix(queries))
    reader.prepare(X)
    assert_array_equal(reader.read(queries)[0], reader.library_leaves(queries))
    assert_array_equal(reader.read(queries)[1], reader.predict(queries))
