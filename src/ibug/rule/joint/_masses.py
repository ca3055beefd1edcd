"""The masses that experts on neighbours give them, by rank and affinity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.rule._experts import Nearest

Weighted = Sequence[tuple[Nearest, float]]


def expert_masses(expert: Nearest, shares: Floats) -> Floats:
    """Return the masses ∝ exp(sharpness · share) of the expert's k nearest neighbours, (n, k); they sum to 1.

    Shapes: shares (n, at least k).
    """
    near = shares[:, : expert.k]
    masses = np.exp(expert.sharpness * (near - near[:, :1]))
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


def combined_masses(on_targets: Weighted, on_residuals: Weighted, shares: Floats) -> NDArray[np.float32]:
    """Return the masses of all experts together, (n, k_targets + k_residuals); those of a row sum to 1.

    Shapes: shares (n, k).
    """
    parts = []
    for experts in (on_targets, on_residuals):
        total = np.zeros((len(shares), max((one.k for one, _ in experts), default=0)))
        for one, weight in experts:
            total[:, : one.k] += weight * expert_masses(one, shares)
        parts.append(total)
    found = np.concatenate(parts, axis=1)
    size = found.sum(axis=1, keepdims=True)
    return np.asarray(found / np.where(size > 0, size, 1.0), np.float32)
