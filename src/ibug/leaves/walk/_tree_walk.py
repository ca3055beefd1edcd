"""The compiled walk over a model's trees: leaf numbers and the sum of the leaves' values in one pass."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import walk
from ibug._threads import n_threads_of, run_parallel
from ibug.leaves.walk._trees import NotWalkableError, Trees, offsets

# A thread is worth starting only for about a millisecond of work: this number of leaf numbers.
_LEAVES_PER_TASK = 2**20


class TreeWalk:
    """A model's trees, compiled.

    Parameters
    ----------
    trees
        The trees in the common form.
    """

    def __init__(self, trees: Trees) -> None:
        self.n_features = trees.n_features
        self._forest = _compile(trees)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self._forest.n_trees

    def __call__(
        self,
        rows: NDArray[Any],
        *,
        n_jobs: int | None = None,
        instruction_set: str = "",
        trees: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
        """Walk rows down the trees.

        Shapes: rows (n_rows, n_features); trees (n_chosen,); leaves (n_rows, n_trees); sums (n_rows,).
        """
        n_rows = len(rows)
        leaves = np.empty((n_rows, self.n_trees if trees is None else len(trees)), np.int32)
        sums = np.empty(n_rows)
        n_tasks = n_threads_of(n_jobs, leaves.size // _LEAVES_PER_TASK)
        if n_tasks == 1:
            done = self._forest.walk(rows, 0, n_rows, leaves, sums, instruction_set, trees)
        else:
            edges = [n_rows * i // n_tasks for i in range(n_tasks + 1)]
            done = all(
                run_parallel(
                    [
                        partial(self._forest.walk, rows, start, stop, leaves, sums, instruction_set, trees)
                        for start, stop in pairwise(edges)
                    ]
                )
            )
        return (leaves, sums) if done else None


def _compile(trees: Trees) -> walk.Forest:
    reading = walk.Reading()
    for name, value in trees.reading.items():
        setattr(reading, name, value)
    nodes = trees.nodes.view(np.uint8).reshape(len(trees.nodes), trees.nodes.dtype.itemsize)
    try:
        if trees.leaf_values is not None:
            return walk.Forest.build_oblivious(trees.first, nodes, trees.leaf_values, reading)
        first_member = offsets([len(members) for members in trees.categories])
        members = np.concatenate([*trees.categories, np.empty(0, np.int32)]).astype(np.int32)
        n_categories = np.array([trees.n_categories.get(i, 0) for i in range(trees.n_features)], np.int32)
        return walk.Forest.build(trees.first, nodes, first_member, members, n_categories, reading)
    except ValueError as error:
        raise NotWalkableError(str(error)) from error
