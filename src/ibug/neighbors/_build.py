"""How an index is made: of leaf numbers, as codes in an order with bounds that let a search skip rows; or of arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug.exceptions import InvalidInputError

CODE_TYPES = (np.uint8, np.uint16, np.uint32)
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
    rows = np.full(len(tiles) * kernel.TILE_ROWS, 2**32 - 1, np.uint32)  # the last tiles have empty places
    rows[: len(order)] = order
    bounds = Bounds(masks, starts, words, first_leaves(leaf_counts), rows.reshape(len(tiles), -1).min(axis=1))
    if before is not None:  # they paid, and a search goes without them where they do not
        return bounds
    index = compiled_index(tiles, order, numbering, leaf_counts, bounds)
    return (
        bounds
        if _visited(index, len(order)) / len(tiles) < (_MOST_VISITED_OF_LARGE if is_large else _MOST_VISITED)
        else None
    )


def first_leaves(leaf_counts: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return where the leaves of each tree start when those of all trees follow each other, (n_trees + 1,)."""
    return np.concatenate([[0], np.cumsum(leaf_counts)]).astype(np.uint32)


def _visited(index: kernel.Index, n_rows: int) -> float:
    """Let some rows of the index find their nearest, and return the mean number of tiles that this takes."""
    places = np.linspace(0, n_rows - 1, _PROBES).astype(np.int64)
    visits = np.empty(_PROBES, np.int64)
    index.count_visits_of_rows(places, min(_PROBE_K, n_rows), visits)
    return float(visits.mean())


# The look-up table from leaf numbers to codes has 4 bytes per entry, so 4 GiB at the most.
_MAX_TABLE_ENTRIES = 2**30
# The number of trees by which similar rows are found. A quarter of it builds an index sooner, by a fifth to a third,
# but searches by bounds visit up to five times the tiles; the tables of more would not fit the first-level cache.
_SAMPLED = 128


class Builder:
    """Makes the arrays of an index; ``LeafIndex.build`` and ``LeafIndex.from_chunks`` use it.

    Leaves get their codes in order of appearance. Codes become wider when a tree has more leaves than they can tell.
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
            narrow = self.tiles
            self.tiles = aligned_zeros(narrow.shape, CODE_TYPES[CODE_TYPES.index(narrow.dtype.type) + 1])
            self.tiles[...] = narrow
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
    return n_tiles, -(-n_trees // kernel.TREE_STEP) * kernel.TREE_STEP, kernel.TILE_ROWS


def code_type_for(n_codes: int) -> type:
    """Return the narrowest integer type that can hold n_codes different codes."""
    return next(kind for kind in CODE_TYPES if n_codes - 1 <= np.iinfo(kind).max)


def aligned_zeros(shape: tuple[int, ...], dtype: type | np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start on a cache line, so that no vector load crosses two."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 63, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + n_bytes].view(dtype).reshape(shape)


def check_arrays(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...], bounds_names: tuple[str, ...]) -> None:
    """Raise InvalidInputError unless the arrays can be those of one index.

    Types, shapes, the order, the look-up table and the counts are checked here, where a message can say what is wrong;
    what the kernel takes for a position it checks once more itself (see ``compiled_index``). The codes and the words
    are only ever compared, so that they are not read, and a memory-mapped index is not pulled from the disk.
    """
    wanted = (*names, *bounds_names) if any(name in arrays for name in bounds_names) else names
    if missing := [name for name in wanted if name not in arrays]:
        raise InvalidInputError(f"An index needs the arrays {', '.join(wanted)}; missing: {', '.join(missing)}.")
    tiles, order = arrays["tiles"], arrays["order"]
    _check(tiles, "tiles", 3, CODE_TYPES)
    _check(order, "order", 1, (np.uint32,))
    _check(arrays["numbering"], "numbering", 2, (np.int32,))
    _check(arrays["leaf_counts"], "leaf_counts", 1, (np.int32,))
    n_trees = len(arrays["leaf_counts"])
    expected = tiles_shape(len(order), n_trees)
    if tiles.shape != expected or not 1 <= n_trees <= kernel.MAX_TREES or not len(order):
        raise InvalidInputError(
            f"tiles of {len(order)} rows and {n_trees} trees (at least one, and at most {kernel.MAX_TREES} trees) must "
            f"be of shape {expected}; got {tiles.shape}."
        )
    if not np.array_equal(np.bincount(order[order < len(order)], minlength=len(order)), np.ones(len(order))):
        raise InvalidInputError(f"order must hold each row number from 0 to {len(order) - 1} once.")
    _check_numbering(arrays["numbering"], arrays["leaf_counts"], tiles.dtype)
    if len(wanted) > len(names):
        _check_bounds(arrays)


def check_sorted(n_sorted: NDArray[Any], n_rows: int) -> int:
    """Return the number of rows that were brought into an order together, from an array of one number."""
    _check(n_sorted, "n_sorted", 1, (np.int64,))
    if len(n_sorted) != 1 or not 1 <= n_sorted[0] <= n_rows:
        raise InvalidInputError(f"n_sorted must be one number from 1 to the {n_rows} rows; got {n_sorted[:3]}.")
    return int(n_sorted[0])


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array lies in a file that is mapped into memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return isinstance(base, mmap) or (isinstance(base, memoryview) and isinstance(base.obj, mmap))


def _check_bounds(arrays: Mapping[str, NDArray[Any]]) -> None:
    _check(arrays["masks"], "masks", 1, (np.uint8,))
    _check(arrays["starts"], "starts", 2, (np.uint32,))
    _check(arrays["words"], "words", 1, (np.uint64,))
    for name in ("first_leaf", "least_row"):
        _check(arrays[name], name, 1, (np.uint32,))
    first_leaf = arrays["first_leaf"]
    if not np.array_equal(first_leaf, np.concatenate([[0], np.cumsum(arrays["leaf_counts"])])):
        raise InvalidInputError("first_leaf must be the running sum of leaf_counts, from 0 on.")
    n_leaves, n_tiles = int(first_leaf[-1]), len(arrays["tiles"])
    n_chunks = -(-n_tiles // kernel.CHUNK_TILES)
    shapes = {"starts": (n_leaves, -(-n_chunks // 8)), "masks": (n_leaves * n_chunks + 7,), "least_row": (n_tiles,)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise InvalidInputError(f"{name} must be of shape {shape}; got {arrays[name].shape}.")


def _check(array: NDArray[Any], name: str, n_dim: int, types: tuple[type[np.generic], ...]) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != n_dim or array.dtype not in types:
        expected = " or ".join(np.dtype(t).name for t in types)
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidInputError(f"{name} must be an array of {expected} with {n_dim} dimensions; got {got}.")
    if not array.flags.c_contiguous:
        raise InvalidInputError(f"{name} must be stored row by row (C order): numpy.ascontiguousarray makes it so.")


def _check_numbering(numbering: NDArray[np.int32], leaf_counts: NDArray[np.int32], code_type: np.dtype[Any]) -> None:
    if len(numbering) != len(leaf_counts):
        raise InvalidInputError(f"numbering has {len(numbering)} trees, leaf_counts has {len(leaf_counts)}.")
    if leaf_counts.min() < 1 or leaf_counts.max() - 1 > np.iinfo(code_type).max:
        raise InvalidInputError(
            f"leaf_counts must be from 1 to what {code_type} can tell apart, {np.iinfo(code_type).max + 1}; "
            f"got {leaf_counts.min()} to {leaf_counts.max()}."
        )
    if numbering.size and (numbering.min() < -1 or np.any(numbering.max(axis=1) >= leaf_counts)):
        raise InvalidInputError("numbering must hold -1, or codes from 0 to below the leaf_counts of its tree.")
