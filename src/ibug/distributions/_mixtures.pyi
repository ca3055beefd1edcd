from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Masses: TypeAlias = NDArray[np.float32]

def mean_distances(
    points: _Floats,
    masses: _Floats,
    y: _Floats,
    start: int,
    stop: int,
    to_target: _Floats,
    to_each_other: _Floats,
) -> None: ...

class Batch:
    def __init__(
        self,
        loc: _Floats,
        scale: _Floats,
        atoms: _Floats,
        masses: _Masses,
        errors: _Floats,
        weights: _Floats,
        support: _Floats,
    ) -> None: ...
    def tails(self, x: _Floats, start: int, stop: int, below: _Floats, above: _Floats) -> None: ...
    def quantiles(self, p: _Floats, q: _Floats, start: int, stop: int, out: _Floats) -> None: ...
    def crps(self, y: _Floats, start: int, stop: int, out: _Floats) -> None: ...
    def log_densities(
        self,
        error_bandwidth: float,
        bandwidth: float,
        least: float,
        tailed: bool,
        x: _Floats,
        start: int,
        stop: int,
        out: _Floats,
    ) -> None: ...
    def moments(self, start: int, stop: int, mean: _Floats, deviation: _Floats) -> None: ...
