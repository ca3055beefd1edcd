"""Small models of every kind, wrapped."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes


@pytest.fixture(scope="session")
def rows():
    """A frame of numbers, the same with a categorical column, and targets."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X.iloc[:240], y.iloc[:240].to_numpy()
    letters = np.array(["low", "middle", "high"])[np.arange(len(X)) % 3]
    return {"numbers": X, "categories": X.assign(letter=pd.Categorical(letters)), "array": X.to_numpy(), "y": y}


@pytest.fixture(scope="session")
def wrapped(rows):
    """A regressor around a small LightGBM model, with everything that can be learned."""
    from lightgbm import LGBMRegressor

    from ibug import IBUGRegressor

    model = LGBMRegressor(n_estimators=6, num_leaves=5, verbose=-1, n_jobs=1)
    return IBUGRegressor(model, conformal="scale", random_state=0).fit(rows["numbers"], rows["y"])
