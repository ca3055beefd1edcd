"""What goes in and what comes out: lazy collections with the same partitions, index and divisions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from distributed import Client, LocalCluster, futures_of, wait

import ibug
from ibug.dask import IBUGRegressor, LazyDistribution, ReplicatedRegressor
from ibug.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def far(client, frame_model, data, frames):
    X, y = data["train"]
    X_val, y_val = data["validation"]
    return IBUGRegressor(frame_model, prefit=True, spread="targets").fit(
        frames(X, 3), frames(y, 3), X_val=frames(X_val, 2), y_val=frames(y_val, 2)
    )


def test_frames_keep_index_partitions_and_divisions(far, data, frames):
    X = frames(data["test"][0], 4)
    interval = far.predict_interval(X)
    assert isinstance(interval, dd.DataFrame)
    assert interval.divisions == X.divisions
    assert interval.npartitions == X.npartitions
    assert list(interval.columns) == ["lower", "upper"]
    computed = interval.compute()
    assert computed.index.equals(X.compute().index)
    assert list(far.predict_quantiles(X, alpha=[0.2, 0.8]).columns) == ["q0.2", "q0.8"]
    for series in (far.predict(X), far.predict_var(X), far.affinity_score(X), far.leaf_density(X)):
        assert isinstance(series, dd.Series)
        assert series.divisions == X.divisions
        assert series.compute().dtype == series.dtype
    affinities, indices = far.kneighbors(X, n_neighbors=4)
    assert affinities.compute().shape == indices.compute().shape == (80, 4)
    assert (affinities.dtypes == np.int32).all()
    assert (indices.compute().dtypes == np.int64).all()


def test_results_can_be_joined_with_the_rows(far, data, frames):
    X = frames(data["test"][0], 4)
    joined = X.assign(variance=far.predict_var(X)).compute()
    np.testing.assert_array_equal(joined["variance"], far.predict_var(X.compute()))


def test_unknown_divisions_stay_unknown(far, data, frames):
    X = frames(data["test"][0], 4).clear_divisions()
    var = far.predict_var(X)
    assert not var.known_divisions
    assert var.npartitions == 4
    assert len(var.compute()) == 80


def test_empty_partitions_of_frames(far, data, frames):
    X = frames(data["test"][0], 4)
    X = X.map_partitions(
        lambda part: part[part.index > 1025], meta=X._meta
    ).clear_divisions()  # the first partition has no row left
    whole = X.compute()
    assert far.predict_interval(X).compute().index.equals(whole.index)
    np.testing.assert_array_equal(far.predict_dist(X).mean().compute(), far.predict_dist(whole).mean())
    assert len(far.kneighbors(X)[0].compute()) == len(far.predict(X).compute()) == len(whole)


def test_arrays_keep_chunks(client, model, data, arrays):
    X, y = data["train"]
    far = IBUGRegressor(model, prefit=True, k=10, calibrate=False).fit(arrays(X, 150), arrays(y, 150))
    rows = da.from_array(data["test"][0], chunks=(30, 2))  # columns are cut, too
    interval = far.predict_interval(rows)
    assert isinstance(interval, da.Array)
    assert interval.chunks == ((30, 30, 20), (2,))
    assert far.predict_var(rows).chunks == ((30, 30, 20),)
    assert far.predict(rows).dtype == np.float64
    unknown = rows[rows[:, 0] > 0]
    width = interval[:, 1] - interval[:, 0]
    assert len(width.compute()) == 80
    assert len(far.predict_var(unknown).compute()) == len(unknown.compute())


def test_nothing_runs_before_it_is_asked_for(far, data):
    def fail():
        raise RuntimeError("asked for")

    meta = pd.DataFrame(data["test"][0][:0], columns=list("abcde"))
    X = dd.from_delayed([delayed(fail)(), delayed(fail)()], meta=meta, verify_meta=False)
    lazy = [far.predict(X), far.predict_interval(X), far.predict_dist(X).mean(), *far.kneighbors(X)]
    for one in lazy:
        with pytest.raises(RuntimeError, match="asked for"):
            one.compute()


def test_lazy_distributions(far, data, frames):
    rows, y = data["test"]
    X, targets = frames(rows, 4), frames(y, 4)
    distribution, local = far.predict_dist(X), far.predict_dist(X.compute())
    assert isinstance(distribution, LazyDistribution)
    assert distribution.npartitions == 4
    assert "4 partitions" in repr(distribution)
    for name in ("mean", "var", "std"):
        np.testing.assert_array_equal(getattr(distribution, name)().compute(), getattr(local, name)())
    for name in ("pdf", "logpdf", "cdf", "sf", "crps"):
        np.testing.assert_array_equal(getattr(distribution, name)(targets).compute(), getattr(local, name)(y))
    np.testing.assert_array_equal(distribution.ppf([[0.1, 0.6]]).compute(), local.ppf([[0.1, 0.6]]))
    np.testing.assert_array_equal(distribution.interval(0.7).compute(), np.stack(local.interval(0.7), axis=1))
    samples = distribution.rvs(3, random_state=0)
    np.testing.assert_array_equal(samples.compute(), samples.compute())
    np.testing.assert_array_equal(samples.compute(), local.rvs(3, random_state=0))
    generator = np.random.default_rng(0)
    first, second = (distribution.rvs(random_state=generator).compute() for _ in range(2))
    assert first.shape == (80,)
    assert not np.array_equal(first, second)
    assert [len(part.compute()) for part in distribution.to_delayed()] == [20, 20, 20, 20]
    with pytest.raises(InvalidInputError, match="cannot be divided"):
        distribution.cdf(y)
    with pytest.raises(InvalidInputError, match="has 2 partitions"):
        distribution.cdf(frames(y, 2))


@pytest.mark.parametrize("chunks", [80, 27, (0, 1, 0, 60, 19)], ids=["one", "three", "empty ones"])
@pytest.mark.parametrize("family", ["kde", "auto"])
def test_samples_do_not_depend_on_partitions(client, model, data, arrays, chunks, family, monkeypatch):
    monkeypatch.setattr("ibug.dask._distribution._NUMBERS", 50)  # skipped in several steps
    (X, y), (X_val, y_val), (rows, _) = data["train"], data["validation"], data["test"]
    local = ibug.IBUGRegressor(model, prefit=True, residuals="none", distribution=family).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    far = ReplicatedRegressor(local)
    expected = local.predict_dist(rows)
    lazy = far.predict_dist(arrays(rows, chunks))
    for size in (None, 7):
        found = lazy.rvs(size, random_state=5).compute()
        np.testing.assert_array_equal(found, expected.rvs(size, random_state=5))
    far.close()


def places(client, collection):
    """Return the workers of each partition, in their order."""
    return [sorted(found) for _, found in sorted(client.who_has(futures_of(collection)).items())]


def test_shards_are_where_the_rows_are_and_stay_there(client, model, frame_model, data, arrays, frames):
    X, y = data["train"]
    rows, _ = data["test"]
    for trained, make in ((model, lambda values: arrays(values, 60)), (frame_model, lambda values: frames(values, 7))):
        collections = client.persist([make(X), make(y)])
        wait(collections)
        far = IBUGRegressor(trained, prefit=True, k=20, calibrate=False).fit(*collections)
        before = [sorted(client.who_has(futures_of([shard]))[shard.key]) for shard in far.shards_.shards]
        assert before == places(client, collections[0])
        far.predict_interval(make(rows)).compute()
        far.leaf_density(make(rows)).compute()
        assert before == [sorted(client.who_has(futures_of([shard]))[shard.key]) for shard in far.shards_.shards]


def test_rows_that_are_yet_to_be_read_are_spread_evenly(client, model, data, arrays):
    X, y = data["train"]
    far = IBUGRegressor(model, prefit=True, k=20, calibrate=False).fit(arrays(X, 45), arrays(y, 45))  # nine partitions
    assert sorted(map(len, far.shards_.groups)) == [3, 3, 3]


def test_a_worker_that_retires_hands_its_shards_over(model, data, arrays):
    X, y = data["train"]
    rows, _ = data["test"]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        far = IBUGRegressor(model, prefit=True, k=20, calibrate=False).fit(arrays(X, 50), arrays(y, 50))
        expected = far.predict_var(rows)
        asked = client.persist(far.predict_var(arrays(rows, 5)))
        client.retire_workers(list(client.scheduler_info(n_workers=-1)["workers"])[:1])
        np.testing.assert_array_equal(asked.compute(), expected)
        np.testing.assert_array_equal(far.predict_var(arrays(rows, 20)).compute(), expected)
