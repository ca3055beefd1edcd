"""A cluster in this process for what is exact; real processes are started where they are to be killed or to train."""

import dask
import dask.array as da
import dask.dataframe as dd
import lightgbm
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

NAMES = list("abcde")


@pytest.fixture(scope="session")
def data():
    """Rows with missing values and ties, heteroscedastic targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5)).round(1)
    y = 3 + 2 * X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=700)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[50:60] = X[40:50]
    return {"train": (X[:400], y[:400]), "validation": (X[400:620], y[400:620]), "test": (X[620:], y[620:])}


@pytest.fixture(scope="session")
def model(data):
    return lightgbm.LGBMRegressor(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1).fit(*data["train"])


@pytest.fixture(scope="session")
def frame_model(data):
    X, y = data["train"]
    frame = pd.DataFrame(X, columns=NAMES)
    return lightgbm.LGBMRegressor(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1).fit(frame, y)


# For this folder only: threads of an idle cluster take time, too.
QUIET = {"distributed.admin.low-level-log-length": 0, "distributed.worker.profile.enabled": False}


@pytest.fixture(scope="package")
def client():
    with dask.config.set(QUIET):  # of this cluster, and of no later one
        cluster = LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def arrays():
    """Make Dask Arrays of rows or targets; chunks may be empty."""

    def make(values, chunks):
        sizes = chunks if isinstance(chunks, tuple) else -(-len(values) // chunks) * (chunks,)
        edges = np.minimum(np.cumsum([0, *sizes]), len(values))
        return da.from_array(values, chunks=(tuple(np.diff(edges).tolist()), *values.shape[1:]))

    return make


@pytest.fixture(scope="session")
def frames():
    """Make Dask DataFrames or Series of rows or targets, with an index of their own."""

    def make(values, n_parts, start=1000):
        index = np.arange(start, start + len(values))
        made = pd.Series(values, index=index) if values.ndim == 1 else pd.DataFrame(values, index, NAMES)
        return dd.from_pandas(made, npartitions=n_parts, sort=True)

    return make
