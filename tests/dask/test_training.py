"""Models that are trained on the cluster by their own libraries."""

import dask.dataframe as dd
import lightgbm
import numpy as np
import pytest
import xgboost
from distributed import Client, LocalCluster
from xgboost import dask as xgboost_dask

import ibug
from ibug.dask import IBUGRegressor
from ibug.exceptions import InvalidInputError

# LightGBM says so of its own default, whatever n_jobs is.
pytestmark = pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored:UserWarning:lightgbm.dask")


@pytest.fixture(scope="module")
def processes():
    """Real processes: LightGBM can be in one training per process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def estimator(library):
    if library == "lightgbm":
        return lightgbm.DaskLGBMRegressor(n_estimators=12, num_leaves=7, min_child_samples=5, verbose=-1)
    return xgboost_dask.DaskXGBRegressor(n_estimators=12, max_depth=3)


LOCAL = {"lightgbm": lightgbm.LGBMRegressor, "xgboost": xgboost.XGBRegressor}


@pytest.mark.parametrize("library", LOCAL)
def test_trained_on_the_cluster(processes, data, frames, library):
    (X, y), (X_val, y_val), (rows, _) = data["train"], data["validation"], data["test"]
    far = IBUGRegressor(estimator(library)).fit(
        frames(X, 2), frames(y, 2), X_val=frames(X_val, 2), y_val=frames(y_val, 2)
    )
    assert type(far.estimator_) is LOCAL[library]
    # The same trained model, wrapped locally, learns the same.
    frame, validation = frames(X, 1).compute(), frames(X_val, 1).compute()
    local = ibug.IBUGRegressor(far.estimator_, prefit=True, residuals="none")
    local.fit(frame, y, X_val=validation, y_val=y_val)
    queries = frames(rows, 3)
    assert far.k_ == local.k_
    np.testing.assert_array_equal(far.predict(queries).compute(), far.estimator_.predict(queries.compute()))
    np.testing.assert_array_equal(far.predict_interval(queries).compute(), local.predict_interval(queries.compute()))


def test_rows_are_held_out_and_the_model_is_trained_again(processes, data, arrays):
    X, y = data["train"]
    weights = np.ones(len(y))
    far = IBUGRegressor(estimator("lightgbm"), random_state=0)
    far.fit(arrays(X, 200), arrays(y, 200), sample_weight=arrays(weights, 200))
    assert far.source_.index.n_rows == 400
    # The threshold is that of the final model's training rows, each without itself.
    local = ibug.IBUGRegressor(far.estimator_, prefit=True, k=far.k_, calibrate=False).fit(X, y)
    affinities, rows = local.kneighbors(X, far.k_ + 1)
    scores = [shared[near != i][: far.k_].mean() for i, (shared, near) in enumerate(zip(affinities, rows, strict=True))]
    assert set(far.rule_.reference.samples) == {"prediction", "pit"}
    assert not far.rule_.reference.same_model
    assert far.affinity_threshold_ == pytest.approx(np.quantile(scores, 0.01) / far.source_.index.n_trees)
    kept = IBUGRegressor(estimator("lightgbm"), refit=False, random_state=0).fit(arrays(X, 200), arrays(y, 200))
    assert 250 < kept.source_.index.n_rows < 390
    assert kept.k_ == far.k_
    with pytest.raises(InvalidInputError, match="refit=False"):
        IBUGRegressor(estimator("lightgbm"), spread="residuals").fit(arrays(X, 200), arrays(y, 200))


def test_a_trained_dask_estimator(processes, data, arrays):
    X, y = data["train"]
    rows, targets = arrays(X, 200), arrays(y, 200)
    for library in LOCAL:
        trained = estimator(library)
        trained.client = processes
        trained.fit(rows, targets)
        far = IBUGRegressor(trained, prefit=True, k=9, calibrate=False).fit(rows, targets)
        assert type(far.estimator_) is LOCAL[library]
        np.testing.assert_allclose(far.predict(rows).compute(), trained.predict(rows).compute(), rtol=1e-6)


def test_frames_of_categories(processes, data, frames):
    X, y = data["train"]
    frame = frames(X, 2).compute()
    frame["c"] = (frame["a"] > 0).map({True: "x", False: "y"}).astype("category")
    rows = dd.from_pandas(frame, npartitions=2)
    far = IBUGRegressor(estimator("lightgbm"), k=11, calibrate=False).fit(rows, frames(y, 2))
    local = ibug.IBUGRegressor(far.estimator_, prefit=True, k=11, calibrate=False).fit(frame, y)
    np.testing.assert_array_equal(far.predict_var(rows).compute(), local.predict_var(frame))
