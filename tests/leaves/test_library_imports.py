"""No library is imported unless the model is of that library."""

import subprocess
import sys

import pytest

MAIN = """
import sys
import numpy as np
from ibug import IBUGRegressor
{imports}

X = np.random.default_rng(0).normal(size=(60, 3))
regressor = IBUGRegressor({model}, k=3, calibrate=False).fit(X, X[:, 0])
assert regressor.kneighbors(X)[1].shape == (60, 3)
print(*sorted({{"lightgbm", "xgboost", "catboost"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("library", "imports", "model"),
    [
        ("", "from sklearn.ensemble import RandomForestRegressor", "RandomForestRegressor(n_estimators=3)"),
        ("", "", "None"),
        ("lightgbm", "from lightgbm import LGBMRegressor", "LGBMRegressor(n_estimators=3, verbose=-1)"),
        ("xgboost", "from xgboost import XGBRegressor", "XGBRegressor(n_estimators=3)"),
        (
            "catboost",
            "from catboost import CatBoostRegressor",
            "CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False)",
        ),
    ],
    ids=["forest", "default", "lightgbm", "xgboost", "catboost"],
)
def test_only_the_models_library_is_imported(library, imports, model):
    if library:
        pytest.importorskip(library)
    code = MAIN.format(imports=imports, model=model)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == library.split()
