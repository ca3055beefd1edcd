"""Rows whose noise depends on one known feature, and a regressor for them."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from ibug import IBUGRegressor

NOISY = 2  # the feature that the noise depends on


def noisy_rows(n, seed):
    """Return rows and targets: the mean depends on three features, the noise on feature 2 alone, which is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 5))
    X[:, NOISY] = rng.integers(0, 2, n)
    noise = np.where(X[:, NOISY] == 1, 2.0, 0.1)
    return X, 3 * X[:, 0] + X[:, 1] ** 2 + X[:, NOISY] + noise * rng.normal(size=n)


@pytest.fixture(scope="session")
def train():
    return noisy_rows(800, 0)


@pytest.fixture(scope="session")
def u(train):
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=12, random_state=0).fit(*train)
    X_val, y_val = noisy_rows(300, 1)
    return IBUGRegressor(model, prefit=True).fit(*train, X_val=X_val, y_val=y_val)


@pytest.fixture(scope="session")
def rows():
    return noisy_rows(60, 2)[0]
