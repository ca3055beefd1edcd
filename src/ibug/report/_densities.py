"""Densities on a small grid, in two bytes a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.describe import density_ends
from ibug.distributions import Distribution
from ibug.report._pack import pack

# A density is drawn between these quantiles, and beyond where it has not come down yet.
_TAIL = 0.003
_EVEN, _BY_QUANTILE = 49, 23
_STEPS = 2**16 - 1


def densities(distribution: Distribution, lower: Floats, upper: Floats) -> dict[str, Any]:
    """Return the density of each row on a grid of its own.

    The grid is even, with more points where the distribution has its mass, so that narrow peaks over long tails are
    seen. Points are stored as 65535ths of the grid's length, densities as 65535ths of their peak.

    Shapes: lower, upper (n_rows,).
    """
    start, stop = _ends(distribution, lower, upper)
    length = np.where(stop > start, stop - start, 1.0)
    quantiles = distribution.ppf(np.linspace(0.02, 0.98, _BY_QUANTILE)[None, :])
    even = start[:, None] + (stop - start)[:, None] * np.linspace(0, 1, _EVEN)[None, :]
    inside = np.where(np.isfinite(quantiles), quantiles, start[:, None])
    grid = np.sort(np.clip(np.hstack([even, inside]), start[:, None], stop[:, None]), axis=1)
    # The density is taken where it is drawn, at a whole number of steps.
    steps = np.round((grid - start[:, None]) / length[:, None] * _STEPS)
    grid = start[:, None] + steps / _STEPS * length[:, None]
    with np.errstate(all="ignore"):
        density = np.nan_to_num(distribution.pdf(grid), nan=0.0, posinf=np.inf)
    peak = np.max(np.where(np.isfinite(density), density, 0.0), axis=1)
    height = np.minimum(density / np.where(peak > 0, peak, 1.0)[:, None], 1.0)
    return {
        "start": pack(start, "float64"),
        "length": pack(length, "float64"),
        "peak": pack(peak, "float64"),
        "steps": pack(steps, "uint16"),
        "heights": pack(np.round(height * _STEPS), "uint16"),
    }


def _ends(distribution: Distribution, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return where each grid starts and stops: finite even where quantiles are not."""
    centre = np.nan_to_num(distribution.ppf(0.5), posinf=0.0, neginf=0.0)
    quartiles = np.nan_to_num(distribution.ppf(0.75) - distribution.ppf(0.25), nan=1.0, posinf=1.0)
    around = 4 * np.where(quartiles > 0, quartiles, 1.0)
    first, last = density_ends(distribution, _TAIL)
    start, stop = np.minimum(first, lower), np.maximum(last, upper)
    start = np.where(np.isfinite(start), start, centre - around)
    stop = np.where(np.isfinite(stop), stop, centre + around)
    return start, np.maximum(start, stop)
