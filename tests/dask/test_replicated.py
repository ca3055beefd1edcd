"""A copy of the index on each worker."""

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestRegressor

import ibug
from ibug.dask import LazyDistribution, ReplicatedRegressor
from ibug.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def local(frame_model, data, frames):
    X, y = data["train"]
    X_val, y_val = data["validation"]
    return ibug.IBUGRegressor(frame_model, prefit=True).fit(
        frames(X, 1).compute(), y, X_val=frames(X_val, 1).compute(), y_val=y_val
    )


@pytest.fixture
def everywhere(client, local):
    replicated = ReplicatedRegressor(local, client)
    yield replicated
    replicated.close()


def test_frames(everywhere, local, data, frames):
    X = frames(data["test"][0], 4)
    whole = X.compute()
    interval = everywhere.predict_interval(X, coverage=0.8)
    assert interval.divisions == X.divisions
    assert list(interval.columns) == ["lower", "upper"]
    assert interval.compute().index.equals(whole.index)
    np.testing.assert_array_equal(interval.compute(), local.predict_interval(whole, coverage=0.8))
    for name in ("predict", "predict_var", "predict_quantiles", "affinity_score"):
        np.testing.assert_array_equal(getattr(everywhere, name)(X).compute(), getattr(local, name)(whole))
    for one, other in zip(everywhere.kneighbors(X, n_neighbors=5), local.kneighbors(whole, 5), strict=True):
        np.testing.assert_array_equal(one.compute(), other)
    distribution = everywhere.predict_dist(X)
    assert isinstance(distribution, LazyDistribution)
    np.testing.assert_array_equal(distribution.ppf(0.2).compute(), local.predict_dist(whole).ppf(0.2))


def test_empty_partitions_and_local_rows(everywhere, local, data, frames):
    X = frames(data["test"][0], 4)
    X = X.map_partitions(lambda part: part[part.index > 1025], meta=X._meta).clear_divisions()
    whole = X.compute()
    np.testing.assert_array_equal(everywhere.predict_quantiles(X).compute(), local.predict_quantiles(whole))
    np.testing.assert_array_equal(everywhere.predict_dist(X).compute().mean(), local.predict_dist(whole).mean())
    np.testing.assert_array_equal(everywhere.predict_var(whole), local.predict_var(whole))


def test_arrays(client, model, data, arrays):
    (X, y), (rows, _) = data["train"], data["test"]
    local = ibug.IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(X, y)
    everywhere = ReplicatedRegressor(local)
    far = arrays(rows, (50, 0, 30))
    assert everywhere.predict_interval(far).chunks == ((50, 0, 30), (2,))
    np.testing.assert_array_equal(everywhere.predict_interval(far).compute(), local.predict_interval(rows))
    np.testing.assert_array_equal(everywhere.predict_var(far).compute(), local.predict_var(rows))
    everywhere.close()


def test_bad_rows_name_their_partition(client, data, arrays):
    X, y = (np.nan_to_num(values) for values in data["train"])
    forest = RandomForestRegressor(5, random_state=0, max_depth=4).fit(X, y)
    everywhere = ReplicatedRegressor(ibug.IBUGRegressor(forest, prefit=True, k=5, calibrate=False).fit(X, y), client)
    rows = X[:60].copy()
    rows[45, 0] = np.inf
    for lazy in (everywhere.predict_var(arrays(rows, 40)), everywhere.predict_dist(arrays(rows, 40)).mean()):
        with pytest.raises(InvalidInputError, match=r"Partition 1 of X: .*infinity"):
            lazy.compute()
    everywhere.close()


def test_what_is_no_regressor(client):
    with pytest.raises(InvalidInputError, match="fitted regressor of ibug"):
        ReplicatedRegressor(3, client)


def has_plugin(name, dask_worker):
    return name in dask_worker.plugins


def test_workers_that_come_later_get_a_copy(local, data, frames):
    X = frames(data["test"][0], 4)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        everywhere = ReplicatedRegressor(local, client)
        cluster.scale(2)
        client.wait_for_workers(2)
        found = client.run(has_plugin, everywhere.name)
        assert list(found.values()) == [True, True]
        np.testing.assert_array_equal(everywhere.predict_var(X).compute(), local.predict_var(X.compute()))
