"""Likelihood ratios of covariates that are estimated from leaves, and conformal calibration with them."""

import pickle
from copy import copy

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import ibug
from ibug import IBUGRegressor
from ibug.calibration import LikelihoodRatio, ScaleConformal
from ibug.exceptions import InvalidInputError

pytestmark = pytest.mark.once


def rows(n, rng, *, moved=False):
    """Uniform rows, or ones whose first column has the density 4x³; the noise grows with it."""
    X = np.column_stack([rng.beta(4, 1, size=n) if moved else rng.uniform(size=n), rng.uniform(size=n)])
    return X, 3 * X[:, 1] + rng.normal(size=n) * (0.2 + 2 * X[:, 0])


@pytest.fixture(scope="module")
def u():
    X, y = rows(1000, np.random.default_rng(0))
    model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X[:600], y[:600])
    u = IBUGRegressor(model, prefit=True, distribution="normal", spread="targets", k=600, random_state=0)
    return u.fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(1)
    return {
        "validation": rows(800, rng),
        "new": rows(800, rng, moved=True),
        "test": rows(3000, rng, moved=True),
    }


def test_it_is_the_logistic_regression_whose_kernel_is_the_affinity(u, samples):
    X_val, X_new = samples["validation"][0][:150], samples["new"][0][:90]
    ratio = LikelihoodRatio.estimate(u, X_val, X_new)
    leaves = np.concatenate([*u.source_.leaves_of(np.concatenate([X_val, X_new]))])
    columns = [leaves[:, t] == leaf for t in range(leaves.shape[1]) for leaf in np.unique(leaves[:, t])]
    dense = np.stack(columns, axis=1) / np.sqrt(leaves.shape[1])
    affinity = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
    np.testing.assert_allclose(dense @ dense.T, affinity)
    is_new = np.arange(240) >= 150
    weights = np.where(is_new, 120 / 90, 120 / 150)
    oracle = LogisticRegression(tol=1e-8, max_iter=5000).fit(dense, is_new, sample_weight=weights)
    expected = np.exp(oracle.decision_function(dense))
    np.testing.assert_allclose(ratio.of_leaves(leaves), expected, rtol=0.02)
    w = ratio.of_leaves(leaves[:150])
    assert ratio.n_effective == pytest.approx(w.sum() ** 2 / np.square(w).sum())
    assert "n_trees=40" in repr(ratio)


def test_it_comes_near_the_truth(u, samples):
    X = samples["validation"][0]
    ratio = LikelihoodRatio.estimate(u, X, samples["new"][0])
    found = ratio.of_chunks(u.source_.leaves_of(X))
    assert found.mean() == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(found, 4 * X[:, 0] ** 3)[0, 1] > 0.9


def test_rows_that_have_not_moved_count_alike(u, samples):
    X, other = samples["validation"][0], rows(800, np.random.default_rng(5))[0]
    assert LikelihoodRatio.estimate(u, X, other).n_effective > 0.9 * len(X)


def covered(u, samples):
    X, y = samples["test"]
    lower, upper = u.predict_interval(X, 0.9).T
    return np.mean((lower <= y) & (y <= upper))


def test_coverage_comes_back(u, samples, tmp_path):
    plain = copy(u).set_params(conformal="scale")
    plain.recalibrate(*samples["validation"])
    assert covered(plain, samples) < 0.85
    ratio = LikelihoodRatio.estimate(plain, samples["validation"][0], samples["new"][0])
    plain.set_params(conformal=ScaleConformal(ratio=ratio)).recalibrate(*samples["validation"])
    assert 0.87 < covered(plain, samples) < 0.94

    X = samples["test"][0][:50]
    plain.save(tmp_path / "u.ibug")
    for other in (ibug.load(tmp_path / "u.ibug"), pickle.loads(pickle.dumps(plain))):
        np.testing.assert_array_equal(other.predict_interval(X), plain.predict_interval(X))
        other.recalibrate(*samples["validation"])  # the parameter came back, too
        np.testing.assert_array_equal(other.predict_interval(X), plain.predict_interval(X))


def test_what_cannot_be(u, samples):
    (X, y), (X_new, _) = samples["validation"], samples["new"]
    ratio = LikelihoodRatio.estimate(u, X, X_new)
    with pytest.raises(InvalidInputError, match="a model of 40 trees, and this one has 7"):
        ratio.of_leaves(np.zeros((3, 7), np.int32))
    far = ratio.of_leaves(np.full((1, 40), 10**6, np.int32))  # leaves that nobody had add nothing
    assert far == pytest.approx(np.exp(ratio.intercept))
    with pytest.raises(ValueError, match="features"):
        LikelihoodRatio.estimate(u, X, X_new[:, :1])
    with pytest.raises(InvalidInputError, match="belongs to one trained model"):
        IBUGRegressor(GradientBoostingRegressor(n_estimators=5), conformal=ScaleConformal(ratio=ratio)).fit(X, y)
    with pytest.raises(InvalidInputError, match="too many for a table"):
        LikelihoodRatio.from_leaves(np.array([[2**30]], np.int32), np.array([[1]], np.int32))
    for wrong in ({"table": np.zeros(3)}, {"table": np.full((2, 2), np.nan)}, {"intercept": np.inf}):
        with pytest.raises(InvalidInputError, match="finite numbers"):
            LikelihoodRatio.from_state({**ratio.state(), **wrong})
