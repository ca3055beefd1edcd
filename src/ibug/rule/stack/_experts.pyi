from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Masses: TypeAlias = NDArray[np.float32]
_Whole: TypeAlias = NDArray[np.int64]

def all_finite(loc: _Floats, targets: _Floats, moved: _Floats, shares: _Floats, counts: _Floats) -> bool: ...
def combine(
    loc: _Floats,
    targets: _Floats,
    moved: _Floats,
    shares: _Floats,
    counts: _Floats,
    target_k: _Whole,
    target_sharpness: _Floats,
    target_weights: _Floats,
    residual_k: _Whole,
    residual_sharpness: _Floats,
    residual_weights: _Floats,
    start: int,
    stop: int,
    atoms: _Floats,
    masses: _Masses,
) -> None: ...
def compare(
    loc: _Floats,
    targets: _Floats,
    moved: _Floats,
    shares: _Floats,
    counts: _Floats,
    target_k: _Whole,
    target_sharpness: _Floats,
    residual_k: _Whole,
    residual_sharpness: _Floats,
    scale: _Floats,
    y: _Floats,
    errors: _Floats,
    bandwidths: _Floats,
    error_bandwidth: float,
    least: float,
    support: _Floats,
    start: int,
    stop: int,
    to_target: _Floats,
    to_each_other: _Floats,
    log_density: _Floats,
) -> None: ...
