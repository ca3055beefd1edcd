"""The index of the training rows' leaves, to find the rows that share most of them with a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._compiled import search as kernel
from ibug._typing import Floats
from ibug._validation import check_at_least_one
from ibug.exceptions import InvalidInputError, NotStorableError
from ibug.neighbors._build import (
    CELLS,
    Builder,
    Cells,
    aligned_zeros,
    check_arrays,
    code_type_for,
    compiled_index,
    first_leaves,
    is_mapped,
    read_only,
    tiles_shape,
)
from ibug.neighbors._search import Search, TopK, merge_top_k


def check_k(k: int, n_rows: int) -> None:
    """Raise InvalidInputError unless k is an integer from 1 to n_rows."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= n_rows:
        raise InvalidInputError(f"k must be an integer from 1 to the number of training rows, {n_rows}; got {k!r}.")


def as_leaves(leaves: ArrayLike) -> NDArray[np.int32]:
    """Return leaf numbers, (n_rows, n_trees), as int32, after checking them."""
    array = np.asarray(leaves)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"Leaf numbers must be integers of shape (n_rows, n_trees); got {array.dtype} of shape {array.shape}."
        )
    if array.dtype.itemsize < 4:
        array = array.astype(np.int32)
    # As unsigned numbers of the same width, negative ones are the largest: one look at the array instead of two.
    if array.size and array.view(array.dtype.str.replace("i", "u")).max() > np.iinfo(np.int32).max - 1:
        raise InvalidInputError(
            f"Leaf numbers must be from 0 to 2**31 - 2; got numbers from {array.min()} to {array.max()}."
        )
    return np.require(array, np.int32, ["C_CONTIGUOUS", "ALIGNED"])


class LeafIndex:
    """An index over the leaves of training rows, to find those that share most leaves with a new one.

    The *affinity* of two rows is the number of trees in which they fall into the same leaf (paper, Eq. 1). Leaves are
    renumbered per tree and kept as one byte per row and tree (two above 256 leaves, four above 65,536), in tiles of
    16 rows, ``[tile][tree][row]``, which the compiled kernel compares with several queries at a time, or, for many
    queries, makes bitmaps of that they share. An index that is larger than the caches has its rows in cells around
    prototypes, each row with the one that it shares most leaves with. A query can then look at the rows of the nearest
    cells only: see ``n_cells`` of :meth:`query`.

    An index never changes: any number of threads may ask it at the same time, and what it consists of does not depend
    on what it was asked.

    Build one with :meth:`build` or :meth:`from_chunks`; the constructor takes the parts of one that was built.

    Parameters
    ----------
    tiles : ndarray of shape (n_tiles, n_padded_trees, 16)
        The leaf codes.
    order : ndarray of shape (n_rows,)
        The caller's row number of each stored row.
    numbering : ndarray of int32, shape (n_trees, width)
        The code of each leaf number, -1 where no training row has been.
    leaf_counts : ndarray of shape (n_trees,)
        How many codes each tree has.
    cells : Cells or None
        The partition of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug import LeafIndex
    >>> leaves = np.array([[0, 5], [1, 5], [1, 7]])  # three training rows, two trees
    >>> affinities, rows = LeafIndex.build(leaves).query([[1, 5]], k=2)
    >>> affinities
    array([[2, 1]], dtype=int32)
    >>> rows
    array([[1, 0]])
    """

    #: The names of the arrays that every index has; the others are those of cells.
    REQUIRED_ARRAYS = ("tiles", "order", "numbering", "leaf_counts")

    def __init__(
        self,
        tiles: NDArray[Any],
        order: NDArray[np.uint32],
        numbering: NDArray[np.int32],
        leaf_counts: NDArray[np.int32],
        cells: Cells | None,
    ) -> None:
        self._tiles = read_only(tiles)  # (n_tiles, n_padded_trees, 16), codes
        self._order = read_only(order)  # (n_rows,), the row number at each place of the tiles
        self._numbering = read_only(numbering)  # (n_trees, width): leaf number -> code, or -1 without training rows
        self._leaf_counts = read_only(leaf_counts)  # (n_trees,)
        self._cells = None if cells is None else cells.read_only()
        self._sizes: NDArray[np.int64] | None = None  # see _sizes_by_code
        self._kernel = compiled_index(self._tiles, self._order, self._numbering, self._leaf_counts, self._cells)
        self._search = Search(self._kernel, self._tiles, self.n_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return LeafIndex, (self._tiles, self._order, self._numbering, self._leaf_counts, self._cells)

    @classmethod
    def build(cls, leaves: ArrayLike) -> LeafIndex:
        """Index the training rows' leaf numbers.

        Parameters
        ----------
        leaves : array-like of int, shape (n_rows, n_trees)
            Any non-negative numbers; small ones keep the index's look-up table small.
        """
        array = as_leaves(leaves)
        return cls.from_chunks([array], n_rows=len(array))

    @classmethod
    def from_chunks(cls, chunks: Iterable[ArrayLike], n_rows: int) -> LeafIndex:
        """Index leaf numbers that arrive in chunks of rows, so that they need never be in memory all at once.

        Parameters
        ----------
        chunks : iterable of array-like of int, each of shape (n_chunk_rows, n_trees)
        n_rows
            How many rows all chunks have together.
        """
        builder: Builder | None = None
        for chunk in chunks:
            leaves = as_leaves(chunk)
            if builder is None:
                builder = Builder(n_rows, leaves.shape[1])
            builder.add(leaves)
        _check_filled(builder, 0, n_rows)
        assert builder is not None, "which has been checked"
        order, cells = builder.divide()
        return cls(builder.tiles, order, builder.numbering, builder.leaf_counts, cells)

    def extended(self, chunks: Iterable[ArrayLike], n_rows: int) -> LeafIndex:
        """Return an index that has more rows, behind those of this one, which stays as it is.

        The new rows go into the cells that there are, until there are twice as many rows as when these were made.

        Parameters
        ----------
        chunks : iterable of array-like of int, each of shape (n_chunk_rows, n_trees)
            The leaf numbers of the new rows.
        n_rows
            How many rows all chunks have together.
        """
        builder = Builder(self.n_rows + n_rows, self.n_trees)
        builder.take(self._tiles, self.n_rows, self._numbering, self._leaf_counts)
        for chunk in chunks:
            builder.add(as_leaves(chunk))
        _check_filled(builder, self.n_rows, n_rows)
        known = None if self._cells is None or self._cells.outgrown(builder.n_rows) else self._cells
        places, cells = builder.divide(known, self.n_rows)
        rows = np.concatenate([self._order, np.arange(self.n_rows, builder.n_rows, dtype=np.uint32)])[places]
        return LeafIndex(builder.tiles, rows, builder.numbering, builder.leaf_counts, cells)

    def without_first(self, n_rows: int) -> LeafIndex:
        """Return an index without the rows of the lowest numbers; the others are counted from 0 again.

        Parameters
        ----------
        n_rows
            How many rows to leave out, from 0 to all but one.
        """
        kept = np.flatnonzero(self._order >= n_rows)
        if n_rows < 0 or not len(kept):
            raise InvalidInputError(f"From 0 to {self.n_rows - 1} of {self.n_rows} rows can be left out; got {n_rows}.")
        gone = np.flatnonzero(self._order < n_rows)
        tiles = aligned_zeros(self._tiles.shape, self._tiles.dtype)
        tiles[...] = self._tiles
        places = np.concatenate([kept, gone]).astype(np.uint32)
        kernel.permute_rows(tiles, self.n_trees, places, min(64, -(-self.n_trees // 4)))
        builder = Builder(len(kept), self.n_trees)
        builder.take(tiles, len(kept), self._numbering, self._leaf_counts)
        cells = None if self._cells is None else self._cells.holding(self._cells.of_places()[kept])
        order = self._order[kept] - np.uint32(n_rows)
        return LeafIndex(builder.tiles, order, builder.numbering, builder.leaf_counts, cells)

    def of_trees(self, trees: NDArray[np.intp]) -> LeafIndex:
        """Return an index of the same rows in some of the trees: it finds what an index of their leaves alone finds.

        Rows keep their order and their cells, codes their numbers; so this costs a copy of these trees' codes.

        Parameters
        ----------
        trees : ndarray of shape (n_chosen,)
            The trees' numbers, ascending.
        """
        chosen = np.asarray(trees)
        fits = chosen.ndim == 1 and chosen.dtype.kind == "i" and chosen.size and np.all(np.diff(chosen) > 0)
        if not fits or chosen[0] < 0 or chosen[-1] >= self.n_trees:
            raise InvalidInputError(f"Trees must be ascending numbers from 0 to {self.n_trees - 1}; got {trees!r}.")
        numbering, counts = self._numbering[chosen], self._leaf_counts[chosen]
        tiles = aligned_zeros(tiles_shape(self.n_rows, len(chosen)), code_type_for(int(counts.max())))
        tiles[:, : len(chosen)] = self._tiles[:, chosen]
        cells = None if self._cells is None else self._cells.of_trees(chosen, tiles.dtype)
        return LeafIndex(tiles, self._order, numbering, counts, cells)

    def explained(self, values: Floats) -> Floats:
        """Return how much of the variance of values is between the leaves of each tree, as a share, (n_trees,).

        Parameters
        ----------
        values : ndarray of shape (n_rows,)
            The values of the rows: their targets, say. If all are equal, the shares are 0.
        """
        centered = (values - values.mean())[self._order]
        total = float(np.sum(np.square(centered)))
        shares = np.zeros(self.n_trees)
        for tree in range(self.n_trees if total > 0 else 0):
            codes = self._tiles[:, tree].reshape(-1)[: self.n_rows]
            sums, sizes = np.bincount(codes, centered), np.bincount(codes)
            shares[tree] = np.sum(np.square(sums) / np.maximum(sizes, 1)) / total
        return shares

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that the index consists of as plain arrays, by name and without a copy.

        They can be written to a file, mapped from it into memory, and given to :meth:`from_arrays`. They are read-only.
        """
        arrays = {
            "tiles": self._tiles,
            "order": self._order,
            "numbering": self._numbering,
            "leaf_counts": self._leaf_counts,
        }
        return arrays if self._cells is None else {**arrays, **self._cells.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LeafIndex:
        """Return the index that :meth:`arrays` took apart, without a copy.

        Read-only arrays and memory maps will do: processes that map the same file share one index in memory.

        Parameters
        ----------
        arrays
            By the names that :meth:`arrays` gives them. They are checked, which does not read the codes.
        """
        check_arrays(arrays, cls.REQUIRED_ARRAYS, CELLS)
        cells = Cells(**{name: arrays[name] for name in CELLS}) if CELLS[0] in arrays else None
        return cls(arrays["tiles"], arrays["order"], arrays["numbering"], arrays["leaf_counts"], cells)

    @property
    def n_rows(self) -> int:
        """The number of training rows in the index."""
        return len(self._order)

    @property
    def n_trees(self) -> int:
        """The number of trees, and so the highest possible affinity."""
        return len(self._leaf_counts)

    @property
    def code_type(self) -> np.dtype[Any]:
        """The integer type of the stored codes: ``uint8``, ``uint16`` or ``uint32``."""
        return self._tiles.dtype

    @property
    def is_mapped(self) -> bool:
        """Whether the codes lie in a file that is mapped into memory."""
        return is_mapped(self._tiles)

    @property
    def nbytes(self) -> int:
        """The memory of the index in bytes, look-up table and prototypes included."""
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def n_cells(self) -> int:
        """The number of cells; 0 for an index whose queries look at all rows."""
        return 0 if self._cells is None else self._cells.n_cells

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return f"LeafIndex(n_rows={self.n_rows}, n_trees={self.n_trees}, code_type={self.code_type})"

    def query(
        self,
        leaves: ArrayLike,
        k: int,
        *,
        n_cells: int | None = None,
        n_jobs: int | None = None,
        instruction_set: str | None = None,
    ) -> TopK:
        """Find the k training rows of highest affinity for each query.

        Parameters
        ----------
        leaves : array-like of int, shape (n_queries, n_trees)
            The queries' leaf numbers, from the same model as the index. A leaf that no training row has reached
            matches none.
        k
            From 1 to ``n_rows``.
        n_cells : int, default=None
            The number of cells that a query visits, the nearest ones; more where k is so large that these may have too
            few rows. ``None`` means all rows, as it does for an index without cells.
        n_jobs
            Threads, in joblib's convention: ``None`` is one, ``-1`` all. The result does not depend on it.
        instruction_set
            ``None`` takes the best of the machine; a name from ``instruction_sets()`` is for tests and benchmarks.

        Returns
        -------
        affinities : ndarray of int32, shape (n_queries, k)
            In descending order.
        rows : ndarray of int64, shape (n_queries, k)
            Row numbers of the training rows; equal affinities are in ascending order of the row number.
        """
        affinities, rows, _ = self._find(leaves, k, n_cells, n_jobs, instruction_set)
        return affinities, rows

    def visited(self, leaves: ArrayLike, k: int, n_cells: int | None) -> NDArray[np.float64]:
        """Return the share of the rows that each query looks at, (n_queries,), prototypes included.

        Parameters
        ----------
        leaves, k, n_cells
            As in :meth:`query`.
        """
        _, _, visited = self._find(leaves, k, n_cells, None, None)
        return (visited + (self.n_cells if n_cells else 0)) / self.n_rows

    def _find(
        self, leaves: ArrayLike, k: int, n_cells: int | None, n_jobs: int | None, instruction_set: str | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        check_k(k, self.n_rows)
        queries = self._check_queries(leaves)
        if n_cells is not None:
            n_cells = min(check_at_least_one(n_cells, "n_cells"), self.n_cells) or None
        try:
            return self._search(queries, int(k), n_cells, n_jobs, instruction_set or "")
        except ValueError:
            as_leaves(queries)  # tells what is wrong
            raise

    def leaf_sizes(self, leaves: ArrayLike) -> NDArray[np.int64]:
        """Count the training rows in each query's leaves.

        Parameters
        ----------
        leaves : array-like of int, shape (n_queries, n_trees)
            The queries' leaf numbers.

        Returns
        -------
        ndarray of int64, shape (n_queries, n_trees)
        """
        queries = as_leaves(self._check_queries(leaves))
        codes = np.empty(queries.shape, np.int32)
        self._kernel.number(queries, codes)
        sizes = self._sizes_by_code()
        return np.where(codes < 0, 0, sizes[first_leaves(self._leaf_counts)[:-1] + np.maximum(codes, 0)])

    def _sizes_by_code(self) -> NDArray[np.int64]:
        """Return the number of training rows in each leaf, those of all trees one after the other, (n_leaves,).

        They are counted when somebody asks for the first time, and kept. Threads that ask at the same time may count
        them twice; what they keep is the same, and is complete when it is kept.
        """
        sizes = self._sizes
        if sizes is None:
            sizes = np.empty(int(self._leaf_counts.sum(dtype=np.int64)), np.int64)
            self._kernel.count_rows(sizes)
            self._sizes = sizes
        return sizes

    def _check_queries(self, leaves: ArrayLike) -> NDArray[np.int32]:
        # Numbers of another type are checked when they are converted, those of int32 when they are read.
        if isinstance(leaves, np.ndarray) and leaves.ndim == 2 and leaves.dtype == np.int32:
            array = leaves if leaves.flags.c_contiguous and leaves.flags.aligned else leaves.copy(order="C")
        else:
            array = as_leaves(leaves)
        if array.shape[1] != self.n_trees:
            raise InvalidInputError(f"The queries have {array.shape[1]} trees, the index has {self.n_trees}.")
        return array


def _check_filled(builder: Builder | None, n_before: int, n_rows: int) -> None:
    """Raise InvalidInputError unless the chunks have had the announced rows."""
    filled = 0 if builder is None else builder.filled - n_before
    if filled != n_rows or n_rows == 0:
        raise InvalidInputError(f"The chunks hold {filled} rows, but n_rows={n_rows} were announced, at least 1.")


class JoinedIndex:
    """The indexes of several shards, with the methods of one ``LeafIndex`` of all their rows, in their order."""

    def __init__(self, parts: Sequence[LeafIndex]) -> None:
        self._parts = list(parts)
        self._starts = np.cumsum([0, *(part.n_rows for part in self._parts)]).tolist()

    @property
    def n_rows(self) -> int:
        """The number of training rows in all indexes."""
        return int(self._starts[-1])

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self._parts[0].n_trees

    @property
    def nbytes(self) -> int:
        """The memory in bytes."""
        return sum(part.nbytes for part in self._parts)

    def __len__(self) -> int:
        return self.n_rows

    def query(self, leaves: ArrayLike, k: int, *, n_cells: int | None = None, n_jobs: int | None = None) -> TopK:
        """Find the k training rows of highest affinity for each query; see ``LeafIndex.query``."""
        check_k(k, self.n_rows)
        found = []
        for part, start in zip(self._parts, self._starts, strict=False):
            affinities, rows = part.query(leaves, min(int(k), part.n_rows), n_cells=n_cells, n_jobs=n_jobs)
            found.append((affinities, rows + start))
        return merge_top_k(found, int(k))

    def leaf_sizes(self, leaves: ArrayLike) -> NDArray[np.int64]:
        """Count the training rows in each query's leaves, (n_queries, n_trees)."""
        sizes: NDArray[np.int64] = np.add.reduce([part.leaf_sizes(leaves) for part in self._parts])
        return sizes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raise NotStorableError: the shards are saved already, as a folder."""
        raise NotStorableError("This regressor was loaded from a folder of shards: copy the folder to save it again.")
