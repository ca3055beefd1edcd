"""Training rows must be those that the trained model has seen: swapped and other rows are found."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ibug import IBUGRegressor, Sampling
from ibug._compiled import refit as kernel
from ibug.exceptions import OtherRowsWarning, SeenRowsWarning
from ibug.leaves import reader_of
from ibug.leaves._recipe import Loss
from ibug.training._diagnostics import fills_leaves, follows_from

N, CUT = 3000, 1800


def lightgbm(**parameters):
    options = {"n_estimators": 60, "verbose": -1, "n_jobs": 1, **parameters}
    return pytest.importorskip("lightgbm").LGBMRegressor(**options)


def xgboost(**parameters):
    return pytest.importorskip("xgboost").XGBRegressor(**{"n_estimators": 60, "n_jobs": 1, **parameters})


def catboost(**parameters):
    options = {"iterations": 150, "learning_rate": 0.1, "verbose": 0, "thread_count": 1, **parameters}
    return pytest.importorskip("catboost").CatBoostRegressor(**options)


def forest(**parameters):
    return RandomForestRegressor(30, random_state=0, **parameters)


def logarithmic():
    return TransformedTargetRegressor(lightgbm(), func=np.log, inverse_func=np.exp)


MODELS = {
    "lightgbm": lightgbm,
    "quantile": lambda: lightgbm(objective="quantile", alpha=0.9),
    "dart": lambda: lightgbm(boosting_type="dart"),
    "poisson": lambda: lightgbm(objective="poisson"),
    "two trees": lambda: lightgbm(n_estimators=2),
    "stumps": lambda: lightgbm(n_estimators=10, max_depth=1),
    "lightgbm, samples": lambda: lightgbm(subsample=0.5, subsample_freq=1, n_estimators=200),
    "goss": lambda: lightgbm(data_sample_strategy="goss", n_estimators=200),
    "xgboost": xgboost,
    "xgboost, samples": lambda: xgboost(subsample=0.5, n_estimators=100, max_depth=4),
    "gamma": lambda: xgboost(objective="reg:gamma"),
    "absolute": lambda: xgboost(objective="reg:absoluteerror"),
    "catboost": catboost,
    "catboost, samples": lambda: catboost(bootstrap_type="Bernoulli", subsample=0.5),
    "absolute catboost": lambda: catboost(loss_function="MAE"),
    "hist": lambda: HistGradientBoostingRegressor(max_iter=60),
    "early stopping": lambda: HistGradientBoostingRegressor(max_iter=60, early_stopping=True, n_iter_no_change=50),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=100, max_depth=5),
    "boosting, samples": lambda: GradientBoostingRegressor(n_estimators=200, max_depth=5, subsample=0.5),
    "forest": forest,
    "large leaves": lambda: forest(min_samples_leaf=5),
    "forest, samples": lambda: forest(max_samples=0.3),
    "all rows": lambda: ExtraTreesRegressor(30, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=60)),
    "logarithmic": logarithmic,
}
SEVERAL = {
    "forest": forest,
    "xgboost": xgboost,
    "catboost": lambda: catboost(loss_function="MultiRMSE"),
    "each": lambda: MultiOutputRegressor(lightgbm()),
    "chain": lambda: RegressorChain(HistGradientBoostingRegressor(max_iter=60)),
}
# Trees that have seen samples, or leaves that are no means: rows that are merely other ones do not show there.
ONLY_SWAPPED = {"quantile", "dart", "two trees", "stumps", "lightgbm, samples", "goss", "xgboost, samples", "gamma"} | {
    "absolute", "absolute catboost", "boosting, samples",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    X, y = make_friedman1(N, n_features=6, noise=8.0, random_state=0)
    return X, y - y.min() + 1


@pytest.fixture(scope="module", params=list(MODELS))
def trained(request, rows):
    X, y = rows
    return request.param, MODELS[request.param]().fit(X[:CUT], y[:CUT])


def found(model, train, validation=None, *, sample_weight=None, **options):
    """Return the classes of the warnings of training rows."""
    known = {} if validation is None else {"X_val": validation[0], "y_val": validation[1]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if sample_weight is None:
            options = {"k": 10, "calibrate": False, "spread": "targets", "distribution": "normal", **options}
        IBUGRegressor(model, prefit=True, **options).fit(*train, sample_weight=sample_weight, **known)
    return [one.category for one in caught if one.category in (SeenRowsWarning, OtherRowsWarning)]


def parts(rows, *edges):
    X, y = rows
    return [(X[start:stop], y[start:stop]) for start, stop in pairwise(edges)]


def test_swapped_rows_are_found(trained, rows):
    first, second = parts(rows, 0, CUT, N)
    assert found(trained[1], second, first) == [SeenRowsWarning]


def test_other_rows_are_found(trained, rows):
    if trained[0] in ONLY_SWAPPED:
        assert found(trained[1], *parts(rows, CUT, 2700, N)) == []
    else:
        assert found(trained[1], *parts(rows, CUT, 2700, N)) == [OtherRowsWarning]
        assert found(trained[1], *parts(rows, CUT, 2700)) == [OtherRowsWarning]


@pytest.mark.parametrize("edges", [(0, CUT, N), (300, CUT, N), (1000, CUT, N), (0, 2000, N)])
def test_training_rows_and_parts_of_them_are_taken(trained, rows, edges):
    assert found(trained[1], *parts(rows, *edges)) == []


def test_training_rows_in_another_order_and_with_other_options(trained, rows):
    (X, y), validation = parts(rows, 0, CUT, N)
    order = np.random.default_rng(0).permutation(CUT)
    assert (
        found(trained[1], (X[order], y[order]), validation, sampling=Sampling(row_fraction=0.3, tree_fraction=0.5))
        == []
    )
    assert found(trained[1], (X, y)) == []
    assert found(trained[1], (np.repeat(X, 2, axis=0), np.repeat(y, 2)), validation) == []


@pytest.mark.parametrize("name", list(SEVERAL))
def test_several_targets(name, rows):
    X, y = rows
    both = X, np.stack([y, y[::-1] + 5 * X[:, 1]], axis=1)
    first, second = parts(both, 0, CUT, N)
    model = SEVERAL[name]().fit(*first)
    assert found(model, second, first) == [SeenRowsWarning]
    assert found(model, first, second) == []


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "hist", "boosting", "forest"])
@pytest.mark.parametrize("given", [True, False])
def test_weights(name, given, rows):
    first, second = parts(rows, 0, CUT, N)
    weights = np.random.default_rng(0).gamma(1.0, size=CUT)
    weights[::5] = 0.0
    model = MODELS[name]().fit(*first, sample_weight=weights)
    assert found(model, first, second, sample_weight=weights if given else None) == []
    if name not in ("xgboost", "boosting"):  # which keep sums of weights, and nobody gives those of validation rows
        assert found(model, second, first) == [SeenRowsWarning]


@pytest.mark.parametrize("subsample", [1.0, 0.3])
def test_boosters_from_files(subsample, rows, tmp_path):
    first, second = parts(rows, 0, CUT, N)
    sampled = {"subsample": subsample, "n_estimators": 200}
    file = str(tmp_path / "model.json")
    xgboost(**sampled).fit(*first).save_model(file)
    loaded = xgboost()
    loaded.load_model(file)
    file = str(tmp_path / "model.txt")
    lightgbm(**sampled, subsample_freq=1).fit(*first).booster_.save_model(file)
    for model in (loaded, pytest.importorskip("lightgbm").Booster(model_file=file)):
        assert found(model, first, second) == []
        assert found(model, second, first) == [SeenRowsWarning]


@pytest.mark.parametrize("n", [20, 60, 300])
@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "hist", "forest", "all rows"])
def test_few_rows_of_nothing_but_noise(name, n):
    r = np.random.default_rng(n)
    X, y = r.normal(size=(2 * n, 3)), r.standard_t(1.5, size=2 * n)
    model = MODELS[name]().fit(X[:n], y[:n])
    for edges in ((0, n, 2 * n), (n // 2, n, 2 * n)):
        assert found(model, *parts((X, y), *edges)) == []


def test_shares_are_those_of_the_formula(rows):
    X, y = rows
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X[:CUT], y[:CUT])
    reader = reader_of(model)
    seen, new = (follows_from(reader, part) for part in parts(rows, 0, CUT, N))
    assert seen.share == pytest.approx(1, abs=1e-9)
    stages = [np.full(N - CUT, y[:CUT].mean()), *model.staged_predict(X[CUT:])]
    pulls = steps = 0.0
    for before, after in list(pairwise(stages))[20:]:  # the second half of the trees
        value = after - before
        bound = np.median(np.abs(value))
        pulls += np.sum((y[CUT:] - before) * np.clip(value, -bound, bound))
        steps += np.sum(value * np.clip(value, -bound, bound)) / 0.1
    assert new.share == pytest.approx(pulls / steps)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "hist", "boosting"])
def test_leaves_are_filled_by_the_training_rows_alone(name, rows):
    X, y = rows
    reader = reader_of(MODELS[name]().fit(X[:CUT], y[:CUT]))
    assert reader.n_training_rows == CUT
    assert fills_leaves(reader, X[:CUT])
    assert not fills_leaves(reader, X[N - CUT :])


def test_leaves_of_dropped_trees_have_sizes(rows):
    X, y = rows
    reader = reader_of(xgboost(booster="dart").fit(X[:CUT], y[:CUT]))
    assert reader.n_training_rows == CUT
    assert fills_leaves(reader, X[:CUT])


@pytest.mark.parametrize(
    "loss",
    [
        Loss(),
        Loss("huber", 0.7),
        Loss("pseudo_huber", 0.7),
        Loss("poisson", 0.7),
        Loss("gamma"),
        Loss("tweedie", 1.3),
    ],
)
def test_slopes_are_those_of_the_kernel(loss):
    r = np.random.default_rng(0)
    raw, y, n = r.normal(size=50), r.gamma(2.0, size=50), 50
    sums, sizes = np.zeros((n, kernel.LANES, 2)), np.zeros((1, 2))
    codes, first = np.arange(n, dtype=np.uint8)[None], np.array([0, n])
    rows = (y, np.empty((0, n)), False, loss.name, loss.parameter)
    kernel.leaf_sums(codes, first, np.zeros(n), *rows, raw, 0, n, sums, sizes)
    np.testing.assert_allclose(np.stack(loss.slopes(raw, y), axis=1), sums.sum(axis=1), rtol=1e-12, atol=1e-12)


# Friedman's criterion overflows in scikit-learn 1.6; newer versions warn that there will be no other.
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_targets_of_any_unit():
    X, y = make_friedman1(500, n_features=6, random_state=0)
    new = GradientBoostingRegressor(n_estimators=10, criterion="squared_error")
    usual = follows_from(reader_of(clone(new).fit(X, y)), (X, y))
    for unit in (1e-3, 1e150):
        model = clone(new).fit(X, unit * y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = follows_from(reader_of(model), (X, unit * y))
        np.testing.assert_allclose(found, usual, rtol=1e-6)
