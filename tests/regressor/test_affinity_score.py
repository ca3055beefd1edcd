"""The affinity score and the leaf density against their definitions."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import roc_auc_score

from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.explain import leaf_density

pytestmark = pytest.mark.once


@pytest.fixture
def fitted(model, diabetes):
    return IBUGRegressor(model, prefit=True).fit(
        *diabetes["train"], X_val=diabetes["validation"][0], y_val=diabetes["validation"][1]
    )


def test_affinity_score_is_the_mean_share_of_leaves(fitted, diabetes):
    X, _ = diabetes["test"]
    affinities, _ = fitted.kneighbors(X)
    np.testing.assert_allclose(fitted.affinity_score(X), affinities.mean(axis=1) / 60)


def test_threshold_is_the_first_percentile_of_the_validation_rows(model, diabetes):
    X, y = (np.concatenate(parts) for parts in zip(diabetes["validation"], diabetes["test"], strict=True))
    u = IBUGRegressor(model, prefit=True).fit(*diabetes["train"], X_val=X, y_val=y)
    assert u.affinity_threshold_ == pytest.approx(np.quantile(u.affinity_score(X), 0.01))


@pytest.mark.parametrize("row_fraction", [1.0, 0.6])
def test_trained_here_the_threshold_is_that_of_training_rows_without_themselves(diabetes, row_fraction):
    X, y = diabetes["train"]
    X, y = np.concatenate([X, X[:5]]), np.concatenate([y, y[:5]])  # some rows come twice
    model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    u = IBUGRegressor(model, sampling=Sampling(row_fraction=row_fraction), random_state=0).fit(X, y)
    numbers = np.arange(len(y)) if row_fraction == 1 else u.source_.rows
    leaves = u.estimator_.apply(X)[numbers]
    expected = []
    for i in range(len(numbers)):
        shared = np.sort(np.delete((leaves == leaves[i]).sum(axis=1), i))[::-1]
        expected.append(shared[: u.k_].mean() / 20)
    assert u.affinity_threshold_ == pytest.approx(np.quantile(expected, 0.01))


def test_fewer_than_a_hundred_validation_rows_tell_no_threshold(fitted, diabetes):
    assert len(diabetes["validation"][1]) == 80
    assert np.isnan(fitted.affinity_threshold_)


def test_without_validation_rows_there_is_no_threshold(model, diabetes):
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(*diabetes["train"])
    assert np.isnan(u.affinity_threshold_)
    assert np.all(u.affinity_score(diabetes["test"][0]) > 0)


def test_rows_of_a_strange_combination_are_found():
    # Two features that go together in training; each value of the strange rows is ordinary, their combination is not.
    rng = np.random.default_rng(0)
    x = rng.uniform(size=1500)
    X = np.column_stack([x, x + 0.02 * rng.normal(size=1500), rng.uniform(size=(1500, 2))])
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=1500)
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=150, random_state=0), random_state=0).fit(
        X[:1000], y[:1000]
    )
    strange = X[1000:].copy()
    strange[:, 1] = rng.permutation(strange[:, 1])
    scores = np.concatenate([u.affinity_score(X[1000:]), u.affinity_score(strange)])
    assert roc_auc_score(np.repeat([1, 0], 500), scores) > 0.75


@pytest.mark.parametrize("numbers_per_chunk", [2**23, 60 * 7])
def test_leaf_density_by_hand(fitted, model, diabetes, numbers_per_chunk, monkeypatch):
    X, _ = diabetes["test"]
    share = (model.apply(X)[:, None, :] == model.apply(diabetes["train"][0])[None]).mean(axis=1)
    monkeypatch.setattr("ibug.neighbors._leaf_numbers._NUMBERS_PER_CHUNK", numbers_per_chunk)
    np.testing.assert_allclose(leaf_density(fitted, X), share.mean(axis=1))
    np.testing.assert_allclose(leaf_density(fitted, X, per="tree"), share.mean(axis=0))


def test_leaf_density_of_what(fitted, diabetes):
    with pytest.raises(InvalidInputError, match='per must be "row" or "tree"'):
        leaf_density(fitted, diabetes["test"][0], per="leaf")
