"""Small real data."""

import pytest
from sklearn.datasets import load_diabetes


@pytest.fixture(scope="session")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return {"train": (X[:300], y[:300]), "validation": (X[300:380], y[300:380]), "test": (X[380:], y[380:])}
