"""Trees of scikit-learn that no fit has made: refused before scikit-learn, which believes every number, walks them."""

import io
import json

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ibug
from ibug import IBUGRegressor
from ibug.exceptions import FileFormatError
from tests.persistence.forge import arrays_with, nodes_of_schema, npy, with_other_model
from tests.persistence.same import assert_same

pytestmark = [pytest.mark.once, pytest.mark.kernel]

FOREST = RandomForestRegressor(4, max_leaf_nodes=6, random_state=0)
HISTOGRAM = HistGradientBoostingRegressor(max_iter=4, random_state=0)
MODELS = {
    "random forest": (FOREST, "numbers"),
    "extra trees": (ExtraTreesRegressor(4, max_leaf_nodes=6, random_state=0), "numbers"),
    "gradient boosting": (GradientBoostingRegressor(n_estimators=4, random_state=0), "numbers"),
    "initial model": (
        GradientBoostingRegressor(n_estimators=4, init=FOREST.set_params(n_jobs=1), random_state=0),
        "numbers",
    ),
    "pipeline": (make_pipeline(StandardScaler(), FOREST), "array"),
    "histogram": (HISTOGRAM, "numbers"),
    "categories": (
        HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype", random_state=0),
        "categories",
    ),
}
HISTOGRAMS = ("histogram", "categories")
TREES = [name for name in MODELS if name not in HISTOGRAMS]


@pytest.fixture(scope="module")
def saved(rows, tmp_path_factory):
    """Return where each model was saved."""
    folder, paths = tmp_path_factory.mktemp("trees"), {}

    def path_of(name):
        if name not in paths:
            model, kind = MODELS[name]
            X, y = rows[kind], rows["y"]
            model.fit(X[40:], y[40:])
            u = IBUGRegressor(model, k=5, distribution="normal", prefit=True)
            u.fit(X[40:], y[40:], X_val=X[:40], y_val=y[:40]).save(folder / f"{name}.ibug")
            paths[name] = folder / f"{name}.ibug", u
        return paths[name]

    return path_of


def inner(nodes):
    return np.flatnonzero(nodes["left_child"] != -1 if "left_child" in nodes.dtype.names else nodes["is_leaf"] == 0)


def leaves(nodes):
    return np.flatnonzero(nodes["left_child"] == -1 if "left_child" in nodes.dtype.names else nodes["is_leaf"] == 1)


def children(nodes):
    return ("left_child", "right_child") if "left_child" in nodes.dtype.names else ("left", "right")


def a_feature_far_beyond(nodes):
    nodes["feature" if "feature" in nodes.dtype.names else "feature_idx"][inner(nodes)[0]] = 200_000_000


def the_first_feature_beyond(nodes):
    nodes["feature" if "feature" in nodes.dtype.names else "feature_idx"][inner(nodes)[0]] = 11


def a_negative_feature(nodes):
    nodes["feature" if "feature" in nodes.dtype.names else "feature_idx"][inner(nodes)[0]] = -7


def a_child_beyond(nodes):
    nodes[children(nodes)[0]][inner(nodes)[0]] = 100_000_000


def a_circle(nodes):
    nodes[children(nodes)[1]][inner(nodes)[-1]] = 0


def a_shared_child(nodes):
    left, right = children(nodes)
    nodes[left][inner(nodes)[0]] = nodes[right][inner(nodes)[0]]


NODES = [a_feature_far_beyond, the_first_feature_beyond, a_negative_feature, a_child_beyond, a_circle, a_shared_child]


def load(data):
    return np.load(io.BytesIO(data))


def refuses(path, message):
    with pytest.raises(FileFormatError, match=message):
        ibug.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_not_changed_is_accepted(name, saved, rows, tmp_path):
    path, u = saved(name)
    same = with_other_model(path, tmp_path / "m.ibug", lambda members: None)
    assert_same(u, ibug.load(same), rows[MODELS[name][1]])


@pytest.mark.parametrize("forge", NODES, ids=lambda forge: forge.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_nodes_that_lead_astray(name, forge, saved, tmp_path):
    path, _ = saved(name)
    field = "is_leaf" if name in HISTOGRAMS else "left_child"

    def change(members):
        at, nodes = list(arrays_with(members, field))[-1]
        forge(nodes)
        members[at] = npy(nodes)

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "scikit-learn model has a")


@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_claims_more_features_itself(name, saved, tmp_path):
    """The number of features that counts is the estimator's, by which rows are checked."""
    path, _ = saved(name)

    def change(members):
        for at, nodes in arrays_with(members, "left_child"):
            the_first_feature_beyond(nodes)
            members[at] = npy(nodes)
        for node in nodes_of_schema(members["schema.json"]):
            if node.get("__loader__") == "TreeNode":
                number = node["__reduce__"]["args"]["content"][0]
                number["content"] = "400"
                del number["__id__"]  # by which it would be the same number as others

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "number of features")


@pytest.mark.parametrize("count", ["0", "-3", "2"])
@pytest.mark.parametrize("name", TREES)
def test_a_number_of_nodes_that_is_not_that_of_the_arrays(name, count, saved, tmp_path):
    path, _ = saved(name)

    def change(members):
        for node in nodes_of_schema(members["schema.json"]):
            if node.get("__loader__") == "TreeNode":
                number = node["content"]["content"]["node_count"]
                number["content"] = count
                del number["__id__"]

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "out of its own arrays")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", MODELS)
def test_leaves_without_a_number(name, value, saved, tmp_path):
    path, _ = saved(name)

    def change(members):
        for node in nodes_of_schema(members["schema.json"]):
            if node.get("__loader__") == "TreeNode":
                at = node["content"]["content"]["values"]["file"]
                members[at] = npy(np.full_like(load(members[at]), value))
        for at, nodes in arrays_with(members, "is_leaf"):
            nodes["value"][leaves(nodes)[0]] = value
            members[at] = npy(nodes)

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "not finite")


def test_a_split_by_categories_of_a_feature_that_has_none(saved, tmp_path):
    path, _ = saved("histogram")

    def change(members):
        for at, nodes in arrays_with(members, "is_leaf"):
            nodes["is_categorical"][inner(nodes)[0]] = 1
            members[at] = npy(nodes)

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "by categories of a feature")


def test_a_set_of_categories_that_is_not_there(saved, tmp_path):
    path, _ = saved("categories")

    def change(members):
        found = 0
        for at, nodes in arrays_with(members, "is_leaf"):
            categorical = np.flatnonzero(nodes["is_categorical"])
            found += len(categorical)
            nodes["bitset_idx"][categorical] = 10**6
            members[at] = npy(nodes)
        assert found

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "categories that are not there")


@pytest.mark.parametrize("value", [256.0, -1.0, 1e9, np.nan])
def test_categories_beyond_the_sets(value, saved, tmp_path):
    path, _ = saved("categories")

    def change(members):
        for node in nodes_of_schema(members["schema.json"]):
            if node.get("__class__") == "_BinMapper":
                content = node["content"]["content"]
                known = load(members[content["is_categorical_"]["file"]])
                for feature in np.flatnonzero(known):
                    at = content["bin_thresholds_"]["content"][feature]["file"]
                    members[at] = npy(np.full_like(load(members[at]), value))

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "category beyond")


def test_another_number_of_columns_than_features(saved, tmp_path):
    """With categories nobody else counts the columns which trees are walked with."""
    path, _ = saved("categories")

    def change(members):
        for node in nodes_of_schema(members["schema.json"]):
            if node.get("__class__") == "ColumnTransformer":
                fitted = node["content"]["content"]["transformers_"]["content"]
                del fitted[1]

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "columns")


def test_several_trees_in_one_place(saved, tmp_path):
    path, _ = saved("histogram")

    def change(members):
        text = json.dumps(members["schema.json"])
        schema = json.loads(text)
        for node in nodes_of_schema(schema):
            if isinstance(node.get("_predictors"), dict):
                trees = node["_predictors"]["content"][0]["content"]
                trees.append(trees[0])
        members["schema.json"] = schema

    refuses(with_other_model(path, tmp_path / "m.ibug", change), "several trees")
