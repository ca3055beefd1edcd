"""Where leaves occur in the index, so that a search can skip the rows that cannot be among the nearest."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.neighbors._load import kernel

# Below so many tiles a search by bounds costs more than it spares.
_LEAST_TILES = 128
# What the bounds may add to the memory of the codes; more is needed only where leaves occur everywhere, and bounds are
# of no use.
_MOST_MEMORY = 0.2
# Bounds are kept if rows of the index find their own 10 nearest with a smaller share of the tiles than this.
_MOST_VISITED = 0.2
_PROBES, _PROBE_K = 32, 10


@dataclass(frozen=True)
class Bounds:
    """For each leaf the tiles in which it occurs: see ``Places`` in ``cpp/ibug/scan.hpp``.

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


#: The names of the arrays.
BOUNDS = tuple(field.name for field in fields(Bounds))


def find_bounds(tiles: NDArray[Any], order: NDArray[np.uint32], leaf_counts: NDArray[np.int32]) -> Bounds | None:
    """Return the bounds of an index, or None where they would not pay.

    Parameters
    ----------
    tiles : ndarray of shape (n_tiles, n_padded_trees, 16)
    order : ndarray of shape (n_rows,)
        The row number at each place of the tiles.
    leaf_counts : ndarray of shape (n_trees,)
    """
    n_leaves, n_chunks = int(leaf_counts.sum()), -(-len(tiles) // kernel.CHUNK_TILES)
    if len(tiles) < _LEAST_TILES or n_leaves * n_chunks > _MOST_MEMORY * tiles.nbytes:
        return None
    masks = np.empty(n_leaves * n_chunks + 7, np.uint8)
    starts = np.empty((n_leaves, -(-n_chunks // 8)), np.uint32)
    most_words = min(int(_MOST_MEMORY * tiles.nbytes) // 8, 2**32 - 2)
    words = kernel.find_places(tiles, len(order), leaf_counts, masks, starts, most_words)
    if words is None:
        return None
    bounds = Bounds(masks, starts, words, first_leaves(leaf_counts), _least_rows(order, len(tiles)))
    return bounds if _pays(tiles, order, bounds) else None


def first_leaves(leaf_counts: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return where the leaves of each tree start when those of all trees follow each other, (n_trees + 1,)."""
    return np.concatenate([[0], np.cumsum(leaf_counts)]).astype(np.uint32)


def _least_rows(order: NDArray[np.uint32], n_tiles: int) -> NDArray[np.uint32]:
    padded = np.full(n_tiles * kernel.TILE_ROWS, 2**32 - 1, np.uint32)
    padded[: len(order)] = order
    least: NDArray[np.uint32] = padded.reshape(n_tiles, -1).min(axis=1)
    return least


def _pays(tiles: NDArray[Any], order: NDArray[np.uint32], bounds: Bounds) -> bool:
    """Let some rows of the index find their nearest, and see how many tiles that takes."""
    places = np.linspace(0, len(order) - 1, _PROBES).astype(np.intp)
    queries = np.ascontiguousarray(tiles[places // kernel.TILE_ROWS, :, places % kernel.TILE_ROWS])
    queries[:, len(bounds.first_leaf) - 1 :] = 1  # the trees that fill up match nothing
    visits = search(tiles, order, bounds, queries, min(_PROBE_K, len(order)))[2]
    return bool(visits.mean() < _MOST_VISITED * len(tiles))


def search(
    tiles: NDArray[Any],
    order: NDArray[np.uint32],
    bounds: Bounds,
    queries: NDArray[Any],
    k: int,
    *,
    tile_range: tuple[int, int] | None = None,
    most_visits: int | None = None,
    instruction_set: str = "",
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return affinities and rows of the nearest, both (n_queries, k), and how many tiles each query visited.

    A query that seems to need more than `most_visits` further tiles is answered by a full scan instead.
    """
    affinities, rows = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.int64)
    visits = np.empty(len(queries), np.int64)
    start, stop = tile_range or (0, len(tiles))
    kernel.search(
        tiles, order, bounds.masks, bounds.starts, bounds.words, bounds.first_leaf, bounds.least_row,
        queries, start, stop, 0, len(queries), len(tiles) if most_visits is None else most_visits,
        affinities, rows, visits, instruction_set,
    )  # fmt: skip
    return affinities, rows, visits
