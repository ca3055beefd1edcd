"""The compiled walk over a model's trees: leaf numbers and the sum of the leaves' values in one pass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ibug.leaves import _walk
from ibug.leaves._trees import NotWalkableError, Trees, offsets

# A thread is worth starting only for about a millisecond of work: so many leaf numbers.
_LEAVES_PER_TASK = 2**20


class TreeWalk:
    """A model's trees, compiled.

    Parameters
    ----------
    trees
        The trees in the common form.

    Raises
    ------
    NotWalkableError
        Where they have more thresholds, leaves or categories than the walk has room for.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._forest = _compile(trees)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self._forest.n_trees

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return self._trees.n_features

    def __call__(
        self, rows: NDArray[Any], *, n_jobs: int | None = None, instruction_set: str = ""
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
        """Walk rows down the trees.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (n_rows, n_features)
            As the library would read them, contiguous.
        n_jobs
            Threads, in joblib's convention.
        instruction_set
            The best of the machine if empty.

        Returns
        -------
        leaves : ndarray of int32, shape (n_rows, n_trees)
            The leaf numbers, as the library numbers them.
        sums : ndarray of shape (n_rows,)
            The sums of the leaves' values, added as the library adds them.

        None is returned where the library would not take the rows.
        """
        n_rows = len(rows)
        leaves = np.empty((n_rows, self.n_trees), np.int32)
        sums = np.empty(n_rows)
        n_tasks = min(effective_n_jobs(n_jobs), leaves.size // _LEAVES_PER_TASK) if n_jobs not in (None, 1) else 1
        if n_tasks <= 1:
            done = self._forest.walk(rows, 0, n_rows, leaves, sums, instruction_set)
        else:
            edges = [n_rows * i // n_tasks for i in range(n_tasks + 1)]
            done = all(
                Parallel(n_jobs=n_jobs, require="sharedmem")(
                    delayed(self._forest.walk)(rows, start, stop, leaves, sums, instruction_set)
                    for start, stop in pairwise(edges)
                )
            )
        return (leaves, sums) if done else None

    def probes(self, n_rows: int, *, seed: int = 0) -> NDArray[np.float64]:
        """Make rows on which a wrong comparison shows: thresholds themselves, their neighbours, special values.

        Parameters
        ----------
        n_rows
            How many.
        seed
            Of the random choice.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        rng = np.random.default_rng(seed)
        return np.column_stack([self._probe_feature(rng, n_rows, feature) for feature in range(self.n_features)])

    def _probe_feature(self, rng: np.random.Generator, n_rows: int, feature: int) -> NDArray[np.float64]:
        trees = self._trees
        nodes, refuse_infinite = trees.nodes, trees.reading.get("refuse_infinite")
        own = nodes[((nodes["left"] >= 0) | (trees.leaf_values is not None)) & (nodes["feature"] == feature)]
        numeric = own["categories"] < 0
        special = [np.nan, np.nan, 0.0, -0.0, 1e-40, -1e-36, 1e30, -1e30, -0.5, -1.0, 1.5]
        special += [] if refuse_infinite else [np.inf, -np.inf]
        if numeric.any():
            precision = np.float32 if trees.reading.get("single") else np.float64
            drawn = rng.choice(own["threshold"][numeric], n_rows).astype(precision)
            away = rng.choice(np.array([-np.inf, np.inf], precision), n_rows)
            with np.errstate(over="ignore"):  # beyond the largest number is an infinite one
                values = np.where(rng.random(n_rows) < 0.5, drawn, np.nextafter(drawn, away))
            if refuse_infinite:
                values = np.where(np.isinf(values), 0, values)
        elif feature in trees.n_categories:  # others are missing values by the time that the trees see them
            values, special = rng.integers(0, trees.n_categories[feature], n_rows), [np.nan]
        else:
            members = np.concatenate([*(trees.categories[i] for i in np.unique(own["categories"])), [0]])
            values = rng.choice(members, n_rows) + rng.choice([0, 0, 0, 0.5, 1, 7], n_rows)
        return np.where(rng.random(n_rows) < 0.15, rng.choice(special, n_rows), values).astype(np.float64)


def _compile(trees: Trees) -> _walk.Forest:
    reading = _walk.Reading()
    for name, value in trees.reading.items():
        setattr(reading, name, value)
    nodes = trees.nodes.view(np.uint8).reshape(len(trees.nodes), trees.nodes.dtype.itemsize)
    try:
        if trees.leaf_values is not None:
            return _walk.Forest.build_oblivious(trees.first, nodes, trees.leaf_values, reading)
        first_member = offsets([len(members) for members in trees.categories])
        members = np.concatenate([*trees.categories, np.empty(0, np.int32)]).astype(np.int32)
        n_categories = np.array([trees.n_categories.get(i, 0) for i in range(trees.n_features)], np.int32)
        return _walk.Forest.build(trees.first, nodes, first_member, members, n_categories, reading)
    except ValueError as error:
        raise NotWalkableError(str(error)) from error
