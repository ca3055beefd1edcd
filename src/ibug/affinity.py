"""From rows to their nearest training rows: leaf numbers in chunks, searched in the index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader
from ibug.neighbors import LeafIndex

# Rows come in chunks of about so many leaf numbers and neighbours, which with what the libraries and NumPy need beside
# them keeps memory near 100 MB, however many rows there are.
_NUMBERS_PER_CHUNK = 2**22

TREE_ORDERS = ("first", "last", "random")


class LeafSource:
    """The leaves of any row that the model can predict, in the trees that count for affinities.

    Parameters
    ----------
    reader
        The fitted model's leaf reader.
    n_model_trees
        The number of trees that the reader reads.
    trees : ndarray of shape (n_index_trees,) or None
        The trees of the model that an index has; ``None`` for all.
    """

    def __init__(self, reader: LeafReader, n_model_trees: int, trees: NDArray[np.intp] | None) -> None:
        self.reader = reader
        self.n_model_trees = n_model_trees
        self.trees = trees

    @property
    def n_trees(self) -> int:
        """The number of trees that count: the affinity of twins."""
        return self.n_model_trees if self.trees is None else len(self.trees)

    def index_of(
        self,
        X: Any,
        rows: NDArray[np.intp] | None = None,
        *,
        n_jobs: int | None = None,
        title: str = "indexing validation rows",
        verbose: bool = False,
    ) -> LeafIndex:
        """Return an index of the rows X, or of some of them."""
        n_rows = _num_samples(X) if rows is None else len(rows)
        with Progress(title, n_rows, enabled=verbose) as progress:
            size = chunk_size(self.n_model_trees)
            chunks = _leaf_chunks(self.reader, X, size, self.trees, rows, progress, n_jobs)
            return LeafIndex.from_chunks((leaves for _, leaves in chunks), n_rows)

    def leaf_chunks(
        self,
        X: Any,
        k: int = 0,
        *,
        n_jobs: int | None = None,
        predictions: NDArray[np.float64] | None = None,
        title: str = "reading leaves",
        verbose: bool = False,
    ) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield for one chunk of rows after another: where it is in X, and its leaves in the trees that count.

        Chunks are small enough for k neighbours of each row. An array `predictions` of shape (n_rows,) is filled with
        the model's predictions meanwhile, those of a chunk before it is yielded.
        """
        if predictions is not None and not self.reader.predicts_by_walk:
            predictions[:], predictions = self.reader.predict(X), None
        size = chunk_size(self.n_model_trees + 4 * k)  # a neighbour is a row number, an affinity, a target and more
        if not verbose:  # a single row should not pay for what nobody sees
            yield from _leaf_chunks(self.reader, X, size, self.trees, None, None, n_jobs, predictions)
            return
        with Progress(title, _num_samples(X), enabled=True) as progress:
            yield from _leaf_chunks(self.reader, X, size, self.trees, None, progress, n_jobs, predictions)


class AffinitySearch(LeafSource):
    """The nearest training rows of any row that the model can predict.

    Parameters
    ----------
    reader, n_model_trees, trees
        As in LeafSource.
    index
        The index of the training rows' leaves.
    rows : ndarray of shape (n_index_rows,) or None
        The training rows that the index has, ascending; ``None`` for all.
    """

    def __init__(
        self,
        reader: LeafReader,
        index: LeafIndex,
        n_model_trees: int,
        trees: NDArray[np.intp] | None,
        rows: NDArray[np.intp] | None,
    ) -> None:
        super().__init__(reader, n_model_trees, trees)
        self.index = index
        self.rows = rows

    @classmethod
    def build(
        cls,
        reader: LeafReader,
        X: Any,
        *,
        tree_fraction: float = 1.0,
        tree_order: str = "first",
        row_fraction: float = 1.0,
        random_state: np.random.RandomState,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> AffinitySearch:
        """Index the training rows X, or a sample of them, by all of the model's trees, or a sample of them."""
        with Progress("checking the tree walk", 1, enabled=verbose) as progress:
            reader.prepare(X)
            progress.say(reader.how)
        n_trees = reader.read_leaves(_safe_indexing(X, slice(0, 1))).shape[1]
        trees = sample_trees(n_trees, tree_fraction, tree_order, random_state)
        rows = sample_rows(_num_samples(X), row_fraction, random_state)
        source = LeafSource(reader, n_trees, trees)
        index = source.index_of(X, rows, n_jobs=n_jobs, title="indexing training rows", verbose=verbose)
        return cls(reader, index, n_trees, trees, rows)

    def chunks(
        self,
        X: Any,
        k: int,
        *,
        n_jobs: int | None,
        predictions: NDArray[np.float64] | None = None,
        verbose: bool = False,
    ) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.int64]]]:
        """Yield for one chunk of rows after another: where it is in X, the affinities and the training rows.

        Both are of shape (n_chunk_rows, k); row numbers are those of the X that was indexed. An array `predictions` of
        shape (n_rows,) is filled with the model's predictions meanwhile, those of a chunk before it is yielded.
        """
        leaf_chunks = self.leaf_chunks(
            X, k, n_jobs=n_jobs, predictions=predictions, title="finding neighbours", verbose=verbose
        )
        for where, leaves in leaf_chunks:
            yield where, *self.query(leaves, k, n_jobs=n_jobs)

    def query(
        self, leaves: NDArray[np.int32], k: int, *, n_jobs: int | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return affinities and training rows, both (n_rows, k), for rows' leaves in the trees of the index."""
        affinities, rows = self.index.query(leaves, k, n_jobs=n_jobs)
        return affinities, rows if self.rows is None else self.rows[rows]


def chunk_size(numbers_per_row: int) -> int:
    """Return how many rows are to be worked on at a time."""
    return max(1, _NUMBERS_PER_CHUNK // numbers_per_row)


def _leaf_chunks(
    reader: LeafReader,
    X: Any,
    size: int,
    trees: NDArray[np.intp] | None,
    rows: NDArray[np.intp] | None,
    progress: Progress | None,
    n_jobs: int | None = None,
    predictions: NDArray[np.float64] | None = None,
) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    n_rows = _num_samples(X) if rows is None else len(rows)
    for start in range(0, n_rows, size):
        where = slice(start, min(start + size, n_rows))
        whole = rows is None and n_rows <= size
        chunk = X if whole else _safe_indexing(X, where if rows is None else rows[where])
        if predictions is None:
            leaves = reader.read_leaves(chunk, n_jobs=n_jobs, trees=trees)
        else:  # which takes the leaf values of all trees
            leaves, predictions[where] = reader.read(chunk, n_jobs=n_jobs)
            leaves = leaves if trees is None else leaves[:, trees]
        yield where, leaves
        if progress is not None:
            progress.advance(where.stop - where.start)


def check_sampling(tree_fraction: float, tree_order: str, row_fraction: float) -> None:
    """Raise InvalidInputError for options that `build` would refuse."""
    if tree_order not in TREE_ORDERS:
        raise InvalidInputError(f"tree_order must be one of {TREE_ORDERS}; got {tree_order!r}.")
    sample_size(1, tree_fraction, "tree_fraction")
    sample_size(1, row_fraction, "row_fraction")


def sample_trees(
    n_trees: int, fraction: float, order: str, random_state: np.random.RandomState
) -> NDArray[np.intp] | None:
    """Return the τ trees to use, ascending (paper, section 4.1), or None for all."""
    size = sample_size(n_trees, fraction, "tree_fraction")
    if size == n_trees:
        return None
    if order == "random":
        return np.sort(random_state.choice(n_trees, size, replace=False))
    return np.arange(size) if order == "first" else np.arange(n_trees - size, n_trees)


def sample_rows(n_rows: int, fraction: float, random_state: np.random.RandomState) -> NDArray[np.intp] | None:
    """Return the rows that can be neighbours, ascending, or None for all."""
    size = sample_size(n_rows, fraction, "row_fraction")
    return None if size == n_rows else np.sort(random_state.choice(n_rows, size, replace=False))


def sample_size(n: int, fraction: float, name: str) -> int:
    """Return how many of n trees or rows a fraction is, at least one."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float, np.number)) or not 0 < fraction <= 1:
        raise InvalidInputError(f"{name} must be a number above 0 and up to 1; got {fraction!r}.")
    return max(1, round(float(fraction) * n))
