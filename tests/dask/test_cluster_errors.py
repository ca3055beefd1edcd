"""Errors say what is wrong, and in which partition."""

import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import lightgbm
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from distributed import Client, futures_of
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError

from ibug import Sampling
from ibug.calibration import ScaleConformal
from ibug.dask import IBUGRegressor
from ibug.exceptions import InvalidInputError, NotCalibratedWarning, UnsupportedModelError
from tests.dask.conftest import NAMES

pytestmark = pytest.mark.once


def test_a_partition_with_bad_targets_names_itself(client, model, data, arrays):
    X, y = data["train"]
    y = y.copy()
    y[250] = np.nan
    with pytest.raises(InvalidInputError, match=r"Partition 2 of X and y: Input y contains NaN"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), arrays(y, 100))


def test_trees_are_not_chosen_on_a_cluster(client, model, data, arrays):
    X, y = data["train"]
    with pytest.raises(InvalidInputError, match='On a cluster, tree_order="gain" would read all shards twice'):
        IBUGRegressor(model, prefit=True, sampling=Sampling(tree_fraction=0.5, tree_order="gain")).fit(
            arrays(X, 100), arrays(y, 100)
        )


def test_several_targets_are_refused(client, data, arrays):
    from sklearn.ensemble import RandomForestRegressor

    X, y = (np.nan_to_num(values) for values in data["train"])
    both = np.column_stack([y, -y])
    model = RandomForestRegressor(5, random_state=0, max_depth=4).fit(X, both)
    with pytest.raises(InvalidInputError, match="predicts 2 targets, and a cluster has one"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 200), arrays(y, 200))
    with pytest.raises(InvalidInputError, match="y should be a 1d array"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 200), arrays(both, 200))


def test_a_partition_with_bad_validation_rows_names_itself(client, model, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    y_val = y_val.copy()
    y_val[-1] = np.inf
    with pytest.raises(InvalidInputError, match=r"Partition 2 of X_val and y_val: Input y contains infinity"):
        IBUGRegressor(model, prefit=True).fit(
            arrays(X, 100), arrays(y, 100), X_val=arrays(X_val, 100), y_val=arrays(y_val, 100)
        )


def test_a_partition_with_bad_queries_names_itself(client, data, arrays):
    X, y = (np.nan_to_num(values) for values in data["train"])
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(5, random_state=0, max_depth=4).fit(X, y)
    far = IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 200), arrays(y, 200))
    rows = X[:60].copy()
    rows[45, 0] = np.inf
    for method in (far.predict, far.predict_interval):
        with pytest.raises(InvalidInputError, match=r"Partition 1 of X: .*infinity"):
            method(arrays(rows, 40)).compute()


def test_partitions_of_other_lengths(client, model, data, arrays):
    X, y = data["train"]
    with pytest.raises(InvalidInputError, match="4 partitions and its targets have 2"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), arrays(y, 200))
    with pytest.raises(InvalidInputError, match=r"Partition \d of X and y: .*inconsistent numbers of samples"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, (100, 300)), arrays(y, (200, 200)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 5}, "Cross-fitting"),
        ({"k": 401}, "from 2 to the 400 training rows"),
        ({"k": "tune"}, 'k="tune" needs rows'),
        ({"k": 5, "conformal": "scale"}, "needs rows that the trained model has not seen"),
        ({"k": 5, "support": (0, 1)}, "outside the support"),
        ({"k": 5, "distribution": "gauss"}, "gauss"),
        ({"k": 5, "sampling": Sampling(weight_neighbors=True)}, "leave weight_neighbors out"),
        ({"k": 5, "conformal": ScaleConformal(groups=0)}, "leave groups= of the calibrator out"),
        ({"k": 5, "conformal": ScaleConformal(ratio=len)}, "leave ratio= of the calibrator out"),
    ],
)
def test_options_that_cannot_be(client, model, data, arrays, options, message):
    X, y = data["train"]
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(model, **{"prefit": True, "calibrate": False, **options}).fit(arrays(X, 100), arrays(y, 100))


def test_rows_that_come_later(client, model, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    with pytest.raises(InvalidInputError, match="leave sample_weight_val out"):
        IBUGRegressor(model, prefit=True).fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=np.ones(len(y_val)))
    far = IBUGRegressor(model, prefit=True)
    with pytest.raises(NotFittedError):
        far.recalibrate(X_val, y_val)
    far.fit(arrays(X, 100), arrays(y, 100), X_val=X_val, y_val=y_val)
    rule = far.rule_
    with pytest.raises(InvalidInputError, match="takes no new rows"):
        far.update(X_val, y_val)
    with pytest.raises(InvalidInputError, match="leave sample_weight out"):
        far.recalibrate(X_val, y_val, np.ones(len(y_val)))
    with pytest.raises(InvalidInputError, match="recalibrate needs rows"):
        far.recalibrate(X_val, None)
    with pytest.raises(ValueError, match="features"):
        far.recalibrate(X_val[:, :3], y_val)
    assert far.rule_ is rule  # nothing is lost


def test_it_says_that_nothing_is_calibrated(client, model, data, arrays):
    X, y = data["train"]
    with pytest.warns(NotCalibratedWarning):
        IBUGRegressor(model, prefit=True, k=5).fit(arrays(X, 100), arrays(y, 100))


@pytest.mark.parametrize("model", [None, HistGradientBoostingRegressor(), lightgbm.LGBMRegressor()])
def test_local_estimators_are_not_trained_on_a_cluster(client, data, arrays, model):
    X, y = data["train"]
    with pytest.raises(UnsupportedModelError, match="DaskLGBMRegressor"):
        IBUGRegressor(model).fit(arrays(X, 100), arrays(y, 100))


def test_targets_that_are_elsewhere(client, model, data, arrays):
    X, y = data["train"]
    with pytest.raises(InvalidInputError, match="both Dask collections"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), y)
    with pytest.raises(InvalidInputError, match="are missing"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), None)
    with pytest.raises(InvalidInputError, match="belong together"):
        IBUGRegressor(model, prefit=True).fit(arrays(X, 100), arrays(y, 100), X_val=X)
    with pytest.raises(InvalidInputError, match="400 rows and 3 targets"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(X, y[:3])


def test_empty_everywhere(client, model, data):
    empty = da.from_array(np.empty((0, 5))), da.from_array(np.empty(0))
    with pytest.raises(InvalidInputError, match="every partition is empty"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(*empty)


def test_columns_are_checked(client, frame_model, data, frames):
    X, y = data["train"]
    far = IBUGRegressor(frame_model, prefit=True, k=5, calibrate=False).fit(frames(X, 2), frames(y, 2))
    with pytest.raises(ValueError, match="feature names"):
        far.predict(frames(X, 2)[list("edcba")])
    with pytest.raises(InvalidInputError, match="in another order"):
        IBUGRegressor(frame_model, prefit=True, k=5, calibrate=False).fit(frames(X, 2)[list("edcba")], frames(y, 2))
    with pytest.raises(InvalidInputError, match="Dask DataFrame or Array"):
        far.predict(csr_array(np.nan_to_num(X)))


def test_unfitted_and_cloned(client, model, data):
    far = IBUGRegressor(model, prefit=True, k=7)
    with pytest.raises(NotFittedError):
        far.predict(data["test"][0])
    assert clone(far).get_params()["k"] == 7


def test_a_fresh_process_imports_no_dask_and_has_no_client():
    code = (
        "import sys, ibug; print(sorted({'dask', 'distributed', 'ibug.dask'} & set(sys.modules)))\n"
        "from ibug.dask import IBUGRegressor\n"
        "try: IBUGRegressor(prefit=True).fit([[1.0]], [1.0])\n"
        "except ValueError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, _, message = run.stdout.partition("\n")
    assert imported == "[]"
    assert "There is no Dask client" in message


def lying(X, change, at=1):
    """Return a Dask DataFrame one of whose partitions is not as its collection says."""
    frame = pd.DataFrame(X, columns=NAMES)
    parts = np.array_split(np.arange(len(frame)), 3)
    made = [delayed(change if i == at else lambda part: part)(frame.iloc[part]) for i, part in enumerate(parts)]
    return dd.from_delayed(made, meta=frame.iloc[:0], verify_meta=False)


LIES = {
    "order": (lambda part: part[NAMES[::-1]], r"another order .*\['e', 'd', 'c', 'b', 'a'\] instead of .*in order"),
    "missing": (lambda part: part.drop(columns="c"), r"missing \['c'\], unexpected \[\]"),
    "extra": (lambda part: part.assign(f=1.0), r"missing \[\], unexpected \['f'\]"),
    "renamed": (lambda part: part.rename(columns={"a": "z"}), r"missing \['a'\], unexpected \['z'\]"),
}


@pytest.fixture(scope="module")
def fitted(client, frame_model, data):
    X, y = data["train"]
    rows = lying(X, lambda part: part)
    targets = dd.from_delayed([delayed(pd.Series)(part) for part in np.array_split(y, 3)], meta=pd.Series(dtype=float))
    return IBUGRegressor(frame_model, prefit=True, k=5, calibrate=False).fit(rows, targets)


@pytest.mark.parametrize("lie", LIES)
def test_a_partition_of_queries_with_other_columns_names_itself(lie, fitted, data):
    change, message = LIES[lie]
    rows = lying(data["test"][0], change)
    for method in (fitted.predict, fitted.predict_interval, fitted.predict_quantiles, fitted.leaf_density):
        with pytest.raises(InvalidInputError, match=f"Partition 1 of X: Its columns .*{message}"):
            method(rows).compute()
    with pytest.raises(InvalidInputError, match=f"Partition 1 of X: Its columns .*{message}"):
        fitted.predict_dist(rows).compute()


@pytest.mark.parametrize("lie", LIES)
def test_a_partition_of_training_or_validation_rows_with_other_columns_names_itself(lie, client, frame_model, data):
    change, message = LIES[lie]
    (X, y), (X_val, y_val) = data["train"], data["validation"]

    def targets(values):
        return dd.from_delayed([delayed(pd.Series)(p) for p in np.array_split(values, 3)], meta=pd.Series(dtype=float))

    u = IBUGRegressor(frame_model, prefit=True, k=5)
    with pytest.raises(InvalidInputError, match=f"Partition 2 of X and y: Its columns .*{message}"):
        u.fit(lying(X, change, 2), targets(y))
    with pytest.raises(InvalidInputError, match=f"Partition 0 of X_val and y_val: Its columns .*{message}"):
        u.fit(lying(X, lambda part: part), targets(y), X_val=lying(X_val, change, 0), y_val=targets(y_val))


def test_a_block_with_another_number_of_columns_names_itself(client, model, data, arrays):
    X, y = data["train"]
    u = IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), arrays(y, 100))
    blocks = [da.from_delayed(delayed(X[:30, :n]), (30, 5), dtype=float) for n in (5, 4)]
    with pytest.raises(InvalidInputError, match=r"Partition 1 of X: It has the shape \(30, 4\).* 5 columns"):
        u.predict_interval(da.concatenate(blocks)).compute()


@pytest.mark.parametrize("end", ["cancelled", "closed"])
def test_shards_that_the_cluster_no_longer_has(end, client, model, data, tmp_path):
    (X, y), cluster = data["train"], client.cluster
    with Client(cluster, set_as_default=False) as own:
        far = IBUGRegressor(model, prefit=True, k=5, calibrate=False)
        far.client = own
        far.fit(X, y).predict_interval(X[:3])
        if end == "cancelled":  # as all futures are when the cluster is restarted
            own.cancel(futures_of(far.shards_.shards), force=True)
        else:
            own.close()
        for call in (far.predict_interval, far.predict_dist, far.kneighbors, far.leaf_density):
            with pytest.raises(InvalidInputError, match=r"no longer has the shards .*load\(folder\).* or fit it again"):
                call(X[:3])
        for again in (
            lambda: far.save(tmp_path / "model"),
            lambda: far.recalibrate(*data["validation"], distribution="tune"),
        ):
            with pytest.raises(InvalidInputError, match="no longer has the shards"):
                again()
    assert not (tmp_path / "model").exists()
