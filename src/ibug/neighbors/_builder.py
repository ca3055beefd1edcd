"""How an index is made from leaf numbers: codes, their order, and the bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug.exceptions import InvalidInputError
from ibug.neighbors._arrays import CODE_TYPES

# The look-up table from leaf numbers to codes has 4 bytes per entry, so 4 GiB at the most.
_MAX_TABLE_ENTRIES = 2**30
# The number of trees by which similar rows are found. A quarter of it builds an index sooner, by a fifth to a third,
# but searches by bounds visit up to five times the tiles; the tables of more would not fit the first-level cache.
_SAMPLED = 128


class Builder:
    """Makes the arrays of an index; ``LeafIndex.build`` and ``LeafIndex.from_chunks`` use it.

    Leaves get their codes in order of appearance. Codes become wider when a tree has more leaves than they can tell.

    Parameters
    ----------
    n_rows
        The number of rows that will be added.
    n_trees
        The number of trees.
    """

    def __init__(self, n_rows: int, n_trees: int) -> None:
        if not 1 <= n_trees <= kernel.MAX_TREES:
            raise InvalidInputError(f"An index takes from 1 to {kernel.MAX_TREES} trees, got {n_trees}.")
        self.filled = 0
        self.n_rows = n_rows
        self.tiles = aligned_zeros(tiles_shape(n_rows, n_trees), np.uint8)
        self.numbering = np.full((n_trees, 32), -1, np.int32)
        self.leaf_counts = np.zeros(n_trees, np.int32)

    def add(self, leaves: NDArray[np.int32]) -> None:
        """Take the next rows' leaf numbers, (n_chunk_rows, n_trees)."""
        if leaves.shape[1] != len(self.leaf_counts):
            raise InvalidInputError(f"A chunk has {leaves.shape[1]} trees, the first had {len(self.leaf_counts)}.")
        if self.filled + len(leaves) > self.n_rows:
            raise InvalidInputError(f"The chunks hold more than the announced n_rows={self.n_rows}.")
        if not len(leaves):
            return
        self._reserve(int(leaves.max()) + 1)
        kernel.number_leaves(leaves, self.numbering, self.leaf_counts)
        while self.leaf_counts.max() - 1 > np.iinfo(self.tiles.dtype).max:
            self.tiles = widened(self.tiles)
        kernel.pack_rows(leaves, self.numbering, self.filled, self.tiles)
        self.filled += len(leaves)

    def take(self, tiles: NDArray[Any], n_rows: int, numbering: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
        """Begin with the rows of an index that was built."""
        self.tiles = aligned_zeros(self.tiles.shape, tiles.dtype)
        n_tiles = min(len(tiles), len(self.tiles))
        self.tiles[:n_tiles] = tiles[:n_tiles]
        self.numbering, self.leaf_counts = numbering.copy(), counts.copy()
        self.filled = n_rows

    def sort(self, first: int = 0) -> NDArray[np.uint32]:
        """Move similar rows together, and return the place that the row at each place was at before, (n_rows,).

        The memory beside the tiles is about 3/8 of theirs for the sample of trees, then a quarter for the moves.
        """
        n_trees, unit = len(self.leaf_counts), kernel.QUAD_TILES * kernel.TILE_ROWS
        first = first // unit * unit
        tiles, n_rows = self.tiles[first // kernel.TILE_ROWS :], self.n_rows - first
        order = np.arange(n_rows, dtype=np.uint32)
        if n_rows > unit:
            n_sampled = min(_SAMPLED, max(1, 3 * n_trees // 8))
            kernel.order_rows(tiles, n_trees, n_sampled, order)
            kernel.permute_rows(tiles, n_trees, order, min(64, -(-n_trees // 4)))
        return np.concatenate([np.arange(first, dtype=np.uint32), order + np.uint32(first)])

    def _reserve(self, width: int) -> None:
        if width * len(self.leaf_counts) > _MAX_TABLE_ENTRIES:
            raise InvalidInputError(
                f"Leaf numbers up to {width - 1} in {len(self.leaf_counts)} trees need too large a look-up table; "
                "number the leaves of each tree from 0 on."
            )
        missing = width - self.numbering.shape[1]
        if missing > 0:
            self.numbering = np.pad(self.numbering, ((0, 0), (0, missing)), constant_values=-1)


def first_to_sort(n_sorted: int, n_before: int, n_rows: int) -> int:
    """Return the first of the rows behind `n_sorted` that new rows are brought into an order with.

    Rows that are sorted by themselves lie in runs. As in a binary counter, a run that becomes full is sorted together
    with the one of its length before it, so that there are few runs, and each row is sorted again only as many times as
    its run can be doubled. Which runs there are follows from the number of rows alone.
    """
    before, after = n_before - n_sorted, n_rows - n_sorted
    # The longest length of runs of which one becomes full: the highest bit in which the two numbers differ.
    length = 1 << (before ^ after).bit_length() - 1
    return n_sorted + (after // length - 1) * length


def tiles_shape(n_rows: int, n_trees: int) -> tuple[int, int, int]:
    """Return the shape of the tiles of n_rows rows and n_trees trees."""
    n_tiles = -(-n_rows // (kernel.TILE_ROWS * kernel.QUAD_TILES)) * kernel.QUAD_TILES
    return n_tiles, padded_trees(n_trees), kernel.TILE_ROWS


def padded_trees(n_trees: int) -> int:
    """Return the number of trees in the tiles and in the queries' codes."""
    return -(-n_trees // kernel.TREE_STEP) * kernel.TREE_STEP


def code_type_for(n_codes: int) -> type:
    """Return the narrowest integer type that tells n_codes codes apart."""
    return next(kind for kind in CODE_TYPES if n_codes - 1 <= np.iinfo(kind).max)


def aligned_zeros(shape: tuple[int, ...], dtype: type | np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start on a cache line, so that no vector load crosses two."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 63, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + n_bytes].view(dtype).reshape(shape)


def widened(tiles: NDArray[Any]) -> NDArray[Any]:
    """Return the same codes in the next wider type."""
    wider = aligned_zeros(tiles.shape, CODE_TYPES[CODE_TYPES.index(tiles.dtype.type) + 1])
    wider[...] = tiles
    return wider
