"""Newer rows become neighbours; the oldest may be forgotten."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import ibug
from ibug import IBUGRegressor, Sampling
from ibug.exceptions import InvalidInputError
from ibug.neighbors import JoinedIndex

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 3))
    y = 4 * X[:, 0] + rng.normal(size=900) * (0.2 + X[:, 1])
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X[:400], y[:400])
    return model, X, y


def fitted(rows, **parameters):
    model, X, y = rows
    u = IBUGRegressor(model, prefit=True, random_state=0, **parameters)
    return u.fit(X[:400], y[:400], X_val=X[400:600], y_val=y[400:600])


def run_parallel(rows, u, start, stop):
    """Return u with an index of the rows from start to stop, built at once."""
    model, X, y = rows
    other = IBUGRegressor(model, prefit=True, k=5, calibrate=False, distribution="normal", spread="targets")
    other.fit(X[start:stop], y[start:stop])
    other.rule_ = u.rule_
    return other


@pytest.mark.parametrize(("keep", "start"), [(None, 0), (800, 0), (350, 350), (120, 580)])
def test_it_is_an_index_of_all_rows(rows, keep, start):
    _, X, y = rows
    u = fitted(rows, k=30)
    untouched = copy(u)
    before = u.predict_quantiles(X[700:])
    u.update(X[400:550], y[400:550], keep=keep).update(X[550:700], y[550:700], keep=keep)
    other = run_parallel(rows, u, start, 700)
    for found, expected in zip(u.kneighbors(X[700:], 10), other.kneighbors(X[700:], 10), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(u.predict_quantiles(X[700:]), other.predict_quantiles(X[700:]))
    np.testing.assert_array_equal(u.training_targets_, y[start:700])
    np.testing.assert_array_equal(untouched.predict_quantiles(X[700:]), before)


def test_the_new_rows_have_honest_residuals(rows):
    _, X, y = rows
    u = IBUGRegressor(GradientBoostingRegressor(n_estimators=20, random_state=0), cv=3, random_state=0)
    u.fit(X[:300], y[:300])
    old = u.residuals_
    u.update(X[300:400], y[300:400], keep=350)
    np.testing.assert_array_equal(u.residuals_, np.append(old, y[300:400] - u.predict(X[300:400]))[50:])
    assert np.isfinite(u.predict_var(X[:9])).all()


def test_residuals_of_validation_rows(rows):
    _, X, y = rows
    model = GradientBoostingRegressor(loss="huber", n_estimators=20).fit(X[:400], y[:400])  # has none of its own
    u = fitted((model, X, y), spread="residuals", k=20, distribution="normal")
    assert u.source_.residual_index is not None
    u.update(X[600:700], y[600:700], keep=180)
    expected = np.append(y[400:600] - u.predict(X[400:600]), y[600:700] - u.predict(X[600:700]))
    np.testing.assert_array_equal(u.residuals_, expected[-180:])
    assert u.source_.index.n_rows == 180
    u.source_.check()
    assert np.isfinite(u.predict_var(X[:9])).all()


def test_a_share_of_the_rows(rows):
    _, X, y = rows
    u = fitted(rows, sampling=Sampling(row_fraction=0.5), k=20)
    u.update(X[400:600], y[400:600], keep=500)
    _, found = u.kneighbors(X[600:], 50)
    assert 230 <= u.source_.index.n_rows <= 270
    assert found.max() < 500
    u.source_.check()


def test_saved_and_loaded(rows, tmp_path):
    pytest.importorskip("skops")
    _, X, y = rows
    u = fitted(rows).update(X[400:500], y[400:500])
    u.save(tmp_path / "u.ibug")
    v = ibug.load(tmp_path / "u.ibug")
    np.testing.assert_array_equal(v.predict_quantiles(X), u.predict_quantiles(X))
    both = (one.update(X[500:600], y[500:600]).predict_quantiles(X) for one in (u, v))
    np.testing.assert_array_equal(*both)


def test_a_mapped_index_is_left_alone(rows, tmp_path):
    pytest.importorskip("skops")
    _, X, y = rows
    many = np.concatenate([X] * 6), np.concatenate([y] * 6)  # arrays that are small are not mapped
    u = IBUGRegressor(rows[0], prefit=True, random_state=0).fit(*many, X_val=X[400:], y_val=y[400:])
    u.save(tmp_path / "u.ibug", compress=False)
    v = ibug.load(tmp_path / "u.ibug")
    with pytest.raises(InvalidInputError, match="mmap=False"):
        v.update(X, y)
    np.testing.assert_array_equal(v.predict_var(X[:9]), u.predict_var(X[:9]))
    assert len(ibug.load(tmp_path / "u.ibug", mmap=False).update(X, y).training_targets_) == 7 * len(X)


def test_shards_are_left_alone(rows):
    _, X, y = rows
    u = fitted(rows)
    u.source_ = replace(u.source_, index=JoinedIndex([u.source_.index]))
    with pytest.raises(InvalidInputError, match="divided into shards"):
        u.update(X, y)


def test_what_cannot_be_taken_changes_nothing(rows):
    _, X, y = rows
    u = fitted(rows, support=(-10, 20))
    source = u.source_
    with pytest.raises(ValueError, match="2 features"):
        u.update(X[:, :2], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        u.update(X, y[:-1])
    with pytest.raises(InvalidInputError, match="outside the support"):
        u.update(X, np.full(len(y), 21.0))
    for keep in (3, True, "all", 100.0):
        with pytest.raises(InvalidInputError, match="keep must be None or a number of rows"):
            u.update(X, y, keep=keep)
    with pytest.raises(InvalidInputError, match="update needs rows"):
        u.update(None, y)
    assert u.source_ is source
