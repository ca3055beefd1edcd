"""Errors say what is wrong, and in which partition."""

import subprocess
import sys

import dask.array as da
import lightgbm
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError

from ibug.dask import IBUGRegressor
from ibug.exceptions import InvalidInputError, NotCalibratedWarning, UnsupportedModelError


def test_a_partition_with_bad_targets_names_itself(client, model, data, arrays):
    X, y = data["train"]
    y = y.copy()
    y[250] = np.nan
    with pytest.raises(InvalidInputError, match=r"Partition 2 of X and y: Input y contains NaN"):
        IBUGRegressor(model, prefit=True, k=5, calibrate=False).fit(arrays(X, 100), arrays(y, 100))


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
    ],
)
def test_options_that_cannot_be(client, model, data, arrays, options, message):
    X, y = data["train"]
    with pytest.raises(InvalidInputError, match=message):
        IBUGRegressor(model, **{"prefit": True, "calibrate": False, **options}).fit(arrays(X, 100), arrays(y, 100))


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
