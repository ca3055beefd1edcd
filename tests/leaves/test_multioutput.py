"""Models of several targets: leaf numbers are those of the libraries, and of the members one after another."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug.leaves import reader_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.column_stack([X[:, 0] + RNG.normal(size=200), X[:, 1] * X[:, 2], 2 * X[:, 0] + RNG.normal(size=200)])
SMALL = HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=6)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMRegressor(n_estimators=5, num_leaves=6, verbose=-1, n_jobs=1)


def xgboost(**options):
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1, **options)


def catboost(loss="MultiRMSE"):
    library = pytest.importorskip("catboost")
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return library.CatBoostRegressor(iterations=5, depth=3, loss_function=loss, **quiet)


# By model: how it is made, the number of trees, and whether a tree is for one output.
MODELS = {
    "XGBoost, vector leaves": (lambda: xgboost(multi_strategy="multi_output_tree"), 5, False),
    "XGBoost, one output per tree": (xgboost, 15, True),
    "XGBoost, trees in parallel": (lambda: xgboost(num_parallel_tree=2), 30, True),
    "CatBoost": (catboost, 5, False),
    "CatBoost, missing targets": (lambda: catboost("MultiRMSEWithMissingValues"), 5, False),
    "RandomForest": (lambda: RandomForestRegressor(5, random_state=0), 5, False),
    "ExtraTrees": (lambda: ExtraTreesRegressor(5, random_state=0), 5, False),
    "MultiOutput, scikit-learn": (lambda: MultiOutputRegressor(SMALL), 15, True),
    "MultiOutput, LightGBM": (lambda: MultiOutputRegressor(lightgbm()), 15, True),
    "MultiOutput, pipelines": (lambda: MultiOutputRegressor(make_pipeline(StandardScaler(), SMALL)), 15, True),
    "Chain": (lambda: RegressorChain(SMALL, order=[2, 0, 1]), 15, True),
    "Chain, cross-fitted": (lambda: RegressorChain(lightgbm(), cv=3), 15, True),
    "Pipeline": (lambda: make_pipeline(StandardScaler(), MultiOutputRegressor(SMALL)), 15, True),
    "Frozen": (lambda: FrozenEstimator(MultiOutputRegressor(SMALL).fit(X, Y)), 15, True),
    "TransformedTarget": (
        lambda: TransformedTargetRegressor(RandomForestRegressor(5), transformer=StandardScaler()),
        5,
        False,
    ),
}


@pytest.fixture(params=MODELS)
def case(request):
    make, n_trees, apart = MODELS[request.param]
    model = make().fit(X, Y)
    return model, n_trees, apart


def test_leaves_are_the_libraries_own(case):
    model, n_trees, apart = case
    reader = reader_of(model)
    plain = reader.library_leaves(X)
    reader.prepare(X)
    assert plain.shape == (200, n_trees)
    assert reader.n_trees == n_trees
    assert reader.n_outputs == 3
    np.testing.assert_array_equal(reader.read_leaves(X), plain)
    some = np.array([0, n_trees - 1])
    np.testing.assert_array_equal(reader.read_leaves(X, trees=some), plain[:, some])
    leaves, predictions = reader.read(X)
    np.testing.assert_array_equal(leaves, plain)
    np.testing.assert_allclose(predictions, model.predict(X), rtol=1e-6)
    np.testing.assert_array_equal(reader.predict(X), model.predict(X))
    if apart:
        assert np.bincount(reader.outputs).tolist() == [n_trees // 3] * 3
    else:
        assert reader.outputs is None


def test_what_was_found_is_recalled(case):
    model, *_ = case
    reader, other = reader_of(model), reader_of(model)
    reader.prepare(X)
    other.restore(reader.state())
    assert other.how == reader.how
    np.testing.assert_array_equal(other.read_leaves(X), reader.read_leaves(X))


def test_members_of_a_chain_see_predictions():
    chain = RegressorChain(SMALL, order=[2, 0, 1]).fit(X, Y)
    rows, parts = X, []
    for member in chain.estimators_:
        parts.append(reader_of(member).library_leaves(rows))
        rows = np.column_stack([rows, member.predict(rows)])
    reader = reader_of(chain)
    np.testing.assert_array_equal(reader.library_leaves(X), np.concatenate(parts, axis=1))
    assert reader.outputs.tolist() == [2] * 5 + [0] * 5 + [1] * 5


def test_trees_of_one_output_are_its_own():
    """A tree of output j, alone, moves the prediction of output j and no other."""
    library = pytest.importorskip("xgboost")
    model = xgboost().fit(X, Y)
    reader = reader_of(model)
    booster = model.get_booster()
    rows = library.DMatrix(X)
    first = booster.predict(rows, iteration_range=(0, 1))
    leaves = reader.library_leaves(X)
    for tree in range(3):
        output = reader.outputs[tree]
        for leaf in np.unique(leaves[:, tree]):
            assert np.ptp(first[leaves[:, tree] == leaf, output]) < 1e-6
