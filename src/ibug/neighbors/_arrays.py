"""The index as plain arrays: what may come back from a file, checked without reading the codes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import search as kernel
from ibug.exceptions import InvalidInputError

CODE_TYPES = (np.uint8, np.uint16, np.uint32)


def check_arrays(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...], bounds_names: tuple[str, ...]) -> None:
    """Raise InvalidInputError unless the arrays can be those of one index.

    Types, shapes, the order, the look-up table and the counts are checked here, where a message can tell what is wrong;
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
    n_trees, unit = len(arrays["leaf_counts"]), kernel.TILE_ROWS * kernel.QUAD_TILES
    n_tiles = -(-len(order) // unit) * kernel.QUAD_TILES
    expected = n_tiles, -(-n_trees // kernel.TREE_STEP) * kernel.TREE_STEP, kernel.TILE_ROWS
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
    """Tell whether an array lies in a file that is mapped into memory."""
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
