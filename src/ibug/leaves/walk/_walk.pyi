from typing import Any

import numpy as np
from numpy.typing import NDArray

def instruction_sets() -> list[str]: ...
def exp(values: NDArray[np.float32]) -> None: ...
def log(values: NDArray[np.float32]) -> None: ...

class Reading:
    n_features: int
    single: bool
    tiny_is_zero: bool
    refuse_infinite: bool
    single_sums: bool
    members_left: bool
    others_as_missing: bool
    truncated: bool
    missing: float
    start: float
    def __init__(self) -> None: ...

class Forest:
    @staticmethod
    def build(
        first: NDArray[np.int64],
        nodes: NDArray[np.uint8],
        first_member: NDArray[np.int64],
        members: NDArray[np.int32],
        n_categories: NDArray[np.int32],
        reading: Reading,
    ) -> Forest: ...
    @staticmethod
    def build_oblivious(
        first: NDArray[np.int64], levels: NDArray[np.uint8], values: NDArray[np.float64], reading: Reading
    ) -> Forest: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def bits(self) -> int: ...
    def walk(
        self,
        rows: NDArray[Any],
        start: int,
        stop: int,
        leaves: NDArray[np.int32],
        sums: NDArray[np.float64],
        instruction_set: str = "",
        trees: NDArray[np.int32] | None = None,
    ) -> bool: ...
