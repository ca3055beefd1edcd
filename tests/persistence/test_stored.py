"""Files of all versions of the format are read by this one."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ibug
from ibug.exceptions import OlderLibraryWarning
from ibug.persistence import FORMAT_VERSION, inspect

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_stored_file(version):
    path = DATA / f"version-{version}.ibug"
    assert inspect(path)["format_version"] == version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OlderLibraryWarning)
        u = ibug.load(path)
    assert u.distribution_ == "stack"
    with np.load(DATA / f"version-{version}.npz") as expected:
        X = pd.DataFrame(expected["X"], columns=u.feature_names_in_)
        # Another processor may add in another order.
        np.testing.assert_allclose(u.predict(X), expected["predict"], rtol=1e-12)
        np.testing.assert_allclose(u.predict_quantiles(X), expected["quantiles"], rtol=1e-9)
        if "variance" in expected:
            np.testing.assert_allclose(u.predict_var(X), expected["variance"], rtol=1e-9)
        assert np.array_equal(np.stack(u.kneighbors(X, 5)), expected["neighbors"])
