"""Totals by ranks of whole validation blocks, as the Schaake shuffle does, and by adding up quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.special import ndtr

from benchmarks.common.data import Floats

#: Quantiles of rows are taken at these levels.
LEVELS = ndtr(np.linspace(-3.5, 3.5, 57))


def ranks(low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Return ranks of PIT values in (0, 1); a value is anywhere between both ends of its jump. Shapes: (n_rows,)."""
    values = low + rng.uniform(size=len(low)) * (high - low)
    return (np.argsort(np.argsort(values)) + 0.5) / len(values)


def samples(
    quantiles: Floats, units: NDArray[Any], groups: NDArray[Any], known: Floats, blocks: NDArray[Any]
) -> Floats:
    """Return totals of groups, one for each validation block, (n_groups, n_blocks).

    A row takes the rank of the row at the same place of the validation block; blocks of other sizes are stretched.
    Shapes: quantiles (n_rows, n_levels) of rows in their units and groups; known, blocks (n_validation,).
    """
    templates = [known[blocks == block] for block in np.unique(blocks)]
    codes = np.unique(groups, return_inverse=True)[1]
    totals = np.zeros((codes.max() + 1, len(templates)))
    scores, step = np.linspace(0, len(LEVELS) - 1, len(LEVELS)), np.arange(len(units))
    for unit in np.unique(units):
        rows = step[units == unit]
        place = (np.arange(len(rows)) + 0.5) / len(rows)
        for j, template in enumerate(templates):
            level = template[(place * len(template)).astype(np.intp)]
            where = np.clip(np.interp(level, LEVELS, scores), 0, len(LEVELS) - 1.000001)
            below = where.astype(np.intp)
            low, high = quantiles[rows, below], quantiles[rows, below + 1]
            np.add.at(totals[:, j], codes[rows], low + (where - below) * (high - low))
    return totals


def crps_of_samples(values: Floats, y: Floats) -> Floats:
    """Return the CRPS of distributions that are samples, (n_groups,). Shapes: values (n_groups, m); y (n_groups,)."""
    m = values.shape[1]
    ordered = np.sort(values, axis=1)
    apart = 2 * (ordered @ (2 * np.arange(m) + 1 - m)) / m**2  # the mean distance of two of them
    return np.asarray(np.abs(values - y[:, None]).mean(axis=1) - apart / 2)


def crps_of_quantiles(values: Floats, y: Floats) -> Floats:
    """Return the CRPS of distributions by their quantiles, (n_groups,). Shapes: values (n_groups, n_levels)."""
    error = y[:, None] - values
    return np.asarray(2 * trapezoid(np.maximum(LEVELS * error, (LEVELS - 1) * error), LEVELS, axis=1))
