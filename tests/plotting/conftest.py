"""A fitted regressor on small real data, and figures that go nowhere."""

import os
import sys

import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

from ibug import IBUGRegressor

os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(scope="session")
def data():
    X, y = load_diabetes(return_X_y=True)
    return {"train": (X[:300], y[:300]), "validation": (X[300:370], y[300:370]), "test": (X[370:], y[370:])}


@pytest.fixture(scope="session")
def u(data):
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(*data["train"])
    X_val, y_val = data["validation"]
    return IBUGRegressor(model, prefit=True, random_state=0).fit(*data["train"], X_val=X_val, y_val=y_val)


@pytest.fixture(scope="session")
def normal(u, data):
    """The same with normal distributions."""
    X_val, y_val = data["validation"]
    regressor = IBUGRegressor(u.estimator_, prefit=True, distribution="normal", random_state=0)
    return regressor.fit(*data["train"], X_val=X_val, y_val=y_val)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
