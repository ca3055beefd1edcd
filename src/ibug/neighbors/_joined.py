"""Several indexes that act as one, on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug.exceptions import InvalidInputError, NotStorableError
from ibug.neighbors._index import LeafIndex
from ibug.neighbors._order import merge_top_k


class JoinedIndex:
    """The indexes of several shards, with the methods of one ``LeafIndex`` of all their rows, in their order.

    Parameters
    ----------
    parts : sequence of LeafIndex
        The indexes.
    """

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

    def query(
        self, leaves: ArrayLike, k: int, *, n_jobs: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Find the k training rows of highest affinity for each query; see ``LeafIndex.query``."""
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= self.n_rows:
            raise InvalidInputError(f"k must be an integer from 1 to the number of training rows, {self.n_rows}.")
        found = []
        for part, start in zip(self._parts, self._starts, strict=False):
            affinities, rows = part.query(leaves, min(int(k), part.n_rows), n_jobs=n_jobs)
            found.append((affinities, rows + start))
        return merge_top_k(found, int(k))

    def leaf_sizes(self, leaves: ArrayLike) -> NDArray[np.int64]:
        """Count the training rows in each query's leaves, (n_queries, n_trees)."""
        sizes: NDArray[np.int64] = np.add.reduce([part.leaf_sizes(leaves) for part in self._parts])
        return sizes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raise NotStorableError: the shards are saved already, as a folder."""
        raise NotStorableError("This regressor was loaded from a folder of shards: copy the folder to save it again.")
