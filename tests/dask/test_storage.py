"""A sharded model as a folder: loaded on another cluster, or here, it predicts the same."""

import pickle
import shutil

import numpy as np
import pytest
from distributed import Client, LocalCluster

import ibug
from ibug import Sampling
from ibug.dask import IBUGRegressor, ReplicatedRegressor, load
from ibug.exceptions import FileFormatError, NotStorableError
from ibug.explain import leaf_density
from tests.test_read_only import arrays_of

pytestmark = pytest.mark.once

OPTIONS = {
    "default": {"conformal": "scale", "random_state": 0},
    "residuals": {"spread": "residuals"},
    "sampled": {
        "sampling": Sampling(row_fraction=0.4, tree_fraction=0.5),
        "distribution": "lognormal",
        "random_state": 1,
        "k": 20,
    },
}


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS)
def saved(request, client, model, data, arrays, tmp_path):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    far = IBUGRegressor(model, prefit=True, **request.param).fit(
        arrays(X, (0, 130, 269, 1)), arrays(y, (0, 130, 269, 1)), X_val=X_val, y_val=y_val
    )
    far.save(tmp_path / "model", compress=False)
    return far, tmp_path / "model"


def density(u, rows):
    return u.leaf_density(rows) if isinstance(u, IBUGRegressor) else leaf_density(u, rows)


def assert_same(one, other, rows):
    for name in ("predict", "predict_interval", "predict_var", "affinity_score"):
        np.testing.assert_array_equal(getattr(one, name)(rows), getattr(other, name)(rows), err_msg=name)
    np.testing.assert_array_equal(density(one, rows), density(other, rows))
    for found, expected in zip(one.kneighbors(rows), other.kneighbors(rows), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert (one.k_, one.source_.walk, one.distribution_) == (other.k_, other.source_.walk, other.distribution_)


def test_on_a_cluster_of_another_size(saved, data, arrays):
    far, folder = saved
    rows, _ = data["test"]
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as other,
    ):
        loaded = load(folder, client=other)
        expected = loaded.predict_interval(arrays(rows, 30)).compute()
        values = loaded.predict_var(rows)
    np.testing.assert_array_equal(expected, far.predict_interval(rows))
    np.testing.assert_array_equal(values, far.predict_var(rows))


def test_on_the_same_cluster(saved, client, data, arrays):
    far, folder = saved
    loaded = load(folder)
    assert type(loaded) is IBUGRegressor
    assert_same(loaded, far, data["test"][0])
    X, y = data["validation"]
    both = (one.recalibrate(arrays(X, 90), arrays(y, 90), distribution=["normal", "weibull"]) for one in (loaded, far))
    assert_same(*both, data["test"][0])


def test_locally(saved, data):
    far, folder = saved
    loaded = load(folder, local=True, mmap=True)
    assert type(loaded) is ibug.IBUGRegressor
    assert_same(loaded, far, data["test"][0])
    assert loaded.source_.index.n_rows == len(loaded.source_.index) == far.source_.index.n_rows
    assert loaded.source_.index.nbytes > 0
    assert_same(pickle.loads(pickle.dumps(loaded)), far, data["test"][0])
    with pytest.raises(NotStorableError, match="folder"):
        loaded.save(folder / "again.ibug")


def test_shards_of_another_model_are_refused(client, model, data, arrays, tmp_path):
    X, y = data["train"]
    for name in ("one", "other"):
        far = IBUGRegressor(model, prefit=True, k=9, calibrate=False)
        far.fit(arrays(X, 200), arrays(y + (name == "other"), 200)).save(tmp_path / name)
    shutil.copy(tmp_path / "one" / "targets-00001.ibug", tmp_path / "other" / "targets-00001.ibug")
    with pytest.raises(FileFormatError, match="not the file that was saved"):
        load(tmp_path / "other", local=True)
    with pytest.raises(FileFormatError, match="not the file that was saved"):
        load(tmp_path / "other")
    (tmp_path / "one" / "targets-00000.ibug").unlink()
    with pytest.raises(FileFormatError, match="is missing"):
        load(tmp_path / "one", local=True)


def test_a_local_model_is_no_folder_of_shards(model, data, tmp_path):
    X, y = data["train"]
    ibug.IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(X, y).save(tmp_path / "model.ibug")
    with pytest.raises(FileFormatError, match="no sharded model"):
        load(tmp_path, local=True)


def test_replicated_from_a_shared_file(client, model, data, arrays, tmp_path):
    X, y = data["train"]
    local = ibug.IBUGRegressor(model, prefit=True, k=9, calibrate=False).fit(X, y)
    local.save(tmp_path / "model.ibug", compress=False)
    everywhere = ReplicatedRegressor(tmp_path / "model.ibug", client)
    rows, _ = data["test"]
    np.testing.assert_array_equal(everywhere.predict_var(arrays(rows, 30)).compute(), local.predict_var(rows))
    everywhere.close()


@pytest.mark.parametrize("local", [True, False], ids=["here", "on a cluster"])
def test_a_missing_shard_is_named(saved, client, data, local):
    _, folder = saved
    (folder / "targets-00001.ibug").unlink()
    with pytest.raises(FileFormatError, match=r"targets-00001.ibug is missing in .*model: .*Copy the whole"):
        load(folder, local=local)


def test_shards_and_rule_are_read_only_and_share_no_memory_with_the_rows(client, model, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    given = [one.copy() for one in (X, y, X_val, y_val)]
    far = IBUGRegressor(model, prefit=True, conformal="scale").fit(
        arrays(given[0], (0, 130, 269, 1)), arrays(given[1], (0, 130, 269, 1)), X_val=given[2], y_val=given[3]
    )
    shards = client.gather(client.compute(far.shards_.shards))
    for name, one in arrays_of([far.rule_, shards]):
        assert not one.flags.writeable, name
        assert not any(np.shares_memory(one, other) for other in given), name
