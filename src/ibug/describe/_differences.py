"""The features in which rows differ from their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats

_FARTHEST = 100.0  # standard deviations: a single extreme value must not hide the rest


def mean_distances(here: NDArray[Any], there: NDArray[Any], scale: float | None) -> Floats:
    """Return how far rows are from their neighbours in one feature, (n_rows,).

    Examples
    --------
    >>> import numpy as np
    >>> mean_distances(np.array([3.0]), np.array([[3.0, 5.0]]), 2.0)
    array([0.5])
    >>> mean_distances(np.array(["a"]), np.array([["a", "b"]]), None)
    array([0.5])

    Shapes: here (n_rows,); there (n_rows, n_neighbors).
    """
    one, other = np.broadcast_arrays(here[:, None], there)
    lacks_one, lacks_other = _is_missing(one), _is_missing(other)
    differs = np.asarray(one != other, np.bool_) & ~(lacks_one & lacks_other)
    distance = differs.astype(np.float64)
    if scale:
        both = differs & ~lacks_one & ~lacks_other
        gap = np.abs(one[both].astype(np.float64) - other[both].astype(np.float64))
        distance[both] = np.minimum(gap / scale, _FARTHEST)
    return np.asarray(distance.mean(axis=1), np.float64)


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.flat], np.bool_).reshape(values.shape)
    return np.asarray(values != values, np.bool_)


def deviation(values: Floats) -> float:
    """Return the standard deviation of the finite values; 0 where there are none. Shapes: values (n,)."""
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) else 0.0
