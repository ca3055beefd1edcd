"""Where leaves occur in the index, so that a search can skip the rows that cannot be among the nearest."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug.exceptions import InvalidInputError

# With fewer tiles a search by bounds costs more than it spares.
_LEAST_TILES = 128
# What the bounds may add to the memory of the codes; more is needed only where leaves occur everywhere, and bounds are
# of no use. They are kept if rows of the index find their own 10 nearest with a smaller share of the tiles than this.
_MOST_MEMORY, _MOST_VISITED = 0.2, 0.2
# The same for codes that are larger than the caches, from _LARGE bytes on: there a row alone waits for memory, so that
# each tile it skips is a gain.
_LARGE = 2**25
_MOST_MEMORY_OF_LARGE, _MOST_VISITED_OF_LARGE = 0.25, 0.4
_PROBES, _PROBE_K = 32, 10


@dataclass(frozen=True)
class Bounds:
    """For each leaf the tiles in which it occurs: see ``Places`` in ``cpp/search/places.hpp``.

    ``n_leaves`` are those of all trees together, and a chunk is 512 tiles.
    """

    masks: NDArray[np.uint8]  # (n_leaves * n_chunks + 7,): one bit for each of a chunk's eight superblocks
    starts: NDArray[np.uint32]  # (n_leaves, ceil(n_chunks / 8)): where the words of a leaf start
    words: NDArray[np.uint64]  # (n_words,): one bit for each of a superblock's 64 tiles
    first_leaf: NDArray[np.uint32]  # (n_trees + 1,): where the leaves of a tree start
    least_row: NDArray[np.uint32]  # (n_tiles,): the smallest row number in a tile

    @property
    def nbytes(self) -> int:
        """The memory of the bounds in bytes."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without a copy."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def before(self, leaf_counts: NDArray[np.int32], n_rows: int, n_same: int) -> kernel.PlacesBefore:
        """Return the places of an index that will have more rows behind its n_rows, for `find_bounds`.

        Shapes: leaf_counts (n_trees,).
        """
        unit = kernel.QUAD_TILES * kernel.TILE_ROWS
        return kernel.PlacesBefore(self.masks, self.starts, self.words, leaf_counts, n_rows, n_same // unit * unit)

    def read_only(self) -> Bounds:
        """Return the same bounds in arrays that nobody can write to."""
        return Bounds(**{name: read_only(array) for name, array in self.arrays().items()})


#: The names of the arrays.
BOUNDS = tuple(field.name for field in fields(Bounds))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same array as one that nobody can write to; a copy only if it is not aligned in memory."""
    view = array.view() if array.flags.aligned else array.copy()
    view.flags.writeable = False
    return view


def compiled_index(
    tiles: NDArray[Any],
    order: NDArray[np.uint32],
    numbering: NDArray[np.int32],
    leaf_counts: NDArray[np.int32],
    bounds: Bounds | None,
) -> kernel.Index:
    """Return the index that the compiled searches ask; raise InvalidInputError where the arrays do not fit together.

    It checks everything that a search takes for a position, which reads the smaller arrays, but neither the codes nor
    the words of the bounds. Parameters are those of ``LeafIndex``.
    """
    places = () if bounds is None else tuple(bounds.arrays().values())
    try:
        return kernel.Index(tiles, order, numbering, leaf_counts, *places)
    except ValueError as error:
        raise InvalidInputError(f"{error}.") from error


def find_bounds(
    tiles: NDArray[Any],
    order: NDArray[np.uint32],
    numbering: NDArray[np.int32],
    leaf_counts: NDArray[np.int32],
    before: kernel.PlacesBefore | None = None,
) -> Bounds | None:
    """Return the bounds of an index, or None where they would not pay.

    Shapes: tiles (n_tiles, n_padded_trees, 16); order (n_rows,); numbering (n_trees, width); leaf_counts (n_trees,).
    """
    n_leaves, n_chunks = int(leaf_counts.sum()), -(-len(tiles) // kernel.CHUNK_TILES)
    is_large = tiles.nbytes >= _LARGE
    most_bytes = int((_MOST_MEMORY_OF_LARGE if is_large else _MOST_MEMORY) * tiles.nbytes)
    if len(tiles) < _LEAST_TILES or n_leaves * n_chunks > most_bytes:
        return None
    masks = np.empty(n_leaves * n_chunks + 7, np.uint8)
    starts = np.empty((n_leaves, -(-n_chunks // 8)), np.uint32)
    most_words = min(most_bytes // 8, 2**32 - 2)
    words = kernel.find_places(tiles, len(order), leaf_counts, masks, starts, most_words, before)
    if words is None:
        return None
    bounds = Bounds(masks, starts, words, first_leaves(leaf_counts), _least_rows(order, len(tiles)))
    if before is not None:  # they paid, and a search goes without them where they do not
        return bounds
    visited = _visited(compiled_index(tiles, order, numbering, leaf_counts, bounds), len(order))
    return bounds if visited < (_MOST_VISITED_OF_LARGE if is_large else _MOST_VISITED) else None


def first_leaves(leaf_counts: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return where the leaves of each tree start when those of all trees follow each other, (n_trees + 1,)."""
    return np.concatenate([[0], np.cumsum(leaf_counts)]).astype(np.uint32)


def _least_rows(order: NDArray[np.uint32], n_tiles: int) -> NDArray[np.uint32]:
    padded = np.full(n_tiles * kernel.TILE_ROWS, 2**32 - 1, np.uint32)
    padded[: len(order)] = order
    least: NDArray[np.uint32] = padded.reshape(n_tiles, -1).min(axis=1)
    return least


def _visited(index: kernel.Index, n_rows: int) -> float:
    """Let some rows of the index find their nearest, and return the share of the tiles that this takes."""
    places = np.linspace(0, n_rows - 1, _PROBES).astype(np.int64)
    visits = np.empty(_PROBES, np.int64)
    index.count_visits_of_rows(places, min(_PROBE_K, n_rows), visits)
    n_tiles = -(-n_rows // (kernel.TILE_ROWS * kernel.QUAD_TILES)) * kernel.QUAD_TILES
    return float(visits.mean()) / n_tiles
