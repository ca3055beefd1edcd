"""The rows that ``speed.py`` measures on. It needs NumPy alone, for peers in an environment of their own."""

from __future__ import annotations

import numpy as np

from benchmarks.common.timing import Floats


def synthetic_rows(n_rows: int, n_features: int = 9) -> tuple[Floats, Floats]:
    """Draw rows (n_rows, n_features) and targets (n_rows,): a smooth mean of 8 features, noise that varies with one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_features))
    mean = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + np.exp(X[:, 3]) + X[:, 4] ** 2 * X[:, 5]
    mean += np.cos(4 * X[:, 6] * X[:, 7]) / 2
    return X, mean + (0.1 + 0.4 * np.abs(X[:, 8])) * rng.normal(size=n_rows)
