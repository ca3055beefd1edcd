from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]

def prefix_variances(values: _Floats, ks: NDArray[np.int64], centered: bool, out: _Floats) -> None: ...
def combine(
    variances: _Floats,
    floors: _Floats,
    centers: _Floats,
    lowest: _Floats,
    highest: _Floats,
    exponents: _Floats,
    intercept: float,
    out: _Floats,
) -> None: ...
