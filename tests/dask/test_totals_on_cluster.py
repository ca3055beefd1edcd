"""Totals on a cluster are those of the local estimator, however rows are partitioned."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import ibug
from ibug.dask import IBUGRegressor, load
from ibug.exceptions import IndependentRowsWarning, InvalidInputError
from tests.dask.conftest import NAMES

pytestmark = pytest.mark.usefixtures("client")

DAY = np.arange(220) // 10


@pytest.fixture(scope="module")
def local(model, data):
    u = ibug.IBUGRegressor(model, prefit=True, residuals="none", search="exact")
    X_val, y_val = data["validation"]
    return u.fit(*data["train"], X_val=X_val, y_val=y_val, blocks_val=DAY)


@pytest.fixture(scope="module")
def sharded(model, data, arrays, client):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    u = IBUGRegressor(model, prefit=True)
    return u.fit(arrays(X, 100), arrays(y, 100), X_val=arrays(X_val, 50), y_val=arrays(y_val, 50), blocks_val=DAY)


def same(first, second):
    for name in ("loc", "scale", "lower", "upper"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(first.groups, second.groups)
    np.testing.assert_array_equal(first.n_rows, second.n_rows)


def test_what_blocks_have_in_common_is_the_same(local, sharded):
    np.testing.assert_allclose(sharded.dependence_.estimate, local.dependence_.estimate, rtol=1e-9)
    np.testing.assert_allclose(sharded.dependence_.standard_error, local.dependence_.standard_error, rtol=1e-9)


@pytest.mark.parametrize("cut", [80, 17, (1, 0, 60, 19)])
def test_totals_are_the_same(cut, local, sharded, data, arrays):
    X, day = data["test"][0], np.arange(80) // 8
    groups, weights = np.arange(80) % 3, np.linspace(-1, 2, 80)
    expected = local.total_dist(X, groups, weights=weights, blocks=day)
    rows = arrays(X, cut)
    same(sharded.total_dist(rows, groups, weights=weights, blocks=day), expected)
    labels = arrays(groups, cut), arrays(weights, cut), arrays(day, cut)
    same(sharded.total_dist(rows, labels[0], weights=labels[1], blocks=labels[2]), expected)
    same(sharded.total_dist(X, groups, weights=weights, blocks=day), expected)


def test_columns_of_frames(frame_model, data):
    (X, y), (X_val, y_val), (X_new, _) = (data[name] for name in ("train", "validation", "test"))
    u = IBUGRegressor(frame_model, prefit=True)

    def parts(X, n):
        frame = pd.DataFrame(X, columns=NAMES)
        return dd.from_pandas(frame, npartitions=n, sort=False)

    y, y_val = (dd.from_pandas(pd.Series(one), npartitions=n, sort=False) for one, n in ((y, 3), (y_val, 2)))
    u.fit(parts(X, 3), y, X_val=parts(X_val.round(), 2).fillna(0.0), y_val=y_val, blocks_val="e")
    assert u.dependence_.columns == ("e",)
    rows = parts(X_new.round(), 4).fillna(0.0)
    found = u.total_dist(rows, "a")
    same(found, u.total_dist(rows, rows["a"], blocks=rows["e"]))
    assert list(found.groups) == sorted(set(rows["a"].compute()))
    with pytest.raises(InvalidInputError, match="by: X has no column 'week'"):
        u.total_dist(rows, "week")


def test_saved_and_loaded(sharded, data, tmp_path):
    X, day = data["test"][0], np.arange(80) // 8
    expected = sharded.total_dist(X, day, blocks=day)
    sharded.save(tmp_path / "folder")
    same(load(tmp_path / "folder").total_dist(X, day, blocks=day), expected)
    same(load(tmp_path / "folder", local=True).total_dist(X, day, blocks=day), expected)


def test_blocks_that_are_not_known(model, data, arrays):
    (X, y), (X_val, y_val), (X_new, _) = (data[name] for name in ("train", "validation", "test"))
    u = IBUGRegressor(model, prefit=True).fit(arrays(X, 200), arrays(y, 200), X_val=X_val, y_val=y_val)
    assert u.dependence_ is None
    with pytest.warns(IndependentRowsWarning):
        u.total_dist(da.from_array(X_new, (40, -1)))
    u.recalibrate(X_val, y_val, blocks=DAY)
    learned = u.dependence_
    assert learned.n_blocks == (22,)
    with pytest.raises(InvalidInputError, match="in one block"):
        u.recalibrate(X_val[:100], y_val[:100], blocks=np.zeros(100))
    assert u.dependence_ is learned
    with pytest.raises(InvalidInputError, match="got a function"):
        u.total_dist(X_new, lambda rows: rows[:, 0])
    with pytest.raises(InvalidInputError, match="blocks_val are blocks of validation rows"):
        u.fit(arrays(X, 200), arrays(y, 200), blocks_val=DAY)
