import numpy as np
import pytest

from benchmarks.study.methods import Split


@pytest.fixture(scope="session")
def rows():
    """60 validation and 60 test rows beside 200 others, noise that grows with x."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (320, 4))
    y = 3 * X[:, 0] + np.sin(3 * X[:, 1]) + (0.2 + 0.4 * np.abs(X[:, 2])) * rng.normal(size=320)
    return X, y


@pytest.fixture(scope="session")
def split(rows):
    X, y = rows
    return Split(X[:200], y[:200], X[200:260], y[200:260], X[:260], y[:260])
