"""A worker process that is killed in the middle: lost shards are made again, and the result is right and complete."""

import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from distributed import Client, LocalCluster, futures_of

import ibug
from ibug.dask import IBUGRegressor

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def cluster():
    """Two processes of one thread each, which are started again when they die."""
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def workers(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def slow_array(values, size, folder):
    # Inside, so that it is sent to the workers, which do not know this module.
    def slowly(values, number):
        """Return a partition after a while, and leave a mark that it was asked for."""
        (folder / f"{number}-{time.monotonic_ns()}").touch()
        time.sleep(0.2)
        return values

    blocks = [values[start : start + size] for start in range(0, len(values), size)]
    parts = [delayed(slowly)(block, i) for i, block in enumerate(blocks)]
    return da.concatenate(
        [da.from_delayed(part, block.shape, block.dtype) for part, block in zip(parts, blocks, strict=True)]
    )


class Killer(threading.Thread):
    """Kills one worker process as soon as a number of partitions have been asked for."""

    def __init__(self, client, folder, after):
        super().__init__()
        self.pid = next(iter(client.run(os.getpid).values()))
        self.folder, self.after, self.killed = folder, after, False

    def run(self):
        for _ in range(3000):
            if len(list(self.folder.iterdir())) >= self.after:
                os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows kills by either
                self.killed = True
                return
            time.sleep(0.01)


@pytest.fixture
def local(model, data):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    local = ibug.IBUGRegressor(model, prefit=True, residuals="none", conformal="scale", random_state=0)
    return local.fit(X, y, X_val=X_val, y_val=y_val)


# The first two partitions are seen in the check of the targets, the later ones while shards are made.
@pytest.mark.parametrize("after", [2, 14], ids=["check", "index"])
def test_killed_in_the_middle_of_fit(workers, model, data, local, arrays, tmp_path, after):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    killer = Killer(workers, tmp_path, after)
    killer.start()
    far = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0).fit(
        slow_array(X, 80, tmp_path), arrays(y, 80), X_val=arrays(X_val, 110), y_val=arrays(y_val, 110)
    )
    killer.join()
    assert killer.killed
    assert far.k_ == local.k_
    assert far.rule_.gamma == local.rule_.gamma
    rows, _ = data["test"]
    np.testing.assert_array_equal(far.predict_interval(rows), local.predict_interval(rows))


def test_killed_in_the_middle_of_predict(workers, model, data, local, arrays, tmp_path):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    far = IBUGRegressor(model, prefit=True, conformal="scale", random_state=0).fit(
        arrays(X, 80), arrays(y, 80), X_val=arrays(X_val, 110), y_val=arrays(y_val, 110)
    )
    rows, _ = data["test"]
    holders = workers.who_has(futures_of(far.shards_.shards))
    assert len({worker for found in holders.values() for worker in found}) == 2  # both have shards to lose
    killer = Killer(workers, tmp_path, after=2)
    killer.start()
    interval = far.predict_interval(slow_array(rows, 10, tmp_path)).compute()
    killer.join()
    assert killer.killed
    np.testing.assert_array_equal(interval, local.predict_interval(rows))
    affinities, indices = far.kneighbors(rows)  # and once more, with the shards that were made again
    np.testing.assert_array_equal(affinities, local.kneighbors(rows)[0])
    np.testing.assert_array_equal(indices, local.kneighbors(rows)[1])
