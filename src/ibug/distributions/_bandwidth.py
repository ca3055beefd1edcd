"""Rules for the bandwidth of kernel density estimates."""

from __future__ import annotations

import numpy as np

from ibug._typing import Floats
from ibug.distributions._sample import blocks, deviation

_LARGEST, _HALVINGS = 4.0, 10  # the bandwidths tried: 4, 4/√2, 2, … 1/8 of Silverman's


def _unbiased_deviation(values: Floats) -> Floats:
    k = values.shape[1]
    return np.asarray(deviation(values) * np.sqrt(k / max(k - 1, 1)))


def _scott(values: Floats) -> Floats:
    return np.asarray(_unbiased_deviation(values) * values.shape[1] ** -0.2)


def _silverman(values: Floats) -> Floats:
    return np.asarray(_unbiased_deviation(values) * (0.75 * values.shape[1]) ** -0.2)


def _likelihood(values: Floats) -> Floats:
    """Return the bandwidths of the highest leave-one-out likelihood, for values of shape ``(n, k)`` about 1 wide."""
    k = values.shape[1]
    largest = _LARGEST * _silverman(values)
    if k == 1:
        return largest
    best = np.zeros(len(values), np.intp)
    own = np.arange(k)
    for block in blocks(len(values), k * k):
        x = values[block]
        h = np.where(largest[block] > 0, largest[block], 1.0)
        squares = np.square((x[:, :, None] - x[:, None, :]) / h[:, None, None])
        squares[:, own, own] = np.inf  # a value does not count for itself
        nearest = squares.min(axis=2)
        squares -= nearest[:, :, None]
        squares *= -0.5
        # Relative to the nearest value, so that the sum cannot underflow, however far away an outlier lies.
        kernels, nearest_total = np.exp(squares, out=squares), nearest.sum(axis=1)
        scores = np.empty((_HALVINGS + 1, len(x)))
        for i in range(_HALVINGS + 1):
            scores[i] = np.log(kernels.sum(axis=2)).sum(axis=1) - 0.5 * 2**i * nearest_total + 0.5 * k * i * np.log(2)
            if i % 2 == 0:
                np.maximum(kernels, 1e-60, out=kernels)  # beside sums above 1 this is nothing; subnormals are slow
            np.square(kernels, out=kernels)  # half the squared bandwidth
        best[block] = scores.argmax(axis=0)
    return np.asarray(largest * 2 ** (-0.5 * best))


#: Each takes values of shape ``(n, k)`` and returns bandwidths of shape ``(n,)``, 0 where all values are the same.
BANDWIDTHS = {"silverman": _silverman, "scott": _scott, "likelihood": _likelihood}
