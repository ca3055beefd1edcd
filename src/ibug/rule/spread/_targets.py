"""The paper's rule: the variance of the neighbours' targets (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.rule.spread._load import kernel
from ibug.rule.spread._quantity import Quantity


class Targets(Quantity):
    """The neighbours' targets: their variance around their own mean."""

    name: ClassVar[str] = "targets"

    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the population variance, (n_rows,)."""
        return variance(values, weights)

    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the population variance of the first k, (n_rows, len(ks))."""
        return prefix_variances(values, ks, weights)

    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return the targets as they are."""
        return values


def variance(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the population variance (ddof 0) of each row's neighbours.

    Shapes: values (n_rows, k); weights (n_rows, k).
    """
    d = values - values[:, :1]
    if weights is not None:
        share = weights / np.add.reduce(weights, axis=1, keepdims=True)
        d -= np.add.reduce(share * d, axis=1, keepdims=True)
        return np.asarray(np.add.reduce(share * np.square(d), axis=1))
    d -= np.add.reduce(d, axis=1, keepdims=True) / d.shape[1]
    return np.asarray(np.add.reduce(np.square(d, out=d), axis=1) / d.shape[1])


def prefix_variances(values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the variance of each row's first k neighbours for several k, from one pass of prefix sums.

    Shapes: values (n_rows, k_max); weights (n_rows, k_max).
    """
    if weights is None:
        return compiled_variances(values, ks, centered=True)
    d = values - values[:, :1]
    means = prefix_means(d, ks, weights)
    return np.maximum(prefix_means(np.square(d, out=d), ks, weights) - np.square(means), 0.0)


def compiled_variances(values: Floats, ks: Sequence[int], *, centered: bool) -> Floats:
    """Return the variance of each row's first k values, which count alike, for several k, (n_rows, len(ks)).

    Shapes: values (n_rows, k_max).
    """
    values = np.asarray(values, np.float64)
    if values.strides[1] != values.itemsize or values.strides[0] < 0:
        values = np.ascontiguousarray(values)
    out = np.empty((len(values), len(ks)))
    kernel.prefix_variances(values, _whole(tuple(ks)), centered, out)
    return out


def prefix_means(values: NDArray[Any], ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the mean of each row's first k values for several k, (n_rows, len(ks)).

    Shapes: values (n_rows, k_max); weights (n_rows, k_max).
    """
    last, counts = _counted(tuple(ks))
    if weights is not None:
        return np.asarray(np.cumsum(weights * values, axis=1)[:, last] / np.cumsum(weights, axis=1)[:, last])
    return np.asarray(values.cumsum(axis=1).take(last, axis=1) / counts)


@lru_cache(maxsize=256)
def _whole(ks: tuple[int, ...]) -> NDArray[np.int64]:
    return np.asarray(ks, np.int64)


@lru_cache(maxsize=256)
def _counted(ks: tuple[int, ...]) -> tuple[NDArray[np.intp], Floats]:
    """Return where the sums of the first k are, and what they are divided by: made once, for rows that come alone."""
    return np.asarray(ks, np.intp) - 1, np.asarray(ks, np.float64)
