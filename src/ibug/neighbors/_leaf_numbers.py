"""From rows to leaf numbers and predictions, in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._progress import Progress
from ibug.leaves import LeafReader
from ibug.neighbors._index import LeafIndex
from ibug.neighbors._sampling import Sampling

# A chunk of rows has about this many leaf numbers and neighbours. With what the libraries and NumPy need beside them,
# memory stays near 100 MB, whatever the number of rows.
_NUMBERS_PER_CHUNK = 2**22


class LeafChunk(NamedTuple):
    """The leaves of some rows."""

    where: slice  # which rows these are
    leaves: NDArray[np.int32]  # (n_rows, n_trees), in the trees that count
    mean: NDArray[Any] | None  # (n_rows,) the model's predictions, where asked for


@dataclass(frozen=True, eq=False)
class LeafNumbers:
    """The leaves of any row that the model can predict, in the trees that count for affinities."""

    reader: LeafReader  # of the fitted model
    n_model_trees: int  # the number of trees that it reads
    trees: NDArray[np.intp] | None = None  # (n_index_trees,) those that count, ascending; None for all

    @classmethod
    def of(
        cls, reader: LeafReader, X: Any, sampling: Sampling, rng: np.random.RandomState, *, verbose: bool = False
    ) -> LeafNumbers:
        """Check the reader's tree walk on the training rows X, and choose the trees that count."""
        with Progress("checking the tree walk", 1, enabled=verbose) as progress:
            reader.prepare(X)
            progress.say(reader.how)
        n_trees = reader.read_leaves(_safe_indexing(X, slice(0, 1))).shape[1]
        return cls(reader, n_trees, _sampled(reader, n_trees, sampling, rng))

    @property
    def n_trees(self) -> int:
        """The number of trees that count: the affinity of twins."""
        return self.n_model_trees if self.trees is None else len(self.trees)

    @cached_property
    def columns_of_outputs(self) -> list[NDArray[np.intp]]:
        """The columns of the trees that are for each output; none where trees are for all, or an output has none."""
        outputs = self.reader.outputs
        if outputs is None:
            return []
        used = outputs if self.trees is None else outputs[self.trees]
        columns = [np.flatnonzero(used == output) for output in range(self.reader.n_outputs)]
        return columns if all(len(some) for some in columns) else []

    def of_outputs(self) -> list[LeafNumbers]:
        """Return for each output the leaves in its own trees; none where trees are for all outputs."""
        trees = np.arange(self.n_model_trees) if self.trees is None else self.trees
        return [LeafNumbers(self.reader, self.n_model_trees, trees[some]) for some in self.columns_of_outputs]

    def index_of(
        self,
        X: Any,
        rows: NDArray[np.intp] | None = None,
        *,
        n_jobs: int | None = None,
        title: str = "indexing validation rows",
        verbose: bool = False,
    ) -> LeafIndex:
        """Return an index of the rows X, or of some of them. Shapes: rows (n_index_rows,)."""
        n_rows = _num_samples(X) if rows is None else len(rows)
        size = chunk_size(self.n_model_trees)
        with Progress(title, n_rows, enabled=verbose) as progress:

            def chunks() -> Iterator[NDArray[np.int32]]:
                for where in _slices(n_rows, size):
                    chosen = where if rows is None else rows[where]
                    chunk = X if rows is None and n_rows <= size else _safe_indexing(X, chosen)
                    yield self.reader.read_leaves(chunk, n_jobs=n_jobs, trees=self.trees)
                    progress.advance(where.stop - where.start)

            return LeafIndex.from_chunks(chunks(), n_rows)

    def chunks(
        self,
        X: Any,
        k: int = 0,
        *,
        predict: bool = False,
        n_jobs: int | None = None,
        title: str = "reading leaves",
        verbose: bool = False,
    ) -> Iterator[LeafChunk]:
        """Yield the leaves of one chunk of rows after another."""
        size = chunk_size(self.n_model_trees + 4 * k)  # a neighbour is a row number, an affinity, a target and more
        if not verbose:  # a single row does not pay for a display that nobody sees
            yield from self._chunks(X, size, predict, n_jobs)
            return
        with Progress(title, _num_samples(X), enabled=True) as progress:
            for chunk in self._chunks(X, size, predict, n_jobs):
                yield chunk
                progress.advance(chunk.where.stop - chunk.where.start)

    def _chunks(self, X: Any, size: int, predict: bool, n_jobs: int | None) -> Iterator[LeafChunk]:
        n_rows = len(X) if type(X) is np.ndarray else _num_samples(X)
        predictions = self.reader.predict(X) if predict and not self.reader.predicts_by_walk else None
        for where in _slices(n_rows, size):
            chunk = X if n_rows <= size else _safe_indexing(X, where)
            if predict and predictions is None:
                leaves, mean = self.reader.read(chunk, n_jobs=n_jobs)  # which takes the leaf values of all trees
                yield LeafChunk(where, leaves if self.trees is None else leaves[:, self.trees], mean)
            else:
                leaves = self.reader.read_leaves(chunk, n_jobs=n_jobs, trees=self.trees)
                yield LeafChunk(where, leaves, None if predictions is None else predictions[where])


def _sampled(
    reader: LeafReader, n_trees: int, sampling: Sampling, rng: np.random.RandomState
) -> NDArray[np.intp] | None:
    """Return the trees to read, ascending, or None for all: the same share of each output's, where these are apart."""
    outputs = reader.outputs
    if outputs is None:
        return sampling.trees(n_trees, rng)
    parts = []
    for output in range(reader.n_outputs):
        own = np.flatnonzero(outputs == output)
        some = sampling.trees(len(own), rng)
        parts.append(own if some is None else own[some])
    trees = np.sort(np.concatenate(parts))
    return None if len(trees) == n_trees else trees


def chunk_size(numbers_per_row: int) -> int:
    """Return the number of rows to work on at a time."""
    return max(1, _NUMBERS_PER_CHUNK // numbers_per_row)


def _slices(n_rows: int, size: int) -> Iterator[slice]:
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
