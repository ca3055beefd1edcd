"""What is probably not meant is a warning on a cluster, too."""

import lightgbm
import numpy as np
import pytest

from ibug.dask import IBUGRegressor
from ibug.exceptions import NotCentralWarning, SeenRowsWarning


def test_validation_rows_that_are_training_rows(client, data, model, arrays, frames, frame_model):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    seen = np.concatenate([X_val[:60], X[100:180]]), np.concatenate([y_val[:60], y[100:180]])
    # rows of a chunk, numbers of partitions
    for make, one, cuts in ((arrays, model, (150, 70)), (frames, frame_model, (3, 2))):
        with pytest.warns(SeenRowsWarning, match="57% of the validation rows are training rows"):
            IBUGRegressor(one, prefit=True, k=9).fit(
                make(X, cuts[0]), make(y, cuts[0]), X_val=make(seen[0], cuts[1]), y_val=make(seen[1], cuts[1])
            )


def test_equal_targets_alone_are_no_reason(client, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    y, y_val = y.round(), y_val.round()
    model = lightgbm.LGBMRegressor(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    IBUGRegressor(model, prefit=True, k=9).fit(arrays(X, 150), arrays(y, 150), X_val=X_val, y_val=y_val)


def test_rows_that_are_repeated_among_training_rows_are_no_reason(client, data, arrays):
    X, y = (np.repeat(values[:200], 2, axis=0) for values in data["train"])
    model = lightgbm.LGBMRegressor(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    IBUGRegressor(model, prefit=True, k=9).fit(arrays(X, 150), arrays(y, 150), X_val=X[::3], y_val=y[::3])


def test_a_model_of_training_and_validation_rows(client, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    every = np.concatenate([X, X_val]), np.concatenate([y, y_val])
    model = lightgbm.LGBMRegressor(n_estimators=25, num_leaves=8, verbose=-1, n_jobs=1).fit(*every)
    with pytest.warns(SeenRowsWarning, match="trained on 620 rows"):
        IBUGRegressor(model, prefit=True, k=9).fit(arrays(X, 150), arrays(y, 150), X_val=X_val, y_val=y_val)


def test_a_model_of_a_quantile(client, data, arrays):
    (X, y), (X_val, y_val) = data["train"], data["validation"]
    options = {"objective": "quantile", "alpha": 0.9, "n_estimators": 25, "num_leaves": 8, "verbose": -1, "n_jobs": 1}
    model = lightgbm.LGBMRegressor(**options).fit(X, y)
    with pytest.warns(NotCentralWarning, match="quantile"):
        IBUGRegressor(model, prefit=True, k=9).fit(arrays(X, 150), arrays(y, 150), X_val=X_val, y_val=y_val)
