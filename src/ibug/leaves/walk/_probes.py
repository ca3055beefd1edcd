"""Rows on which a wrong comparison shows: thresholds themselves, their neighbours, special values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.leaves.walk._trees import Trees

_SPECIAL = (np.nan, np.nan, 0.0, -0.0, 1e-40, -1e-36, 1e30, -1e30, -0.5, -1.0, 1.5)
_INFINITE = (np.inf, -np.inf)
_SHARE_OF_SPECIAL = 0.15


def probes(trees: Trees, n_rows: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Make rows for a model's trees, of shape (n_rows, n_features).

    Each value is a threshold of its feature, the next number above or below it, a category, or special: missing, zero,
    nearly zero, huge, infinite where the library takes that, or fractional.
    """
    rng = np.random.default_rng(seed)
    return np.column_stack([_feature(trees, feature, n_rows, rng) for feature in range(trees.n_features)])


def _feature(trees: Trees, feature: int, n_rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    nodes, refuse_infinite = trees.nodes, trees.reading.get("refuse_infinite")
    own = nodes[((nodes["left"] >= 0) | (trees.leaf_values is not None)) & (nodes["feature"] == feature)]
    numeric = own["categories"] < 0
    special: tuple[float, ...] = _SPECIAL if refuse_infinite else _SPECIAL + _INFINITE
    values: NDArray[Any]
    if numeric.any():
        values = _around(own["threshold"][numeric], bool(trees.reading.get("single")), n_rows, rng)
        if refuse_infinite:
            values = np.where(np.isinf(values), 0.0, values)
    elif feature in trees.n_categories:  # others are missing values by the time that the trees see them
        values, special = rng.integers(0, trees.n_categories[feature], n_rows), (np.nan,)
    else:
        members = np.concatenate([*(trees.categories[i] for i in np.unique(own["categories"])), [0]])
        values = rng.choice(members, n_rows) + rng.choice([0, 0, 0, 0.5, 1, 7], n_rows)
    odd = rng.random(n_rows) < _SHARE_OF_SPECIAL
    return np.where(odd, rng.choice(special, n_rows), values).astype(np.float64)


def _around(
    thresholds: NDArray[np.float64], single: bool, n_rows: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw thresholds and their neighbours, (n_rows,)."""
    precision = np.float32 if single else np.float64
    drawn = rng.choice(thresholds, n_rows).astype(precision)
    away = rng.choice(np.array(_INFINITE, precision), n_rows)
    with np.errstate(over="ignore"):  # beyond the largest number is an infinite one
        return np.where(rng.random(n_rows) < 0.5, drawn, np.nextafter(drawn, away)).astype(np.float64)
