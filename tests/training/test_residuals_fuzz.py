"""Residuals by LightGBM models with categories, of any parameters, against a loop over rows and trees."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ibug.leaves import reader_of
from ibug.neighbors import LeafIndex
from ibug.training import own_residuals
from tests.oracles import leave_one_out_by_hand, lightgbm_bags

lightgbm = pytest.importorskip("lightgbm")
pandas = pytest.importorskip("pandas")

N, N_TREES = 150, 6


def squared(raw, y):
    return raw - y, np.ones_like(raw)


def poisson(raw, y):
    return np.exp(raw) - y, np.exp(raw + 0.7)


def gamma(raw, y):
    return 1 - y * np.exp(-raw), y * np.exp(-raw)


def tweedie(raw, y):
    a, b = y * np.exp(-0.5 * raw), np.exp(0.5 * raw)
    return b - a, 0.5 * b + 0.5 * a


def huber(raw, y):
    return np.clip(raw - y, -0.9, 0.9), np.ones_like(raw)


SLOPES = {"regression": squared, "huber": huber, "poisson": poisson, "gamma": gamma, "tweedie": tweedie}


def rows_of(seed, missing=0.1):
    """Return rows with columns of 3, 8 and 30 categories and two of numbers; all of them have missing values."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, n, N) for n in (3, 8, 30)]
    effects = sum(rng.normal(size=n)[code] for n, code in zip((3, 8, 30), codes, strict=True))
    numbers = rng.normal(size=(N, 2))
    y = np.exp(0.4 * effects + 0.3 * numbers[:, 0] + 0.3 * rng.normal(size=N))
    X = pandas.DataFrame(numbers, columns=["x", "z"]).mask(rng.random((N, 2)) < missing)
    for name, code in zip("abc", codes, strict=True):
        X[name] = pandas.Categorical.from_codes(
            np.where(rng.random(N) < missing, -1, code), list(range(code.max() + 1))
        )
    return X, y, rng.uniform(0.2, 3, N)


def penalties(booster, max_cat_to_onehot, lambda_l2, cat_l2):
    """Return the penalty of each leaf, one array for each tree: its parent's, if that splits categories in groups."""
    dumped = booster.dump_model()
    names = dumped["feature_names"]

    def visit(node, penalty, found):
        if "leaf_value" in node:
            found[node.get("leaf_index", 0)] = penalty
            return found
        name = names[node["split_feature"]]
        in_groups = node["decision_type"] == "==" and len(dumped["feature_infos"][name]["values"]) > max_cat_to_onehot
        for side in ("left_child", "right_child"):
            visit(node[side], lambda_l2 + cat_l2 * in_groups, found)
        return found

    found = [visit(tree["tree_structure"], lambda_l2, {}) for tree in dumped["tree_info"]]
    return [np.array([tree[leaf] for leaf in range(len(tree))]) for tree in found]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    objective=st.sampled_from(list(SLOPES)),
    weighted=st.booleans(),
    parameters=st.fixed_dictionaries(
        {
            "cat_l2": st.sampled_from([0.0, 1.0, 10.0, 60.0]),
            "cat_smooth": st.sampled_from([0.0, 1.0, 10.0]),
            "max_cat_to_onehot": st.sampled_from([1, 3, 4, 9, 60]),
            "max_cat_threshold": st.sampled_from([1, 32]),
            "min_data_per_group": st.sampled_from([1, 10, 100]),
            "min_child_samples": st.sampled_from([1, 5, 20]),
            "num_leaves": st.sampled_from([2, 6, 31]),
            "reg_lambda": st.sampled_from([0.0, 0.5, 20.0]),
            "reg_alpha": st.sampled_from([0.0, 0.0, 0.3]),
            "max_delta_step": st.sampled_from([0.0, 0.0, 0.2]),
            "learning_rate": st.sampled_from([0.1, 1.0]),
            "colsample_bytree": st.sampled_from([0.5, 1.0]),
            "subsample": st.sampled_from([0.3, 0.8, 1.0]),
            "subsample_freq": st.sampled_from([0, 1, 3]),
            "bagging_seed": st.sampled_from([0, 3, 2**31 - 1]),
            "extra_trees": st.booleans(),
            "boost_from_average": st.booleans(),
        }
    ),
)
def test_rows_are_left_out_of_leaves_below_categories(seed, objective, weighted, parameters):
    X, y, weights = rows_of(seed)
    weights = weights if weighted else None
    model = lightgbm.LGBMRegressor(n_estimators=N_TREES, objective=objective, verbose=-1, n_jobs=1, **parameters)
    model.fit(X, y, sample_weight=weights)
    if parameters["subsample_freq"] and parameters["subsample"] < 1:  # a round that finds no split draws again
        sizes = [tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]]
        assume(len(sizes) == N_TREES and min(sizes) > 1)
    reader = reader_of(model)
    leaves = reader.library_leaves(X)
    own = own_residuals(reader, LeafIndex.build(leaves), y, weights)
    assert (own.kind, own.reason) == ("leave-one-out", "")
    recipe = reader.recipe(y, weights)
    expected = leave_one_out_by_hand(
        leaves,
        np.split(recipe.leaves.values, recipe.leaves.first[1:-1]),
        recipe.targets,
        SLOPES[objective],
        start=recipe.start,
        rates=recipe.rates,
        weights=recipe.weights,
        l1=parameters["reg_alpha"],
        l2=penalties(model.booster_, parameters["max_cat_to_onehot"], parameters["reg_lambda"], parameters["cat_l2"]),
        max_step=parameters["max_delta_step"],
        seen=_bags(N, parameters) if parameters["subsample_freq"] else None,
    )
    predictions = np.exp(expected) if objective in ("poisson", "gamma", "tweedie") else expected
    np.testing.assert_allclose(own.values, y - predictions, rtol=1e-6, atol=1e-6)


def _bags(n_rows, parameters):
    names = ("bagging_seed", "subsample", "subsample_freq")
    return lightgbm_bags(n_rows, N_TREES, *(parameters[name] for name in names))


def test_bags_of_several_blocks_of_rows(monkeypatch):
    """LightGBM draws 1024 rows at a time; trees are read in parts that begin between two draws."""
    rng = np.random.default_rng(0)
    n = 2500
    X, weights = rng.normal(size=(n, 3)), rng.uniform(0.2, 3, n)
    y = X[:, 0] + rng.normal(size=n)
    parameters = {"bagging_seed": 11, "subsample": 0.6, "subsample_freq": 2}
    model = lightgbm.LGBMRegressor(n_estimators=N_TREES, verbose=-1, n_jobs=2, **parameters)
    reader = reader_of(model.fit(X, y, sample_weight=weights))
    bags = _bags(n, parameters)
    recipe = reader.recipe(y, weights)
    np.testing.assert_array_equal(recipe.seen(slice(0, N_TREES)), bags)
    np.testing.assert_array_equal(recipe.seen(slice(3, 5)), bags[3:5])
    index = LeafIndex.build(reader.library_leaves(X))
    own = own_residuals(reader, index, y, weights)
    assert (own.kind, own.reason) == ("leave-one-out", "")
    monkeypatch.setattr("ibug.training._residuals._CODES_PER_CHUNK", 3 * 4096)
    np.testing.assert_array_equal(own_residuals(reader, index, y, weights).values, own.values)
    backwards = LeafIndex.build(reader.library_leaves(X[::-1]))
    reason = own_residuals(reader, backwards, y[::-1], weights[::-1]).reason
    assert "bagging needs the rows in the order of the training" in reason


@pytest.mark.parametrize(("right", "wrong"), [("[cat_l2: 10]", "[cat_l2: 0]"), ("onehot: 4]", "onehot: 40]")])
def test_another_penalty_does_not_pass(right, wrong):
    """The check of leaf values sees the penalty: with that of other leaves, there are no residuals."""
    X, y, _ = rows_of(0)
    model = lightgbm.LGBMRegressor(n_estimators=N_TREES, cat_smooth=1, min_data_per_group=10, verbose=-1).fit(X, y)
    text = model.booster_.model_to_string()
    assert right in text
    kinds = []
    for content in (text, text.replace(right, wrong)):
        reader = reader_of(lightgbm.Booster(model_str=content))
        kinds.append(own_residuals(reader, LeafIndex.build(reader.library_leaves(X)), y, None).kind)
    assert kinds == ["leave-one-out", "none"]
