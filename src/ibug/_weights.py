"""Weights of rows: means, quantiles, and how many rows they are worth. None stands for equal weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats


def counted_rows(weights: Floats) -> tuple[NDArray[np.intp], Floats | None]:
    """Return the rows that count, and their weights, of which the mean is 1; None where they are equal."""
    rows = np.flatnonzero(weights)
    own = weights[rows]
    return rows, None if np.all(own == own[0]) else own / own.mean()


def effective_rows(weights: Floats | None, n_rows: int) -> float:
    """Return (Σw)²/Σw², the number of equally weighted rows with as much information (Kish); n_rows without weights."""
    if weights is None:
        return float(n_rows)
    shares = weights / weights.max()  # of which the squares are no problem
    return float(shares.sum() ** 2 / np.square(shares).sum())


def weighted_mean(values: Floats, weights: Floats | None) -> Any:
    """Return the mean over the first axis."""
    return values.mean(axis=0) if weights is None else np.average(values, axis=0, weights=weights)


def weighted_quantile(values: Floats, probabilities: Any, weights: Floats | None) -> Any:
    """Return quantiles of numbers, (n,); with weights, each number stands in the middle of its share."""
    if weights is None:
        return np.quantile(values, probabilities)
    order = np.argsort(values, kind="stable")
    shares = weights[order] / weights.max()
    total = np.cumsum(shares)
    return np.interp(probabilities, (total - shares / 2) / total[-1], values[order])
