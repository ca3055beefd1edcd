"""Small real data and a model trained on its first part."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor


@pytest.fixture(scope="session")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return {"train": (X[:300], y[:300]), "validation": (X[300:380], y[300:380]), "test": (X[380:], y[380:])}


@pytest.fixture(scope="session")
def model(diabetes):
    return GradientBoostingRegressor(n_estimators=60, random_state=0).fit(*diabetes["train"])


@pytest.fixture(scope="session")
def sampled_model(diabetes):
    """A model that cannot tell residuals of its training rows: its trees have seen samples of them."""
    return GradientBoostingRegressor(n_estimators=60, subsample=0.7, random_state=0).fit(*diabetes["train"])


@pytest.fixture
def rng():
    return np.random.default_rng(0)
