"""What benchmarks ask of the compiled kernel: its instruction sets, where sharing begins, and the peak of its loop."""

from __future__ import annotations

import numpy as np

from ibug._compiled import search as kernel
from ibug.exceptions import InvalidInputError
from ibug.neighbors._index import LeafIndex


def instruction_sets() -> list[str]:
    """Return the instruction sets that the kernel can use on this machine, best last."""
    return kernel.instruction_sets()


def least_queries(instruction_set: str | None = None) -> int:
    """Return the number of queries from which on a full scan of one-byte codes shares bitmaps of their leaves."""
    return kernel.least_queries(instruction_set or "")


class CountingLoop:
    """The innermost loop of a full scan on codes that fit the first-level cache: the peak of comparing code by code.

    Calling it compares the first 64 rows of the index with some of its rows, as queries, `passes` times.

    Parameters
    ----------
    index
        Where the codes come from. The speed depends on their width, not on their values.
    passes
        How often the loop runs in one call.
    n_queries
        Queries at a time.
    n_trees
        The first trees of the index, at most 252: more do not fit the cache. Fewer where the index has fewer.
    instruction_set
        A name from :func:`instruction_sets`; ``None`` is the best of the machine.

    Attributes
    ----------
    comparisons : int
        The comparisons of leaf codes in one call.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.neighbors import CountingLoop, LeafIndex
    >>> loop = CountingLoop(LeafIndex.build(np.zeros((64, 8), int)), passes=10, n_queries=2)
    >>> loop.comparisons
    10240
    >>> loop()
    80
    """

    def __init__(
        self,
        index: LeafIndex,
        *,
        passes: int,
        n_queries: int = 8,
        n_trees: int = 252,
        instruction_set: str | None = None,
    ) -> None:
        if not 1 <= n_queries <= index.n_rows or passes < 1 or n_trees < 1:
            raise InvalidInputError(
                f"A counting loop needs passes and trees, and from 1 to {index.n_rows} queries; "
                f"got passes={passes}, n_trees={n_trees}, n_queries={n_queries}."
            )
        tiles = index.arrays()["tiles"]
        width = min(-(-n_trees // kernel.TREE_STEP) * kernel.TREE_STEP, tiles.shape[1], kernel.TREE_BLOCK)
        places = np.arange(n_queries)
        self._tiles = np.ascontiguousarray(tiles[: kernel.QUAD_TILES, :width])
        self._codes = np.ascontiguousarray(tiles[places // kernel.TILE_ROWS, :width, places % kernel.TILE_ROWS])
        self._passes, self._instruction_set = passes, instruction_set or ""
        self.comparisons = passes * self._tiles.size * n_queries

    def __call__(self) -> int:
        """Run the loop; return a checksum of the counts."""
        return kernel.count_repeatedly(self._tiles, self._codes, self._passes, self._instruction_set)
