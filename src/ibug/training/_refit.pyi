from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Codes: TypeAlias = NDArray[Any]
_Whole: TypeAlias = NDArray[np.int64]

LANES: int

def leaf_sums(
    codes: _Codes,
    first: _Whole,
    values: _Floats,
    targets: _Floats,
    weights: _Floats,
    single: bool,
    loss: str,
    parameter: float,
    raw: _Floats,
    start: int,
    stop: int,
    sums: _Floats,
    sizes: _Floats,
) -> None: ...
def leave_out(
    codes: _Codes,
    first: _Whole,
    values: _Floats,
    targets: _Floats,
    weights: _Floats,
    single: bool,
    loss: str,
    parameter: float,
    rates: _Floats,
    l1: float,
    l2: float,
    max_step: float,
    sums: _Floats,
    start: int,
    stop: int,
    raw: _Floats,
    left_out: _Floats,
) -> None: ...
