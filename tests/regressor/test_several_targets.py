"""Several targets at once, from fit to files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ibug
from ibug import IBUGRegressor, Sampling
from ibug.distributions import JointStack
from ibug.exceptions import InvalidInputError
from ibug.explain import influence, plain_neighbors, rank_for_labelling
from ibug.leaves import reader_of
from ibug.metrics import evaluate

SMALL = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=8, random_state=0)


def made(n, seed=0, correlation=0.8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noise = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=n)
    return X, np.column_stack([X[:, 0] + X[:, 1], 3 * X[:, 1]]) + noise * (0.3 + np.abs(X[:, :1]))


X, Y = made(900)
TRAIN, VALID, NEW = slice(0, 500), slice(500, 700), slice(700, 900)


@pytest.fixture(scope="module")
def model():
    return MultiOutputRegressor(SMALL).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def u(model):
    fitted = IBUGRegressor(model, prefit=True, random_state=0)
    return fitted.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])


def test_shapes(u, model):
    d = u.predict_dist(X[NEW])
    assert isinstance(d, JointStack)
    np.testing.assert_allclose(u.predict(X[NEW]), model.predict(X[NEW]))
    assert u.predict_interval(X[NEW]).shape == (200, 2, 2)
    assert u.predict_interval(X[NEW], [0.5, 0.9]).shape == (200, 2, 2, 2)
    assert u.predict_interval(X[NEW], [0.5, 0.9], joint=True).shape == (200, 2, 2, 2)
    assert u.predict_quantiles(X[NEW]).shape == (200, 2, 3)
    assert u.predict_var(X[NEW]).shape == (200, 2)
    assert u.kneighbors(X[NEW], 5)[1].shape == (200, 5)
    assert d.cov().shape == (200, 2, 2)
    found, affinities, rows = u.predict_with_neighbors(X[NEW], 4)
    np.testing.assert_array_equal(found.mean(), d.mean())
    assert affinities.shape == rows.shape == (200, 4)
    np.testing.assert_array_equal(u.predict_var(X[NEW]), d.var())
    np.testing.assert_array_equal(u.predict_quantiles(X[NEW]), d.ppf([0.05, 0.5, 0.95]))
    np.testing.assert_array_equal(u.predict_interval(X[NEW])[:, :, 0], d.interval(0.9)[0])
    assert u.training_targets_.shape == (500, 2)
    assert u.rule_.gamma.shape == (2,)
    assert u.stack_["weight"].sum() == pytest.approx(1)
    assert set(u.tuning_["target"]) == {0, 1}
    assert u.score(X[NEW], Y[NEW]) > 0.5
    assert u.affinity_score(X[NEW]).shape == (200,)
    assert [test.name for test in u.monitor(X[NEW])] == ["similarity", "prediction"]


def test_neighbours_are_those_of_all_trees(u, model):
    leaves = np.concatenate([u.source_.leaves.reader.library_leaves(X)], axis=1)
    equal = (leaves[NEW][:, None] == leaves[TRAIN][None]).sum(axis=2)
    order = np.argsort(-equal, axis=1, kind="stable")[:, :7]
    affinities, rows = u.kneighbors(X[NEW], 7)
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(affinities, np.take_along_axis(equal, order, axis=1))


def test_each_target_has_its_own_neighbours_and_rule(u, model):
    """The rules of the targets are those that they would have alone, by their own trees."""
    for j in range(2):
        alone = IBUGRegressor(model.estimators_[j], prefit=True, random_state=0)
        alone.fit(X[TRAIN], Y[TRAIN, j], X_val=X[VALID], y_val=Y[VALID, j])
        np.testing.assert_allclose(u.rule_.parts[j].stack.weights, alone.rule_.parts[0].stack.weights, atol=1e-9)
        y = Y[NEW, j]
        np.testing.assert_allclose(u.predict_dist(X[NEW]).own[j].crps(y), alone.predict_dist(X[NEW]).crps(y), rtol=1e-6)
    batch = next(iter(u.batches(X[NEW])))
    expected = IBUGRegressor(model.estimators_[1], prefit=True).fit(
        X[TRAIN], Y[TRAIN, 1], X_val=X[VALID], y_val=Y[VALID, 1]
    )
    np.testing.assert_array_equal(batch.per_target[1].rows[:, :5], expected.kneighbors(X[NEW], 5)[1])


def test_weights_of_outputs(model, tmp_path):
    """The affinity is the weighted number of common leaves, exactly."""
    u = IBUGRegressor(model, prefit=True, sampling=Sampling(output_weights=[3, 1]), random_state=0)
    u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    leaves = [reader_of(one).library_leaves(X) for one in model.estimators_]
    equal = [(one[NEW][:, None] == one[TRAIN][None]).sum(axis=2) for one in leaves]
    weighted = 3 * equal[0] + equal[1]
    order = np.argsort(-weighted, axis=1, kind="stable")[:, :6]
    affinities, rows = u.kneighbors(X[NEW], 6)
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(affinities, np.take_along_axis(weighted, order, axis=1))
    assert u.source_.out_of_sample.kind == "leave-one-out"
    u.save(tmp_path / "u.ibug")
    for back in (ibug.load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(u))):
        np.testing.assert_array_equal(back.kneighbors(X[NEW], 6)[1], order)
    trained = IBUGRegressor(MultiOutputRegressor(SMALL), sampling=Sampling(output_weights=[3, 1]), random_state=0).fit(
        X[TRAIN], Y[TRAIN]
    )
    np.testing.assert_array_equal(trained.kneighbors(X[NEW], 6)[1], order)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1], "must be 2 numbers"), ([1, 0], "whole numbers"), ([1, 0.5], "whole numbers"), (2, "whole numbers")],
)
def test_weights_of_outputs_that_are_refused(model, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(model, prefit=True, sampling=Sampling(output_weights=weights)).fit(
            X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID]
        )


def test_shared_trees_have_no_weights():
    forest = RandomForestRegressor(5).fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(InvalidInputError, match="all targets at once"):
        IBUGRegressor(forest, prefit=True, sampling=Sampling(output_weights=[1, 2])).fit(
            X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID]
        )


@pytest.mark.parametrize("order", ["first", "last", "random"])
def test_a_share_of_the_trees_is_one_of_each_target(model, order):
    u = IBUGRegressor(model, prefit=True, sampling=Sampling(tree_fraction=0.5, tree_order=order), random_state=0)
    u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    outputs = u.source_.leaves.reader.outputs[u.source_.leaves.trees]
    assert np.bincount(outputs).tolist() == [20, 20]
    if order == "first":
        assert u.source_.leaves.trees.tolist() == [*range(20), *range(40, 60)]
    assert u.predict_dist(X[NEW]).energy_score(Y[NEW]).mean() < 0.6


def test_dependence_is_found(u):
    d = u.predict_dist(X[NEW])
    assert 0.4 < d.correlation()[:, 0, 1].mean() < 0.95
    rng = np.random.default_rng(0)
    samples = d.rvs(400, random_state=0)
    mixed = samples.copy()
    for i in range(200):
        mixed[:, i, 1] = rng.permutation(mixed[:, i, 1])  # the same marginals without dependence
    found = energy(samples, Y[NEW])
    assert found < 0.99 * energy(mixed, Y[NEW])
    assert found == pytest.approx(d.energy_score(Y[NEW]).mean(), rel=0.02)


def energy(samples, y):
    unit = Y[TRAIN].std(axis=0)
    x, y = samples / unit, y / unit
    m = len(x)
    away = np.linalg.norm(x - y, axis=2).mean()
    apart = np.mean(
        [np.linalg.norm(x[:, None, i] - x[None, :, i], axis=2).sum() / (m * (m - 1)) for i in range(len(y))]
    )
    return away - apart / 2


def test_boxes_hold_all_targets(u):
    boxes, apart = (u.predict_interval(X[NEW], 0.9, joint=joint) for joint in (True, False))
    inside = [((ends[:, :, 0] <= Y[NEW]) & (Y[NEW] <= ends[:, :, 1])).all(axis=1).mean() for ends in (boxes, apart)]
    assert inside[0] > 0.8
    assert inside[1] < inside[0]
    assert np.all(boxes[:, :, 0] <= apart[:, :, 1])


def test_frames(model):
    names = pd.DataFrame(Y, columns=["a", "b"])
    u = IBUGRegressor(model, prefit=True).fit(X[TRAIN], names[TRAIN], X_val=X[VALID], y_val=names[VALID])
    assert u.target_names_ == ["a", "b"]
    assert list(u.predict_interval(X[NEW], output="pandas")) == ["a_lower", "a_upper", "b_lower", "b_upper"]
    assert list(u.predict_interval(X[NEW], [0.5, 0.9], joint=True, output="pandas"))[:2] == ["a_lower_50", "a_upper_50"]
    assert list(u.predict_quantiles(X[NEW], [0.1], output="pandas")) == ["a_q0.1", "b_q0.1"]
    assert list(u.predict_var(X[NEW], output="pandas")) == ["a_variance", "b_variance"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomForestRegressor(30, min_samples_leaf=5, random_state=0),
        lambda: RegressorChain(SMALL, cv=3),
        lambda: make_pipeline(StandardScaler(), MultiOutputRegressor(SMALL)),
    ],
)
def test_files_and_pickles(make, tmp_path):
    u = IBUGRegressor(make().fit(X[TRAIN], Y[TRAIN]), prefit=True, conformal="scale", random_state=0)
    u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    u.save(tmp_path / "u.ibug")
    for back in (ibug.load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(u))):
        np.testing.assert_array_equal(back.predict(X[NEW]), u.predict(X[NEW]))
        for joint in (True, False):
            np.testing.assert_array_equal(
                back.predict_interval(X[NEW], joint=joint), u.predict_interval(X[NEW], joint=joint)
            )
        np.testing.assert_array_equal(
            back.predict_dist(X[NEW]).energy_score(Y[NEW]), u.predict_dist(X[NEW]).energy_score(Y[NEW])
        )
        assert back.target_names_ == u.target_names_


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost", "vector leaves"])
def test_files_of_other_libraries(library, tmp_path):
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        model = MultiOutputRegressor(lightgbm.LGBMRegressor(n_estimators=20, verbose=-1))
    elif library == "catboost":
        catboost = pytest.importorskip("catboost")
        quiet = {"verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoostRegressor(iterations=20, loss_function="MultiRMSE", **quiet)
    else:
        xgboost = pytest.importorskip("xgboost")
        strategy = "one_output_per_tree" if library == "xgboost" else "multi_output_tree"
        model = xgboost.XGBRegressor(n_estimators=20, multi_strategy=strategy)
    model.fit(X[TRAIN], Y[TRAIN])
    u = IBUGRegressor(model, prefit=True).fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    u.save(tmp_path / "u.ibug")
    back = ibug.load(tmp_path / "u.ibug")
    np.testing.assert_allclose(back.predict(X[NEW]), model.predict(X[NEW]), rtol=1e-6)
    np.testing.assert_array_equal(back.predict_interval(X[NEW]), u.predict_interval(X[NEW]))


def test_trained_here():
    u = IBUGRegressor(MultiOutputRegressor(SMALL), random_state=0).fit(X[:500], Y[:500])
    assert u.source_.out_of_sample.kind == "clones"
    assert u.residuals_.shape == (500, 2)
    d = u.predict_dist(X[NEW])
    assert d.energy_score(Y[NEW]).mean() < 0.6
    held_out = IBUGRegressor(MultiOutputRegressor(SMALL), random_state=0, residuals="model").fit(X[:500], Y[:500])
    assert held_out.source_.out_of_sample.kind == "leave-one-out"
    assert held_out.predict_dist(X[NEW]).energy_score(Y[NEW]).mean() < 0.6


def test_own_residuals_are_those_of_each_target(u):
    assert u.source_.out_of_sample.kind == "leave-one-out"
    for j in range(2):
        one = SMALL.__class__(**SMALL.get_params()).fit(X[TRAIN], Y[TRAIN, j])
        alone = IBUGRegressor(one, prefit=True).fit(X[TRAIN], Y[TRAIN, j], X_val=X[VALID], y_val=Y[VALID, j])
        np.testing.assert_allclose(u.residuals_[:, j], alone.residuals_, rtol=1e-9)


def test_residuals_of_xgboost_with_a_tree_per_output():
    """They are those of one model for each target."""
    xgboost = pytest.importorskip("xgboost")
    options = {"n_estimators": 15, "max_depth": 3, "base_score": 0.0}
    found = []
    for model in (xgboost.XGBRegressor(**options), MultiOutputRegressor(xgboost.XGBRegressor(**options))):
        u = IBUGRegressor(model.fit(X[TRAIN], Y[TRAIN]), prefit=True, random_state=0)
        found.append(u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID]))
    assert [u.source_.out_of_sample.kind for u in found] == ["leave-one-out"] * 2
    np.testing.assert_allclose(found[0].residuals_, found[1].residuals_, rtol=1e-3, atol=1e-3)
    vectors = xgboost.XGBRegressor(n_estimators=5, multi_strategy="multi_output_tree").fit(X[TRAIN], Y[TRAIN])
    u = IBUGRegressor(vectors, prefit=True).fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    assert u.source_.out_of_sample.kind == "none"
    assert "vectors" in u.source_.out_of_sample.reason


def test_out_of_bag_residuals():
    forest = RandomForestRegressor(60, random_state=0).fit(X[TRAIN], Y[TRAIN])
    u = IBUGRegressor(forest, prefit=True).fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    assert u.source_.out_of_sample.kind == "out-of-bag"
    bag = RandomForestRegressor(60, random_state=0, oob_score=True).fit(X[TRAIN], Y[TRAIN])
    plain = Y[TRAIN] - bag.oob_prediction_
    ratio = u.residuals_ / plain  # raised to the level of validation errors, each target by itself
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-6)


def test_without_validation(model):
    u = IBUGRegressor(model, prefit=True, k=20, calibrate=False, spread="targets").fit(X[TRAIN], Y[TRAIN])
    d = u.predict_dist(X[NEW])
    assert u.distribution_ == "normal"
    assert 0.3 < d.correlation()[:, 0, 1].mean() < 0.95
    with pytest.raises(InvalidInputError, match="Joint boxes need rows"):
        u.predict_interval(X[NEW], joint=True)
    again = u.set_params(calibrate=True).recalibrate(X[VALID], Y[VALID])
    assert again.predict_interval(X[NEW], joint=True).shape == (200, 2, 2)


def test_normal_and_uncalibrated(u, model):
    normal = IBUGRegressor(model, prefit=True, distribution="normal")
    normal.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID])
    assert normal.distribution_ == "normal"
    plain = plain_neighbors(u).predict_dist(X[NEW])
    assert plain.mixture.weights.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(plain.mean(), model.predict(X[NEW]), rtol=1e-6)


def test_update(model, tmp_path):
    u = IBUGRegressor(model, prefit=True, random_state=0)
    u.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID]).update(X[VALID], Y[VALID])
    assert u.training_targets_.shape == (700, 2)
    assert u.residuals_.shape == (700, 2)
    assert u.kneighbors(X[VALID], 1)[1].max() >= 500
    expected = u.predict_dist(X[NEW]).energy_score(Y[NEW])
    u.save(tmp_path / "u.ibug")
    for again in (pickle.loads(pickle.dumps(u)), ibug.load(tmp_path / "u.ibug")):
        np.testing.assert_array_equal(again.predict_dist(X[NEW]).energy_score(Y[NEW]), expected)


def test_weighted_validation_rows(model):
    weights = np.r_[np.ones(100), np.zeros(100)]
    first = slice(500, 600)
    a = IBUGRegressor(model, prefit=True).fit(X[TRAIN], Y[TRAIN], X_val=X[first], y_val=Y[first])
    b = IBUGRegressor(model, prefit=True)
    b.fit(X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID], sample_weight_val=weights)
    np.testing.assert_allclose(a.stack_["weight"], b.stack_["weight"])


def test_chunks_are_as_one(u, monkeypatch):
    whole = u.predict_dist(X[NEW])
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", 5000)
    parts = u.predict_dist(X[NEW])
    np.testing.assert_allclose(parts.cov(), whole.cov())
    np.testing.assert_array_equal(u.predict_interval(X[NEW]), np.stack(whole.interval(0.9), axis=2))


def test_one_column_is_one_target():
    forest = RandomForestRegressor(20, random_state=0).fit(X[TRAIN], Y[TRAIN, 0])
    u = IBUGRegressor(forest, prefit=True)
    with pytest.warns(UserWarning, match="column-vector"):
        u.fit(X[TRAIN], Y[TRAIN, :1], X_val=X[VALID], y_val=Y[VALID, 0])
    assert u.predict(X[NEW]).shape == (200,)
    assert u.predict_interval(X[NEW]).shape == (200, 2)
    with pytest.raises(InvalidInputError, match="boxes of several targets"):
        u.predict_interval(X[NEW], joint=True)


def test_a_constant_target(tmp_path):
    flat = Y.copy()
    flat[:, 1] = 3.0
    model = MultiOutputRegressor(SMALL).fit(X[TRAIN], flat[TRAIN])
    u = IBUGRegressor(model, prefit=True).fit(X[TRAIN], flat[TRAIN], X_val=X[VALID], y_val=flat[VALID])
    d = u.predict_dist(X[NEW])
    assert np.isfinite(d.energy_score(flat[NEW])).all()
    assert np.isfinite(d.cov()).all()
    assert d.mean()[:, 1] == pytest.approx(3.0, abs=1e-3)


def with_nan():
    y = Y[TRAIN].copy()
    y[7, 1] = np.nan
    return y


@pytest.mark.parametrize(
    ("parameters", "fit", "message"),
    [
        ({}, {"y": Y[TRAIN, 0]}, "predicts 2 targets, and y has one"),
        ({}, {"y": np.column_stack([Y[TRAIN], Y[TRAIN, 0]])}, "y has 3 targets"),
        ({}, {"y": with_nan()}, "NaN"),
        ({}, {"y_val": Y[VALID, 0]}, "have 1 targets, and the training rows have 2"),
        ({"distribution": "laplace"}, {}, "joint distribution"),
        ({"scoring": "nll"}, {}, "energy score"),
        ({"support": (-99, 99)}, {}, "support"),
        ({"location": "neighbors"}, {}, "location"),
        ({"sampling": Sampling(weight_neighbors=True)}, {"sample_weight": np.ones(500)}, "weight_neighbors"),
        ({"conformal": ibug.calibration.ScaleConformal(groups=0)}, {}, "groups"),
    ],
)
def test_what_is_refused(model, parameters, fit, message):
    given = {"y": Y[TRAIN], "y_val": Y[VALID], **fit}
    rows = len(given["y"])
    if given["y"].ndim > 1 and given["y"].shape[1] > 2:
        given["y_val"] = np.column_stack([Y[VALID], Y[VALID, 0]])
    elif given["y"].ndim == 1:
        given["y_val"] = Y[VALID, 0]
    with pytest.raises(ValueError, match=message):
        IBUGRegressor(model, prefit=True, **parameters).fit(X[TRAIN][:rows], given.pop("y"), X_val=X[VALID], **given)


def test_the_default_estimator():
    u = IBUGRegressor(random_state=0).fit(X[:200], Y[:200])
    assert isinstance(u.estimator_, MultiOutputRegressor)
    assert u.predict(X[NEW]).shape == (200, 2)


def test_an_estimator_of_one_target():
    with pytest.raises(InvalidInputError, match=r"MultiOutputRegressor\(HistGradientBoostingRegressor"):
        IBUGRegressor(HistGradientBoostingRegressor()).fit(X[TRAIN], Y[TRAIN])


def test_a_model_of_one_target():
    with pytest.raises(InvalidInputError, match="MultiOutputRegressor"):
        IBUGRegressor(SMALL.fit(X[TRAIN], Y[TRAIN, 0]), prefit=True).fit(
            X[TRAIN], Y[TRAIN], X_val=X[VALID], y_val=Y[VALID]
        )


def test_what_is_for_one_target(u):
    with pytest.raises(InvalidInputError, match="influence is for one target"):
        influence(u, X[NEW])
    with pytest.raises(InvalidInputError, match="monitor with y is for one target"):
        u.monitor(X[NEW], Y[NEW])
    with pytest.raises(InvalidInputError, match="another distribution is for one target"):
        u.recalibrate(X[VALID], Y[VALID], distribution="tune")
    with pytest.raises(InvalidInputError, match="rank_for_labelling is for one target"):
        rank_for_labelling(u, X[NEW])


def test_evaluate(u):
    scores = evaluate(u, X[NEW], Y[NEW])
    d = u.predict_dist(X[NEW])
    assert scores["energy_score"] == pytest.approx(d.energy_score(Y[NEW]).mean())
    assert scores["variogram_score"] == pytest.approx(d.variogram_score(Y[NEW]).mean())
    boxes = u.predict_interval(X[NEW], 0.9, joint=True)
    inside = ((boxes[:, :, 0] <= Y[NEW]) & (Y[NEW] <= boxes[:, :, 1])).all(axis=1).mean()
    assert scores["box_coverage_90"] == pytest.approx(inside)
    with pytest.raises(InvalidInputError, match=r"shape \(200, 2\)"):
        evaluate(u, X[NEW], Y[NEW, 0])


def test_correlations_that_change_along_a_feature(tmp_path):
    rng = np.random.default_rng(0)
    X, z = rng.uniform(-2, 2, size=(1500, 3)), rng.normal(size=(1500, 2))
    rho = 0.45 * X[:, 0]
    Y = X[:, [0, 0]] + np.column_stack([z[:, 0], rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]])
    model = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=20, random_state=0))
    u = IBUGRegressor(model, cv=3, random_state=0).fit(X[:1000], Y[:1000])
    assert u.rule_.coupling.pseudo_rows is not None
    found = u.predict_dist(X[1000:])
    correlation = found.correlation()[:, 0, 1]
    assert np.corrcoef(correlation, rho[1000:])[0, 1] > 0.8
    u.save(tmp_path / "turning.ibug")
    back = ibug.load(tmp_path / "turning.ibug").predict_dist(X[1000:])
    np.testing.assert_array_equal(back.correlation(), found.correlation())
    informed = found.conditional(1, {0: Y[1000:, 0]}).crps(Y[1000:, 1]).mean()
    assert informed < 0.95 * found.marginal(1).crps(Y[1000:, 1]).mean()
    assert plain_neighbors(u).predict_dist(X[1000:1003]).copulas is None


def test_catboost_with_a_loss_of_one_target():
    catboost = pytest.importorskip("catboost")
    quiet = {"iterations": 3, "verbose": 0, "allow_writing_files": False}
    for loss, options in (("RMSE", {}), ("MAE", {"loss_function": "MAE"}), ("MAE", {"objective": "MAE"})):
        with pytest.raises(InvalidInputError, match=f'the loss {loss} is for one.*"MultiRMSE".*MultiOutputRegressor'):
            IBUGRegressor(catboost.CatBoostRegressor(**quiet, **options)).fit(X[TRAIN], Y[TRAIN])
    model = catboost.CatBoostRegressor(**quiet, loss_function="MultiRMSE")
    u = IBUGRegressor(model, k=5, calibrate=False, spread="targets", distribution="normal").fit(X[TRAIN], Y[TRAIN])
    assert u.predict(X[NEW]).shape == (200, 2)
