from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

TILE_ROWS: int
MAX_TREES: int

_Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

def instruction_sets() -> list[str]: ...
def number_leaves(leaves: NDArray[np.int32], numbering: NDArray[np.int32], counts: NDArray[np.int32]) -> None: ...
def pack_rows(leaves: NDArray[np.int32], numbering: NDArray[np.int32], first_row: int, tiles: _Codes) -> None: ...
def encode_rows(
    leaves: NDArray[np.int32], numbering: NDArray[np.int32], counts: NDArray[np.int32], out: _Codes
) -> int: ...
def top_k(
    tiles: _Codes,
    n_rows: int,
    queries: _Codes,
    tile_start: int,
    tile_stop: int,
    query_start: int,
    query_stop: int,
    affinities: NDArray[np.int32],
    rows: NDArray[np.int64],
    instruction_set: str = "",
) -> None: ...
def count_repeatedly(tiles: _Codes, queries: _Codes, repeats: int, instruction_set: str = "") -> int: ...
