"""No library is imported unless the model is of that library."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.once

# One process for several models, as it takes seconds to import scikit-learn: each brings one more library.
MAIN = """
import sys
import numpy as np
from ibug import IBUGRegressor

X = np.random.default_rng(0).normal(size=(60, 3))

def check(model):
    regressor = IBUGRegressor(model, k=3, calibrate=False).fit(X, X[:, 0])
    assert regressor.kneighbors(X)[1].shape == (60, 3)
    print(*sorted({"lightgbm", "xgboost", "catboost"} & set(sys.modules)))
"""
MODELS = {
    "sklearn": "from sklearn.ensemble import RandomForestRegressor\n"
    "check(RandomForestRegressor(n_estimators=3))\n"
    "check(None)",
    "lightgbm": "from lightgbm import LGBMRegressor\ncheck(LGBMRegressor(n_estimators=3, verbose=-1))",
    "xgboost": "from xgboost import XGBRegressor\ncheck(XGBRegressor(n_estimators=3))",
    "catboost": "from catboost import CatBoostRegressor\n"
    "check(CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False))",
}


def printed(*libraries):
    """Return what is imported after each model, in one process."""
    code = MAIN + "\n".join(MODELS[library] for library in libraries)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_only_the_models_library_is_imported():
    """Each order of two libraries would show if one of them brought the other."""
    libraries = [name for name in ("lightgbm", "xgboost", "catboost") if find_spec(name)]
    expected = [[], [], *(sorted(libraries[: i + 1]) for i in range(len(libraries)))]
    assert printed("sklearn", *libraries) == expected
    if len(libraries) > 1:
        backwards = libraries[::-1]
        assert printed(*backwards) == [sorted(backwards[: i + 1]) for i in range(len(libraries))]
