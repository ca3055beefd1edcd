"""The index as plain arrays: what may come back from a file, checked without reading the codes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.exceptions import InvalidInputError
from ibug.neighbors._load import kernel

CODE_TYPES = (np.uint8, np.uint16, np.uint32)


def check_arrays(arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> None:
    """Raise InvalidInputError unless the arrays can be those of one index.

    Everything that the kernel uses as a position is checked: the look-up table and the counts. The codes are only ever
    compared, so that they need not be read here, and a memory-mapped index is not pulled from the disk.
    """
    if missing := [name for name in names if name not in arrays]:
        raise InvalidInputError(f"An index needs the arrays {', '.join(names)}; missing: {', '.join(missing)}.")
    tiles, n_rows = arrays["tiles"], arrays["n_rows"]
    _check(tiles, "tiles", 3, CODE_TYPES)
    _check(n_rows, "n_rows", 0, (np.int64,))
    _check(arrays["numbering"], "numbering", 2, (np.int32,))
    _check(arrays["leaf_counts"], "leaf_counts", 1, (np.int32,))
    n_tiles, n_trees, width = tiles.shape
    if width != kernel.TILE_ROWS or not 1 <= n_trees <= kernel.MAX_TREES:
        raise InvalidInputError(
            f"tiles must be of shape (n_tiles, n_trees, {kernel.TILE_ROWS}) with 1 to {kernel.MAX_TREES} trees; "
            f"got {tiles.shape}."
        )
    if n_rows < 1 or -(-int(n_rows) // kernel.TILE_ROWS) != n_tiles:
        raise InvalidInputError(f"n_rows is {int(n_rows)}, which does not fill {n_tiles} tiles of {width} rows.")
    _check_numbering(arrays["numbering"], arrays["leaf_counts"], n_trees, tiles.dtype)


def _check(array: NDArray[Any], name: str, n_dim: int, types: tuple[type[np.generic], ...]) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != n_dim or array.dtype not in types:
        expected = " or ".join(np.dtype(t).name for t in types)
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidInputError(f"{name} must be an array of {expected} with {n_dim} dimensions; got {got}.")
    if not array.flags.c_contiguous:
        raise InvalidInputError(f"{name} must be stored row by row (C order): numpy.ascontiguousarray makes it so.")


def _check_numbering(
    numbering: NDArray[np.int32], leaf_counts: NDArray[np.int32], n_trees: int, code_type: np.dtype[Any]
) -> None:
    if len(numbering) != n_trees or len(leaf_counts) != n_trees:
        raise InvalidInputError(
            f"tiles have {n_trees} trees, numbering has {len(numbering)}, leaf_counts has {len(leaf_counts)}."
        )
    if leaf_counts.min() < 1 or leaf_counts.max() - 1 > np.iinfo(code_type).max:
        raise InvalidInputError(
            f"leaf_counts must be from 1 to what {code_type} can tell apart, {np.iinfo(code_type).max + 1}; "
            f"got {leaf_counts.min()} to {leaf_counts.max()}."
        )
    if numbering.size and (numbering.min() < -1 or np.any(numbering.max(axis=1) >= leaf_counts)):
        raise InvalidInputError("numbering must hold -1, or codes from 0 to below the leaf_counts of its tree.")
