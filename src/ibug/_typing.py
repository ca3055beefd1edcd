"""The types that recur, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = tuple[Any, Floats]  # X and y
LeavesOf = Callable[[Any], Iterable[NDArray[np.int32]]]  # the leaves of rows X, chunk after chunk
