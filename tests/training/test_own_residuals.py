"""Residuals by the model itself: leaf values without the row, against a loop over rows and trees; and who cannot."""

import re

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug.leaves import Boosting, LeafReader, reader_of
from ibug.leaves._recipe import LeafValues, Loss
from ibug.neighbors import LeafIndex
from ibug.training import own_residuals
from tests.oracles import leave_one_out_by_hand

N = 150


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N, 3)), 1)  # with ties
    y = 5 + 2 * X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=N)
    return X, y, rng.uniform(0.2, 3, N)


def squared(raw, y):
    return raw - y, np.ones_like(raw)


def huber(slope):
    return lambda raw, y: (np.clip(raw - y, -slope, slope), np.ones_like(raw))


def pseudo_huber(raw, y):
    scale = 1 + (raw - y) ** 2
    return (raw - y) / np.sqrt(scale), scale**-1.5


def poisson(added):
    return lambda raw, y: (np.exp(raw) - y, np.exp(raw + added))


def gamma(raw, y):
    return 1 - y * np.exp(-raw), y * np.exp(-raw)


def tweedie(raw, y, power=1.5):
    a, b = y * np.exp((1 - power) * raw), np.exp((2 - power) * raw)
    return b - a, (2 - power) * b - (1 - power) * a


def lightgbm_model(**parameters):
    module = pytest.importorskip("lightgbm")
    return module.LGBMRegressor(n_estimators=12, num_leaves=6, min_child_samples=3, verbose=-1, n_jobs=1, **parameters)


def xgboost_model(**parameters):
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=12, max_depth=3, n_jobs=1, **parameters)


def catboost_model(**parameters):
    module = pytest.importorskip("catboost")
    return module.CatBoostRegressor(
        **{"iterations": 12, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False, **parameters}
    )


def histogram_model(**parameters):
    return HistGradientBoostingRegressor(max_iter=12, max_leaf_nodes=6, min_samples_leaf=3, **parameters)


def found(model, X, y, weights=None, n_jobs=None):
    reader = reader_of(model)
    return own_residuals(reader, LeafIndex.build(reader.library_leaves(X)), y, weights, n_jobs=n_jobs)


CASES = {
    "lightgbm": (lightgbm_model, {}, squared),
    "lightgbm, penalties": (lightgbm_model, {"reg_lambda": 3.0, "reg_alpha": 4.0}, squared),
    "lightgbm, steps": (lightgbm_model, {"max_delta_step": 0.5}, squared),
    "lightgbm, from zero": (lightgbm_model, {"boost_from_average": False}, squared),
    "lightgbm, one step": (lightgbm_model, {"learning_rate": 1.0}, squared),
    "lightgbm, huber": (lightgbm_model, {"objective": "huber", "alpha": 1.2}, huber(1.2)),
    "lightgbm, poisson": (lightgbm_model, {"objective": "poisson"}, poisson(0.7)),
    "lightgbm, gamma": (lightgbm_model, {"objective": "gamma"}, gamma),
    "lightgbm, tweedie": (lightgbm_model, {"objective": "tweedie"}, tweedie),
    "xgboost": (xgboost_model, {}, squared),
    "xgboost, penalties": (xgboost_model, {"reg_lambda": 0.0, "reg_alpha": 2.0}, squared),
    "xgboost, steps": (xgboost_model, {"max_delta_step": 0.5, "base_score": 0.5}, squared),
    "xgboost, huber": (xgboost_model, {"objective": "reg:pseudohubererror", "base_score": 5.0}, pseudo_huber),
    "xgboost, poisson": (xgboost_model, {"objective": "count:poisson"}, poisson(0.7)),
    "xgboost, gamma": (xgboost_model, {"objective": "reg:gamma"}, gamma),
    "xgboost, tweedie": (xgboost_model, {"objective": "reg:tweedie"}, tweedie),
    "catboost": (catboost_model, {}, squared),
    "catboost, ordered": (catboost_model, {"boosting_type": "Ordered", "l2_leaf_reg": 0.5}, squared),
    "catboost, no symmetry": (catboost_model, {"grow_policy": "Lossguide"}, squared),
    "histograms": (histogram_model, {"l2_regularization": 2.0}, squared),
    "histograms, poisson": (histogram_model, {"loss": "poisson"}, poisson(0.0)),
    "histograms, gamma": (histogram_model, {"loss": "gamma"}, gamma),
    "gradient boosting": (lambda: GradientBoostingRegressor(n_estimators=12), {}, squared),
    "gradient boosting, from zero": (lambda: GradientBoostingRegressor(n_estimators=12, init="zero"), {}, squared),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_row_is_left_out_of_its_leaves(rows, name, weighted):
    make, parameters, slopes = CASES[name]
    X, y, weights = rows
    if slopes not in (squared, pseudo_huber) and "huber" not in name:
        y = np.round(np.exp(y / 4)) + (0 if "poisson" in name else 0.5)
    weights = weights if weighted else None
    model = make(**parameters).fit(X, y, sample_weight=weights)
    reader = reader_of(model)
    recipe = reader.recipe(y, weights)
    expected = leave_one_out_by_hand(
        reader.library_leaves(X),
        np.split(recipe.leaves.values, recipe.leaves.first[1:-1]),
        recipe.targets,
        slopes,
        start=recipe.start,
        rates=recipe.rates,
        weights=recipe.weights,
        l1=recipe.l1,
        l2=np.split(np.broadcast_to(recipe.l2, recipe.leaves.values.shape), recipe.leaves.first[1:-1]),
        max_step=recipe.max_step,
    )
    predictions = np.exp(expected) if any(loss in name for loss in ("poisson", "gamma", "tweedie")) else expected
    own = found(model, X, y, weights)
    assert (own.kind, own.reason) == ("leave-one-out", "")
    np.testing.assert_allclose(own.values, y - predictions, rtol=1e-4, atol=1e-5)
    # The model's values were used for the gradients only: they sum to its predictions.
    assert np.abs(own.values).mean() > np.abs(y - model.predict(X)).mean()


@pytest.mark.parametrize("size", [1e-308, 1e-300, 1e-30, 7.0, 1e30])
@pytest.mark.parametrize("make", [lightgbm_model, xgboost_model, catboost_model, histogram_model])
def test_constant_weights_of_any_size_are_those_of_a_model_without(rows, make, size):
    X, y, _ = rows
    model = make().fit(X, y)
    own = found(model, X, y, np.full(len(y), size))
    assert (own.kind, own.reason) == ("leave-one-out", "")
    np.testing.assert_allclose(own.values, found(model, X, y).values, rtol=1e-4, atol=1e-5)


class Told(LeafReader):
    """A reader of leaves and a recipe that are given."""

    n_trees = 1

    def __init__(self, recipe):
        super().__init__(None)
        self.given = recipe

    def recipe(self, y, sample_weight, output=0):
        return self.given

    def library_leaves(self, X):
        raise NotImplementedError


def by_hand(leaves, values, y, *, weights=None, l2=0.0, rate=1.0, start=0.0):
    recipe = Boosting(
        LeafValues.of([np.asarray(tree, float) for tree in values]),
        Loss(),
        start,
        np.full(len(values), rate),
        np.asarray(y, float),
        weights,
        lambda raw: raw,
        l2=l2,
    )
    return own_residuals(Told(recipe), LeafIndex.build(leaves), np.asarray(y, float), weights)


def test_one_tree_by_hand():
    # Leaf 0 has the targets 1, 2, 6 and the mean 3; leaf 1 has 5 alone: without it nothing is known.
    own = by_hand([[0], [0], [0], [1]], [[3.0, 5.0]], [1, 2, 6, 5])
    np.testing.assert_allclose(own.values, [1 - 4, 2 - 3.5, 6 - 1.5, 5 - 0])
    own = by_hand([[0], [0], [0], [1]], [[-0.5 * 0.25, 0.5 * 0.5]], [1, 2, 6, 5], start=4.0, rate=0.5, l2=1.0)
    assert own.kind == "none"  # Σ (y − 4) = −3 over 3 + 1 in the first leaf, 1 over 2 in the other
    own = by_hand([[0], [0], [0], [1]], [[-0.375, 0.25]], [1, 2, 6, 5], start=4.0, rate=0.5, l2=1.0)
    expected = [1 - (4 + 0.5 * 0 / 3), 2 - (4 + 0.5 * -1 / 3), 6 - (4 + 0.5 * -5 / 3), 5 - 4]
    np.testing.assert_allclose(own.values, expected)


def test_weights_by_hand():
    # The weighted mean of 1 and 5, with weights 3 and 1, is 2; a row without weight leaves nothing.
    own = by_hand([[0], [0], [0]], [[2.0]], [1, 5, 9], weights=np.array([3.0, 1.0, 0.0]))
    np.testing.assert_allclose(own.values, [1 - 5, 5 - 1, 9 - 2])


def test_rows_and_trees_in_parts_and_threads_change_nothing(rows, monkeypatch):
    X, y, weights = rows
    model = lightgbm_model().fit(X, y, sample_weight=weights)
    expected = found(model, X, y, weights).values
    monkeypatch.setattr("ibug.training._residuals._CODES_PER_CHUNK", 5 * N)
    np.testing.assert_array_equal(found(model, X, y, weights).values, expected)
    monkeypatch.setattr("ibug.training._residuals._ROWS_PER_TASK", 7)
    one, two = (found(model, X, y, weights, n_jobs).values for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, expected, rtol=1e-9)


def test_wide_codes(rows):
    """More than 256 leaves in a tree, and more than 512 rows in a block."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=1300)
    leaves = rng.integers(0, 400, (1300, 1))
    counts = np.bincount(leaves[:, 0], minlength=400)
    sums = np.bincount(leaves[:, 0], y, minlength=400)
    own = by_hand(leaves, [sums / np.maximum(counts, 1)], y)
    others = counts[leaves[:, 0]] - 1
    expected = np.where(others > 0, (sums[leaves[:, 0]] - y) / np.maximum(others, 1), 0.0)
    np.testing.assert_allclose(own.values, y - expected, atol=1e-9)


@pytest.mark.parametrize("make", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_out_of_bag(rows, make, weighted):
    X, y, weights = rows
    weights = weights if weighted else None
    model = make(n_estimators=40, bootstrap=True, max_samples=0.7, min_samples_leaf=2, random_state=0)
    model.fit(X, y, sample_weight=weights)
    own = found(model, X, y, weights)
    assert own.kind == "out-of-bag"
    unseen = [np.bincount(sample, minlength=N) == 0 for sample in model.estimators_samples_]
    for row in range(N):
        trees = [tree for tree, out in zip(model.estimators_, unseen, strict=True) if out[row]]
        assert own.values[row] == pytest.approx(y[row] - np.mean([tree.predict(X[[row]])[0] for tree in trees]))
    if not weighted:
        model.oob_score = True
        expected = y - model.fit(X, y).oob_prediction_
        np.testing.assert_allclose(own.values, expected)


@pytest.mark.parametrize(
    "wrap",
    [
        FrozenEstimator,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp),
    ],
)
def test_wrapped_models(rows, wrap):
    X, y, _ = rows
    y = np.exp(y / 3)
    inner = histogram_model()
    model = wrap(inner.fit(X, y) if wrap is FrozenEstimator else inner)
    own = found(model.fit(X, y), X, y)
    if wrap is FrozenEstimator:
        expected = found(inner, X, y).values
    elif isinstance(model, TransformedTargetRegressor):
        expected = y - np.exp(np.log(y) - found(model.regressor_, X, np.log(y)).values)
    else:
        expected = found(model[-1], model[0].transform(X), y).values
    np.testing.assert_allclose(own.values, expected)


def test_boosters_and_their_files(rows, tmp_path):
    X, y, _ = rows
    model = xgboost_model(learning_rate=0.07, reg_lambda=4.0).fit(X, y)
    booster = model.get_booster()
    booster.save_model(tmp_path / "model.ubj")  # which does not tell the learning rate and the penalty
    loaded = type(booster)(model_file=tmp_path / "model.ubj")
    for other in (booster, loaded):
        np.testing.assert_allclose(found(other, X, y).values, found(model, X, y).values, rtol=1e-4, atol=1e-5)
    model = lightgbm_model().fit(X, y)
    loaded = type(model.booster_)(model_str=model.booster_.model_to_string())
    for other in (model.booster_, loaded):
        np.testing.assert_array_equal(found(other, X, y).values, found(model, X, y).values)


@pytest.mark.parametrize(
    ("make", "parameters", "reason"),
    [
        (lightgbm_model, {"data_sample_strategy": "goss"}, "samples of the rows"),
        (lightgbm_model, {"boosting_type": "dart"}, "'dart', in which later trees change the values"),
        (lightgbm_model, {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, "boosting is 'rf'"),
        (lightgbm_model, {"monotone_constraints": [1, 0, 0]}, "monotone_constraints hold values between those of"),
        (lightgbm_model, {"linear_tree": True}, "linear models"),
        (lightgbm_model, {"path_smooth": 1.0}, "smoothed"),
        (lightgbm_model, {"objective": "regression_l1"}, "medians"),
        (lightgbm_model, {"objective": "fair"}, "'fair', is not known"),
        (lightgbm_model, {"use_quantized_grad": True}, r"do not follow from these rows.*use_quantized_grad"),
        (xgboost_model, {"subsample": 0.5}, "subsample=0.5"),
        (xgboost_model, {"booster": "dart"}, "booster is 'dart'"),
        (xgboost_model, {"num_parallel_tree": 2}, "several trees in each round"),
        (xgboost_model, {"objective": "reg:absoluteerror"}, "'reg:absoluteerror', is not known"),
        (catboost_model, {"loss_function": "MAE"}, "another than 'RMSE'"),
        (catboost_model, {"leaf_estimation_iterations": 2}, "several steps"),
        (catboost_model, {"langevin": True}, "noisy"),
        (xgboost_model, {"monotone_constraints": (1, 0, 0)}, "monotone_constraints"),
        (histogram_model, {"monotonic_cst": [1, 0, 0]}, "monotonic_cst holds values"),
        (histogram_model, {"loss": "absolute_error"}, "medians"),
        (GradientBoostingRegressor, {"subsample": 0.5}, "subsample=0.5"),
        (GradientBoostingRegressor, {"loss": "huber"}, "medians"),
        (GradientBoostingRegressor, {"n_iter_no_change": 3}, "held out a part of the rows .*without random_state"),
        (GradientBoostingRegressor, {"init": RandomForestRegressor(3)}, "another model"),
        (ExtraTreesRegressor, {"n_estimators": 3}, "bootstrap=False"),
        (RandomForestRegressor, {"n_estimators": 2}, "out of no bag"),
        (RandomForestRegressor, {"criterion": "absolute_error", "min_samples_leaf": 4}, "not the means"),
    ],
)
def test_models_that_cannot_tell(rows, make, parameters, reason):
    X, y, _ = rows
    own = found(make(**parameters).fit(X, y), X, y)
    assert (own.values, own.kind) == (None, "none")
    assert own.reason.startswith("The model cannot compute out-of-sample residuals of its training rows: ")
    assert re.search(reason, own.reason), own.reason


@pytest.mark.parametrize("make", [lightgbm_model, xgboost_model, catboost_model, histogram_model])
def test_rows_targets_and_weights_must_be_those_of_the_training(rows, make):
    X, y, weights = rows
    model = make().fit(X, y)
    wrong = {
        "another row": (np.concatenate([X[1:], X[:1] + 1]), np.concatenate([y[1:], y[:1]]), None),
        "fewer rows": (X[:-1], y[:-1], None),
        "another order": (X, y[::-1].copy(), None),
        "weights": (X, y, weights),
    }
    for case in wrong.values():
        own = found(model, *case)
        assert own.values is None
        assert "It was trained on other rows, targets or weights" in own.reason
    assert found(make().fit(X, y, sample_weight=weights), X, y).values is None


def test_categories_of_catboost(rows):
    """In training, CatBoost gives a category other codes than afterwards; few of them are told apart one by one."""
    pandas = pytest.importorskip("pandas")
    X, y, _ = rows
    frame = pandas.DataFrame(X, columns=list("abc")).assign(d=np.random.default_rng(0).integers(0, 30, N).astype(str))
    own = found(catboost_model(cat_features=["d"], iterations=40).fit(frame, y), frame, y)
    assert own.values is None
    assert "categories" in own.reason
    one_by_one = catboost_model(cat_features=["d"], one_hot_max_size=40).fit(frame, y)
    assert found(one_by_one, frame, y).kind == "leave-one-out"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: histogram_model(early_stopping=True, validation_fraction=0.3, random_state=5),
        lambda: GradientBoostingRegressor(n_estimators=12, n_iter_no_change=12, random_state=5),
    ],
)
def test_rows_that_were_held_out_for_early_stopping(rows, make, weighted):
    X, y, weights = rows
    weights = weights if weighted else None
    model = make().fit(X, y, sample_weight=weights)
    reader = reader_of(model)
    recipe = reader.recipe(y, weights)
    values = np.split(recipe.leaves.values, recipe.leaves.first[1:-1])
    seen = recipe.seen(slice(0, len(values)))
    assert seen.sum() == N - np.ceil(model.validation_fraction * N)
    expected = leave_one_out_by_hand(
        reader.library_leaves(X),
        values,
        y,
        squared,
        start=recipe.start,
        rates=recipe.rates,
        weights=weights,
        seen=np.broadcast_to(seen, (len(values), N)),
    )
    own = found(model, X, y, weights)
    assert (own.kind, own.reason) == ("leave-one-out", "")
    np.testing.assert_allclose(own.values, y - expected, rtol=1e-6, atol=1e-6)
    # A row that the model has not seen has the residual of its prediction.
    np.testing.assert_allclose(own.values[~seen[0]], (y - model.predict(X))[~seen[0]], atol=1e-6)
    assert found(model, X[::-1], y[::-1], None if weights is None else weights[::-1]).kind == "none"


def test_what_cannot_be_read_is_a_reason_too():
    class Broken(Told):
        def recipe(self, y, sample_weight, output=0):
            raise KeyError("eta")

    own = own_residuals(Broken(None), LeafIndex.build([[0]]), np.ones(1), None)
    assert own.reason.endswith("its parameters cannot be read (KeyError: 'eta').")
