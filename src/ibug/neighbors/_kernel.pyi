from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

TILE_ROWS: int
QUAD_TILES: int
CHUNK_TILES: int
TREE_STEP: int
TREE_BLOCK: int
MAX_TREES: int

_Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

def instruction_sets() -> list[str]: ...
def least_queries(instruction_set: str = "") -> int: ...
def many_queries(instruction_set: str = "") -> int: ...
def number_leaves(leaves: NDArray[np.int32], numbering: NDArray[np.int32], counts: NDArray[np.int32]) -> None: ...
def pack_rows(leaves: NDArray[np.int32], numbering: NDArray[np.int32], first_row: int, tiles: _Codes) -> None: ...
def order_rows(tiles: _Codes, n_trees: int, n_sampled: int, order: NDArray[np.uint32]) -> None: ...
def permute_rows(tiles: _Codes, n_trees: int, order: NDArray[np.uint32], trees_at_a_time: int) -> None: ...
def find_places(
    tiles: _Codes,
    n_rows: int,
    leaf_counts: NDArray[np.int32],
    masks: NDArray[np.uint8],
    starts: NDArray[np.uint32],
    max_words: int,
    before: PlacesBefore | None = None,
) -> NDArray[np.uint64] | None: ...
def count_repeatedly(tiles: _Codes, queries: _Codes, repeats: int, instruction_set: str = "") -> int: ...

class PlacesBefore:
    def __init__(
        self,
        masks: NDArray[np.uint8],
        starts: NDArray[np.uint32],
        words: NDArray[np.uint64],
        leaf_counts: NDArray[np.int32],
        n_rows: int,
        n_same: int,
    ) -> None: ...

class Index:
    @overload
    def __init__(
        self,
        tiles: _Codes,
        order: NDArray[np.uint32],
        numbering: NDArray[np.int32],
        leaf_counts: NDArray[np.int32],
    ) -> None: ...
    @overload
    def __init__(
        self,
        tiles: _Codes,
        order: NDArray[np.uint32],
        numbering: NDArray[np.int32],
        leaf_counts: NDArray[np.int32],
        masks: NDArray[np.uint8],
        starts: NDArray[np.uint32],
        words: NDArray[np.uint64],
        first_leaf: NDArray[np.uint32],
        least_row: NDArray[np.uint32],
    ) -> None: ...
    def scan(
        self,
        leaves: NDArray[np.int32],
        query_start: int,
        query_stop: int,
        tile_start: int,
        tile_stop: int,
        affinities: NDArray[np.int32],
        rows: NDArray[np.int64],
        instruction_set: str = "",
    ) -> None: ...
    def search(
        self,
        leaves: NDArray[np.int32],
        query_start: int,
        query_stop: int,
        tile_start: int,
        tile_stop: int,
        most_visits: int,
        affinities: NDArray[np.int32],
        rows: NDArray[np.int64],
        instruction_set: str = "",
    ) -> None: ...
    def two_stage(
        self,
        leaves: NDArray[np.int32],
        query_start: int,
        query_stop: int,
        first_trees: int,
        n_candidates: int,
        affinities: NDArray[np.int32],
        rows: NDArray[np.int64],
        instruction_set: str = "",
    ) -> None: ...
    def count_visits(
        self, leaves: NDArray[np.int32], k: int, visits: NDArray[np.int64], instruction_set: str = ""
    ) -> None: ...
    def count_visits_of_rows(self, places: NDArray[np.int64], k: int, visits: NDArray[np.int64]) -> None: ...
    def number(self, leaves: NDArray[np.int32], codes: NDArray[np.int32]) -> None: ...
    def count_rows(self, sizes: NDArray[np.int64]) -> None: ...
