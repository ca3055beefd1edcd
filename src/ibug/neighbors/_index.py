"""The index of the training rows' leaves, and the search for the rows that share most of them with a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from ibug.exceptions import InvalidInputError
from ibug.neighbors._arrays import CODE_TYPES, check_arrays
from ibug.neighbors._load import kernel
from ibug.neighbors._order import Neighbors, merge_top_k

# A thread is worth starting only for some milliseconds of work: about this many code comparisons.
_COMPARISONS_PER_TASK = 2**28
# The look-up table from leaf numbers to codes has 4 bytes per entry, so 4 GiB at the most.
_MAX_TABLE_ENTRIES = 2**30


class LeafIndex:
    """An index over the leaves of training rows, to find those that share most leaves with a new one.

    The *affinity* of two rows is the number of trees in which they fall into the same leaf (paper, Eq. 1). Leaves are
    renumbered per tree and kept as one byte per row and tree (two above 256 leaves, four above 65,536), in tiles of
    64 rows, ``[tile][tree][row]``, which the compiled kernel compares with several queries at a time.

    Build one with :meth:`build` or :meth:`from_chunks`.

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

    _ARRAYS = ("tiles", "n_rows", "numbering", "leaf_counts")

    def __init__(
        self,
        tiles: NDArray[Any],
        n_rows: int,
        numbering: NDArray[np.int32],
        leaf_counts: NDArray[np.int32],
    ) -> None:
        self._tiles = tiles  # (n_tiles, n_trees, 64), codes
        self._n_rows = n_rows
        self._numbering = numbering  # (n_trees, width): leaf number -> code, -1 where no training row has been
        self._leaf_counts = leaf_counts  # (n_trees,)
        self._sizes: list[NDArray[np.int64]] | None = None  # by tree and code, when somebody asks

    @classmethod
    def build(cls, leaves: ArrayLike) -> LeafIndex:
        """Index the training rows' leaf numbers.

        Parameters
        ----------
        leaves : array-like of int, shape (n_rows, n_trees)
            Any non-negative numbers; small ones keep the index's look-up table small.
        """
        array = _as_leaves(leaves)
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
        builder: _Builder | None = None
        for chunk in chunks:
            leaves = _as_leaves(chunk)
            if builder is None:
                builder = _Builder(n_rows, leaves.shape[1])
            builder.add(leaves)
        if builder is None or builder.filled != n_rows or n_rows == 0:
            filled = 0 if builder is None else builder.filled
            raise InvalidInputError(f"The chunks hold {filled} rows, but n_rows={n_rows} were announced, at least 1.")
        return cls(builder.tiles, n_rows, builder.numbering, builder.leaf_counts)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that the index consists of as plain arrays, by name and without a copy.

        They can be written to a file, mapped from it into memory, and given to :meth:`from_arrays`. They belong to the
        index: change none of them.
        """
        return {
            "tiles": self._tiles,
            "n_rows": np.array(self._n_rows, np.int64),
            "numbering": self._numbering,
            "leaf_counts": self._leaf_counts,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LeafIndex:
        """Return the index that :meth:`arrays` took apart, without a copy.

        Read-only arrays and memory maps will do: processes that map the same file share one index in memory.

        Parameters
        ----------
        arrays
            By the names that :meth:`arrays` gives them. They are checked to fit together, which reads the look-up
            table but not the codes.
        """
        check_arrays(arrays, cls._ARRAYS)
        return cls(arrays["tiles"], int(arrays["n_rows"]), arrays["numbering"], arrays["leaf_counts"])

    @property
    def n_rows(self) -> int:
        """The number of training rows in the index."""
        return self._n_rows

    @property
    def n_trees(self) -> int:
        """The number of trees, and so the highest possible affinity."""
        return int(self._tiles.shape[1])

    @property
    def code_type(self) -> np.dtype[Any]:
        """The integer type of the stored codes: ``uint8``, ``uint16`` or ``uint32``."""
        return self._tiles.dtype

    @property
    def nbytes(self) -> int:
        """The memory of the index in bytes, look-up table included."""
        return int(self._tiles.nbytes + self._numbering.nbytes + self._leaf_counts.nbytes)

    def __len__(self) -> int:
        return self._n_rows

    def __repr__(self) -> str:
        return f"LeafIndex(n_rows={self.n_rows}, n_trees={self.n_trees}, code_type={self.code_type})"

    def query(
        self, leaves: ArrayLike, k: int, *, n_jobs: int | None = None, instruction_set: str | None = None
    ) -> Neighbors:
        """Find the k training rows of highest affinity for each query.

        Parameters
        ----------
        leaves : array-like of int, shape (n_queries, n_trees)
            The queries' leaf numbers, from the same model as the index. A leaf that no training row has reached
            matches none.
        k
            From 1 to ``n_rows``.
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
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= self.n_rows:
            raise InvalidInputError(
                f"k must be an integer from 1 to the number of training rows, {self.n_rows}; got {k!r}."
            )
        tiles, queries = self._encode(self._check_queries(leaves))
        tasks = _tasks(len(queries), len(tiles), self.n_trees, effective_n_jobs(n_jobs))
        name = instruction_set or ""
        if len(tasks) == 1:
            return self._run(tiles, queries, int(k), tasks[0], name)
        parts = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(self._run)(tiles, queries, int(k), task, name) for task in tasks
        )
        return _join(tasks, parts, int(k))

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
        _, codes = self._encode(self._check_queries(leaves))
        sizes = np.empty(codes.shape, np.int64)
        for tree, by_code in enumerate(self._sizes_by_code()):
            sizes[:, tree] = by_code[codes[:, tree]]
        return sizes

    def _sizes_by_code(self) -> list[NDArray[np.int64]]:
        if self._sizes is None:
            # One place more than there are codes: a leaf without training rows has the first code that is not taken.
            self._sizes = [
                np.bincount(self._tiles[:, tree].ravel()[: self._n_rows], minlength=int(count) + 1)
                for tree, count in enumerate(self._leaf_counts)
            ]
        return self._sizes

    def _run(self, tiles: NDArray[Any], queries: NDArray[Any], k: int, task: _Task, instruction_set: str) -> Neighbors:
        first_query, last_query, first_tile, last_tile = task
        own = queries[first_query:last_query]
        affinities = np.empty((len(own), k), np.int32)
        rows = np.empty((len(own), k), np.int64)
        kernel.top_k(tiles, self._n_rows, own, first_tile, last_tile, 0, len(own), affinities, rows, instruction_set)
        return affinities, rows

    def _check_queries(self, leaves: ArrayLike) -> NDArray[np.int32]:
        array = _as_leaves(leaves)
        if array.shape[1] != self.n_trees:
            raise InvalidInputError(f"The queries have {array.shape[1]} trees, the index has {self.n_trees}.")
        return array

    def _encode(self, leaves: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the tiles and the queries' codes of the same width.

        They belong together: another thread may be widening the index at the same time.
        """
        tiles = self._tiles
        codes = np.empty(leaves.shape, tiles.dtype)
        if kernel.encode_rows(leaves, self._numbering, self._leaf_counts, codes):
            # All 256 codes of a tree stand for leaves with training rows, and a query is in yet another leaf.
            self._tiles = _widened(tiles)
            return self._encode(leaves)
        return tiles, codes


class _Builder:
    """Gives leaves their codes in order of appearance, and widens the codes when a tree has more than they can tell."""

    def __init__(self, n_rows: int, n_trees: int) -> None:
        if not 1 <= n_trees <= kernel.MAX_TREES:
            raise InvalidInputError(f"An index takes from 1 to {kernel.MAX_TREES} trees, got {n_trees}.")
        self.filled = 0
        self.n_rows = n_rows
        self.tiles = _aligned_zeros((-(-n_rows // kernel.TILE_ROWS), n_trees, kernel.TILE_ROWS), np.uint8)
        self.numbering = np.full((n_trees, 32), -1, np.int32)
        self.leaf_counts = np.zeros(n_trees, np.int32)

    def add(self, leaves: NDArray[np.int32]) -> None:
        if leaves.shape[1] != len(self.leaf_counts):
            raise InvalidInputError(f"A chunk has {leaves.shape[1]} trees, the first had {len(self.leaf_counts)}.")
        if self.filled + len(leaves) > self.n_rows:
            raise InvalidInputError(f"The chunks hold more than the announced n_rows={self.n_rows}.")
        if not len(leaves):
            return
        self._reserve(int(leaves.max()) + 1)
        kernel.number_leaves(leaves, self.numbering, self.leaf_counts)
        while self.leaf_counts.max() - 1 > np.iinfo(self.tiles.dtype).max:
            self.tiles = _widened(self.tiles)
        kernel.pack_rows(leaves, self.numbering, self.filled, self.tiles)
        self.filled += len(leaves)

    def _reserve(self, width: int) -> None:
        if width * len(self.leaf_counts) > _MAX_TABLE_ENTRIES:
            raise InvalidInputError(
                f"Leaf numbers up to {width - 1} in {len(self.leaf_counts)} trees need too large a look-up table; "
                "number the leaves of each tree from 0 on."
            )
        missing = width - self.numbering.shape[1]
        if missing > 0:
            self.numbering = np.pad(self.numbering, ((0, 0), (0, missing)), constant_values=-1)


def instruction_sets() -> list[str]:
    """Return the instruction sets that the kernel can use on this machine, best last."""
    return kernel.instruction_sets()


_Task = tuple[int, int, int, int]  # first query, last query, first tile, last tile; "last" is exclusive


def _tasks(n_queries: int, n_tiles: int, n_trees: int, n_threads: int) -> list[_Task]:
    """Divide the queries among the threads, and where they are too few, the rows of the index too."""
    work = n_queries * n_tiles * n_trees * kernel.TILE_ROWS
    n_tasks = max(1, min(n_threads, work // _COMPARISONS_PER_TASK))
    if n_tasks == 1:
        return [(0, n_queries, 0, n_tiles)]
    # Queries share each load of a tile, so a thread should have a group of them before tiles are divided.
    by_query = min(n_tasks, max(1, n_queries // 16))
    by_tile = n_tasks // by_query
    return [(*q, *t) for q in _ranges(n_queries, by_query) for t in _ranges(n_tiles, min(by_tile, n_tiles))]


def _ranges(n: int, parts: int) -> Iterator[tuple[int, int]]:
    edges = [n * i // parts for i in range(parts + 1)]
    return pairwise(edges)


def _join(tasks: list[_Task], parts: list[Neighbors], k: int) -> Neighbors:
    by_query: dict[tuple[int, int], list[Neighbors]] = {}
    for task, part in zip(tasks, parts, strict=True):
        by_query.setdefault(task[:2], []).append(part)
    merged = [group[0] if len(group) == 1 else merge_top_k(group, k) for group in by_query.values()]
    return np.concatenate([m[0] for m in merged]), np.concatenate([m[1] for m in merged])


def _as_leaves(leaves: ArrayLike) -> NDArray[np.int32]:
    array = np.asarray(leaves)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"Leaf numbers must be integers of shape (n_rows, n_trees); got {array.dtype} of shape {array.shape}."
        )
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int32).max - 1):
        raise InvalidInputError(
            f"Leaf numbers must be from 0 to 2**31 - 2; got numbers from {array.min()} to {array.max()}."
        )
    return np.ascontiguousarray(array, np.int32)


def _aligned_zeros(shape: tuple[int, ...], dtype: type | np.dtype[Any]) -> NDArray[Any]:
    """Zeros that start on a cache line, so that no vector load crosses two."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(n_bytes + 63, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + n_bytes].view(dtype).reshape(shape)


def _widened(tiles: NDArray[Any]) -> NDArray[Any]:
    wider = _aligned_zeros(tiles.shape, CODE_TYPES[CODE_TYPES.index(tiles.dtype.type) + 1])
    wider[...] = tiles
    return wider
