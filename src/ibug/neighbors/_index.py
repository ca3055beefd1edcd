"""The index of the training rows' leaves, and the search for the rows that share most of them with a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from ibug.exceptions import InvalidInputError
from ibug.neighbors._arrays import check_arrays
from ibug.neighbors._bounds import BOUNDS, Bounds, find_bounds, search
from ibug.neighbors._builder import Builder, padded_trees, widened
from ibug.neighbors._checks import as_leaves, check_candidates, check_k
from ibug.neighbors._load import kernel
from ibug.neighbors._order import Neighbors
from ibug.neighbors._tasks import Task, divide, join

# A search by bounds gives up in favour of a full scan when it seems to need another share of the tiles as large as
# this. A tile that is visited alone costs three to five times one in a scan of several queries, and about ten times one
# in a scan of many, which share bitmaps.
_MOST_VISITED, _MOST_VISITED_OF_MANY, _MOST_VISITED_ALONE = 0.2, 0.12, 0.5
# Nor is it tried for more neighbours than this share of the rows, which lie in many tiles.
_MOST_ROWS, _MOST_ROWS_OF_MANY = 1 / 8, 1 / 300
# What a search by bounds costs compared with a full scan, at least; for the number of threads.
_SPARED = 8
# Queries that share each load of a tile; so many a thread should have at least, before tiles are divided.
_GROUP = 16


class LeafIndex:
    """An index over the leaves of training rows, to find those that share most leaves with a new one.

    The *affinity* of two rows is the number of trees in which they fall into the same leaf (paper, Eq. 1). Leaves are
    renumbered per tree and kept as one byte per row and tree (two above 256 leaves, four above 65,536), in tiles of
    16 rows, ``[tile][tree][row]``, which the compiled kernel compares with several queries at a time, or, for many
    queries, makes bitmaps of that they share. Similar rows are
    kept together, in an order of the index's own, and beside them where each leaf occurs: so a query can skip the tiles
    that cannot have a row among the nearest. The result is the same as without; where skipping would not pay, all rows
    are compared.

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
    bounds : Bounds or None
        Where leaves occur, to skip rows.

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

    #: The names of the arrays that every index has; the others are bounds, without which every query looks at all rows.
    REQUIRED_ARRAYS = ("tiles", "order", "numbering", "leaf_counts")

    def __init__(
        self,
        tiles: NDArray[Any],
        order: NDArray[np.uint32],
        numbering: NDArray[np.int32],
        leaf_counts: NDArray[np.int32],
        bounds: Bounds | None,
    ) -> None:
        self._tiles = tiles  # (n_tiles, n_padded_trees, 16), codes
        self._order = order  # (n_rows,), the row number at each place of the tiles
        self._numbering = numbering  # (n_trees, width): leaf number -> code, -1 where no training row has been
        self._leaf_counts = leaf_counts  # (n_trees,)
        self._bounds = bounds
        self._sizes: list[NDArray[np.int64]] | None = None  # by tree and code, when somebody asks

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
        if builder is None or builder.filled != n_rows or n_rows == 0:
            filled = 0 if builder is None else builder.filled
            raise InvalidInputError(f"The chunks hold {filled} rows, but n_rows={n_rows} were announced, at least 1.")
        order = builder.sort()
        bounds = find_bounds(builder.tiles, order, builder.leaf_counts)
        return cls(builder.tiles, order, builder.numbering, builder.leaf_counts, bounds)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that the index consists of as plain arrays, by name and without a copy.

        They can be written to a file, mapped from it into memory, and given to :meth:`from_arrays`. They belong to the
        index: change none of them.
        """
        arrays = {
            "tiles": self._tiles,
            "order": self._order,
            "numbering": self._numbering,
            "leaf_counts": self._leaf_counts,
        }
        return arrays if self._bounds is None else {**arrays, **self._bounds.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LeafIndex:
        """Return the index that :meth:`arrays` took apart, without a copy.

        Read-only arrays and memory maps will do: processes that map the same file share one index in memory.

        Parameters
        ----------
        arrays
            By the names that :meth:`arrays` gives them. They are checked to fit together, which reads the smaller
            ones, but neither the codes nor the words of the bounds.
        """
        check_arrays(arrays, cls.REQUIRED_ARRAYS, BOUNDS)
        bounds = Bounds(**{name: arrays[name] for name in BOUNDS}) if BOUNDS[0] in arrays else None
        return cls(arrays["tiles"], arrays["order"], arrays["numbering"], arrays["leaf_counts"], bounds)

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
    def nbytes(self) -> int:
        """The memory of the index in bytes, look-up table and bounds included."""
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def bounds_nbytes(self) -> int:
        """The part of `nbytes` that lets queries skip rows; 0 for an index whose queries look at all rows."""
        return 0 if self._bounds is None else self._bounds.nbytes

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return f"LeafIndex(n_rows={self.n_rows}, n_trees={self.n_trees}, code_type={self.code_type})"

    def query(
        self,
        leaves: ArrayLike,
        k: int,
        *,
        candidates: int | None = None,
        n_jobs: int | None = None,
        instruction_set: str | None = None,
    ) -> Neighbors:
        """Find the k training rows of highest affinity for each query.

        Parameters
        ----------
        leaves : array-like of int, shape (n_queries, n_trees)
            The queries' leaf numbers, from the same model as the index. A leaf that no training row has reached
            matches none.
        k
            From 1 to ``n_rows``.
        candidates
            ``None`` finds the nearest rows exactly. A number from k to ``n_rows`` asks for an approximation in two
            stages: the first quarter of the trees proposes that many candidates, all trees decide among them (and the
            rows stored beside them). Affinities are exact, but a nearer row may be missing. It helps single rows where
            the exact search has to look at most training rows, and hardly ever batches, which share that work;
            ``python benchmarks/search.py`` measures the recall.
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
        check_k(k, self.n_rows)
        if candidates is not None:
            candidates = check_candidates(candidates, int(k), self.n_rows)
        tiles, queries = self._encode(self._check_queries(leaves))
        # Decided once: the tiles of a search by bounds are divided otherwise than those of a scan.
        many = self._shares_bitmaps(len(queries), instruction_set or "")
        prunes = candidates is None and self._prunes(int(k), many)
        n_threads = 1 if n_jobs is None else effective_n_jobs(n_jobs)
        group = kernel.least_queries(instruction_set or "") if many else _GROUP
        tasks = self._tasks(len(queries), candidates, prunes, n_threads, group)
        options = int(k), candidates, prunes, instruction_set or ""
        if len(tasks) == 1:
            return self._run(tiles, queries, tasks[0], *options)
        parts = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(self._run)(tiles, queries, task, *options) for task in tasks
        )
        return join(tasks, parts, int(k))

    def visited(self, leaves: ArrayLike, k: int, *, instruction_set: str | None = None) -> NDArray[np.float64]:
        """Return the share of the index that each query looks at when it skips what it can.

        :meth:`query` skips less: where skipping seems not to pay, it looks at all rows.

        Parameters
        ----------
        leaves : array-like of int, shape (n_queries, n_trees)
            The queries' leaf numbers.
        k
            The number of neighbours, from 1 to ``n_rows``.
        instruction_set
            As in :meth:`query`.

        Returns
        -------
        ndarray of shape (n_queries,)
            From 0 to 1; all 1 for an index without bounds.
        """
        tiles, queries = self._encode(self._check_queries(leaves))
        check_k(k, self.n_rows)
        if self._bounds is None:
            return np.ones(len(queries))
        visits = search(tiles, self._order, self._bounds, queries, int(k), instruction_set=instruction_set or "")[2]
        return visits / -(-self.n_rows // kernel.TILE_ROWS)

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
        sizes = np.empty((len(codes), self.n_trees), np.int64)
        for tree, by_code in enumerate(self._sizes_by_code()):
            sizes[:, tree] = by_code[codes[:, tree]]
        return sizes

    def _sizes_by_code(self) -> list[NDArray[np.int64]]:
        if self._sizes is None:
            # One place more than there are codes: a leaf without training rows has the first code that is not taken.
            self._sizes = [
                np.bincount(self._tiles[:, tree].ravel()[: self.n_rows], minlength=int(count) + 1)
                for tree, count in enumerate(self._leaf_counts)
            ]
        return self._sizes

    def _shares_bitmaps(self, n_queries: int, instruction_set: str) -> bool:
        """Whether a full scan of so many queries shares bitmaps of their leaves."""
        return n_queries >= kernel.least_queries(instruction_set) and self._tiles.itemsize == 1

    def _prunes(self, k: int, many: bool) -> bool:
        """Whether bounds can help: not if a large part of all rows is asked for, or by many queries a small one."""
        return self._bounds is not None and k <= (_MOST_ROWS_OF_MANY if many else _MOST_ROWS) * self.n_rows

    def _tasks(self, n_queries: int, candidates: int | None, prunes: bool, n_threads: int, group: int) -> list[Task]:
        n_tiles = len(self._tiles)
        if n_threads == 1:
            return [Task(0, n_queries, 0, n_tiles)]
        comparisons = n_queries * self._tiles.size
        if candidates is not None:
            return divide(n_queries, n_tiles, n_tiles, comparisons // 4, n_threads, group)
        if prunes:
            return divide(n_queries, n_tiles, kernel.CHUNK_TILES, comparisons // _SPARED, n_threads, _GROUP)
        return divide(n_queries, n_tiles, kernel.QUAD_TILES, comparisons, n_threads, group)

    def _run(
        self,
        tiles: NDArray[Any],
        queries: NDArray[Any],
        task: Task,
        k: int,
        candidates: int | None,
        prunes: bool,
        instruction_set: str,
    ) -> Neighbors:
        whole = task.first_query == 0 and task.last_query == len(queries)
        own = queries if whole else queries[task.first_query : task.last_query]
        if prunes and self._bounds is not None:
            many = self._shares_bitmaps(len(own), instruction_set)
            share = _MOST_VISITED_OF_MANY if many else _MOST_VISITED if len(own) > 1 else _MOST_VISITED_ALONE
            tile_range = task.first_tile, task.last_tile
            most = int(share * (task.last_tile - task.first_tile))
            return search(
                tiles, self._order, self._bounds, own, k,
                tile_range=tile_range, most_visits=most, instruction_set=instruction_set,
            )[:2]  # fmt: skip
        affinities, rows = np.empty((len(own), k), np.int32), np.empty((len(own), k), np.int64)
        if candidates is None:
            kernel.scan(
                tiles, self._order, self.n_trees, own, task.first_tile, task.last_tile, 0, len(own),
                affinities, rows, instruction_set,
            )  # fmt: skip
        else:
            kernel.two_stage(
                tiles, self._order, self.n_trees, own, padded_trees(-(-self.n_trees // 4)), candidates, 0, len(own),
                affinities, rows, instruction_set,
            )  # fmt: skip
        return affinities, rows

    def _check_queries(self, leaves: ArrayLike) -> NDArray[np.int32]:
        # Numbers of another type are checked when they are converted, those of int32 when they are read.
        is_int32 = isinstance(leaves, np.ndarray) and leaves.ndim == 2 and leaves.dtype == np.int32
        array = np.ascontiguousarray(leaves) if is_int32 else as_leaves(leaves)
        if array.shape[1] != self.n_trees:
            raise InvalidInputError(f"The queries have {array.shape[1]} trees, the index has {self.n_trees}.")
        return array

    def _encode(self, leaves: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the tiles and the queries' codes of the same width.

        They belong together: another thread may be widening the index at the same time.
        """
        tiles = self._tiles
        codes = np.empty((len(leaves), padded_trees(self.n_trees)), tiles.dtype)
        try:
            without_code = kernel.encode_rows(leaves, self._numbering, self._leaf_counts, codes)
        except ValueError:
            as_leaves(leaves)  # tells what is wrong
            raise
        if without_code:
            # All 256 codes of a tree stand for leaves with training rows, and a query is in yet another leaf.
            self._tiles = widened(tiles)
            return self._encode(leaves)
        return tiles, codes
