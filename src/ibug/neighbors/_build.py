"""How an index is made: of leaf numbers, as codes in cells around prototypes; or of arrays."""

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

# Rows are divided into cells where their codes are larger than the caches, and there are enough of them.
_LEAST_CODES, _LEAST_ROWS = 2**22, 20_000
# The number of prototypes is this times the square root of the number of rows, unless cells would have fewer rows than
# this: a query is compared with all prototypes, and then with the rows of some cells, whose tiles should be full.
_PROTOTYPES, _ROWS_PER_CELL = 8.0, 48
# A cell of more than this times the rows that it would have if all cells had the same number becomes several.
_LARGEST_CELL = 8
# Once there are this times as many rows as when the prototypes were taken, other ones are.
_OUTGROWN = 2.0


@dataclass(frozen=True)
class Cells:
    """A partition of the rows: each belongs to the cell of its most similar prototype, and cells follow each other."""

    prototypes: NDArray[Any]  # (n_tiles, n_padded_trees, 16) codes, laid out as those of the rows
    cell_starts: NDArray[np.uint32]  # (n_cells + 1,) the places of the rows of cell c begin at cell_starts[c]

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.cell_starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows in each cell, (n_cells,)."""
        starts = self.cell_starts.astype(np.int64)
        return starts[1:] - starts[:-1]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without a copy."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def read_only(self) -> Cells:
        """Return the same cells in arrays that nobody can write to."""
        return Cells(**{name: read_only(array) for name, array in self.arrays().items()})

    def outgrown(self, n_rows: int) -> bool:
        """Whether so many rows have come that other prototypes would divide them better."""
        return self.n_cells < n_prototypes(math.floor(n_rows / _OUTGROWN))

    def of_places(self) -> NDArray[np.int64]:
        """Return the cell of the row at each place, (n_rows,)."""
        return np.repeat(np.arange(self.n_cells), self.sizes)

    def holding(self, cells: NDArray[np.int64]) -> Cells:
        """Return the cells of other rows, without those that have none. Shapes: cells (n_rows,), the cell of each."""
        sizes = np.bincount(cells, minlength=self.n_cells)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.uint32)
        if np.all(sizes > 0):
            return Cells(self.prototypes, starts)
        return Cells(packed(rows_at(self.prototypes, np.flatnonzero(sizes))), starts)

    def without_giants(self) -> Cells:
        """Return the cells with those that have too many rows divided, each part with the prototype of the whole."""
        sizes = self.sizes
        n_rows = int(sizes.sum())
        most = math.ceil(_LARGEST_CELL * n_rows / n_prototypes(n_rows))
        parts = -(-sizes // most)
        if parts.max() == 1:
            return self
        starts = [
            np.linspace(start, start + size, n + 1).astype(np.uint32)[:-1]
            for start, size, n in zip(self.cell_starts, sizes, parts, strict=False)
        ]
        places = np.repeat(np.arange(self.n_cells), parts)
        return Cells(packed(rows_at(self.prototypes, places)), np.concatenate([*starts, self.cell_starts[-1:]]))

    def of_trees(self, trees: NDArray[np.intp], dtype: np.dtype[Any]) -> Cells:
        """Return the same cells by the codes of some trees. Shapes: trees (n_chosen,)."""
        codes = rows_at(self.prototypes, np.arange(self.n_cells))
        chosen = np.zeros((len(codes), tiles_shape(1, len(trees))[1]), dtype)
        chosen[:, : len(trees)] = codes[:, trees]
        return Cells(packed(chosen), self.cell_starts)


def n_prototypes(n_rows: int) -> int:
    """Return the number of cells that rows are divided into."""
    return max(1, min(round(_PROTOTYPES * math.sqrt(n_rows)), n_rows // _ROWS_PER_CELL))


#: The names of the arrays.
CELLS = tuple(field.name for field in fields(Cells))


def rows_at(tiles: NDArray[Any], places: NDArray[np.intp]) -> NDArray[Any]:
    """Return the codes of the rows at some places, (n_places, n_padded_trees)."""
    codes: NDArray[Any] = tiles[places // kernel.TILE_ROWS, :, places % kernel.TILE_ROWS]
    return codes


def packed(codes: NDArray[Any]) -> NDArray[Any]:
    """Return the codes of rows in tiles. Shapes: codes (n_rows, n_padded_trees)."""
    n_rows, width = codes.shape
    tiles = aligned_zeros(tiles_shape(n_rows, width), codes.dtype)
    full = np.zeros((tiles.shape[0] * kernel.TILE_ROWS, width), codes.dtype)
    full[:n_rows] = codes
    tiles[...] = full.reshape(-1, kernel.TILE_ROWS, width).transpose(0, 2, 1)
    return tiles


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
    cells: Cells | None,
) -> kernel.Index:
    """Return the index that the compiled searches ask; raise InvalidInputError where the arrays do not fit together.

    It checks everything that a search takes for a position, which reads the smaller arrays, but not the codes.
    Parameters are those of ``LeafIndex``.
    """
    partition = () if cells is None else tuple(cells.arrays().values())
    try:
        return kernel.Index(tiles, order, numbering, leaf_counts, *partition)
    except ValueError as error:
        raise InvalidInputError(f"{error}.") from error


def first_leaves(leaf_counts: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return where the leaves of each tree start when those of all trees follow each other, (n_trees + 1,)."""
    return np.concatenate([[0], np.cumsum(leaf_counts)]).astype(np.uint32)


# The look-up table from leaf numbers to codes has 4 bytes per entry, so 4 GiB at the most.
_MAX_TABLE_ENTRIES = 2**30


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

    def divide(self, cells: Cells | None = None, n_before: int = 0) -> tuple[NDArray[np.uint32], Cells | None]:
        """Move the rows of a cell together; return the place that the row at each place was at before, and the cells.

        Without `cells`, prototypes are taken where cells pay; with them, the first `n_before` rows are in these
        already. The memory beside the tiles is about a quarter of theirs.
        """
        n_trees, n_rows = len(self.leaf_counts), self.n_rows
        own = np.empty(0, np.int64)
        if cells is None:
            if n_rows * n_trees < _LEAST_CODES or n_rows < _LEAST_ROWS:
                return np.arange(n_rows, dtype=np.uint32), None
            cells, n_before = self._prototypes(), 0
        else:
            own = cells.of_places()
            while cells.prototypes.dtype != self.tiles.dtype:
                cells = Cells(widened(cells.prototypes), cells.cell_starts)
        new = np.empty(n_rows - n_before, np.int64)
        kernel.nearest_prototypes(self.tiles, n_rows, n_trees, cells.prototypes, n_before, new, cells.n_cells)
        of_rows = np.concatenate([own, new])
        order = np.argsort(of_rows, kind="stable").astype(np.uint32)
        kernel.permute_rows(self.tiles, n_trees, order, min(64, -(-n_trees // 4)))
        return order, cells.holding(of_rows).without_giants()

    def _prototypes(self) -> Cells:
        """Return cells without rows, around rows that are equally far apart."""
        n_cells = n_prototypes(self.n_rows)
        places = np.linspace(0, self.n_rows - 1, n_cells).astype(np.intp)
        return Cells(packed(rows_at(self.tiles, places)), np.zeros(n_cells + 1, np.uint32))

    def _reserve(self, width: int) -> None:
        if width * len(self.leaf_counts) > _MAX_TABLE_ENTRIES:
            raise InvalidInputError(
                f"Leaf numbers up to {width - 1} in {len(self.leaf_counts)} trees need too large a look-up table; "
                "number the leaves of each tree from 0 on."
            )
        missing = width - self.numbering.shape[1]
        if missing > 0:
            self.numbering = np.pad(self.numbering, ((0, 0), (0, missing)), constant_values=-1)


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


def widened(tiles: NDArray[Any]) -> NDArray[Any]:
    """Return the same codes in the next wider type."""
    wider = aligned_zeros(tiles.shape, CODE_TYPES[CODE_TYPES.index(tiles.dtype.type) + 1])
    wider[...] = tiles
    return wider


CODE_TYPES = (np.uint8, np.uint16, np.uint32)


def check_arrays(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...], cell_names: tuple[str, ...]) -> None:
    """Raise InvalidInputError unless the arrays can be those of one index.

    Types, shapes, the order, the look-up table and the counts are checked here, where a message can say what is wrong;
    what the kernel takes for a position it checks once more itself (see ``compiled_index``). Codes are only ever
    compared, so that they are not read, and a memory-mapped index is not pulled from the disk.
    """
    wanted = (*names, *cell_names) if any(name in arrays for name in cell_names) else names
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
        _check_cells(arrays)


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array lies in a file that is mapped into memory."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return isinstance(base, mmap) or (isinstance(base, memoryview) and isinstance(base.obj, mmap))


def _check_cells(arrays: Mapping[str, NDArray[Any]]) -> None:
    tiles, prototypes, starts = arrays["tiles"], arrays["prototypes"], arrays["cell_starts"]
    _check(prototypes, "prototypes", 3, (tiles.dtype.type,))
    _check(starts, "cell_starts", 1, (np.uint32,))
    if (
        len(starts) < 2
        or starts[0] != 0
        or starts[-1] != len(arrays["order"])
        or np.any(np.diff(starts.astype(int)) < 0)
    ):
        raise InvalidInputError("cell_starts must rise from 0 to the number of rows.")
    if prototypes.shape != (expected := tiles_shape(len(starts) - 1, tiles.shape[1])):
        raise InvalidInputError(f"prototypes must be of shape {expected}; got {prototypes.shape}.")


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
