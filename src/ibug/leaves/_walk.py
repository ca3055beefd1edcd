"""The compiled walk: trees of all libraries in one form, and a reader that checks the walk against the library."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._compiled import walk as kernel
from ibug._parallel import n_threads_of, run_parallel
from ibug.leaves._matrix import sample_rows
from ibug.leaves._reader import LeafReader

#: A node of a tree: the struct ``Node`` of cpp/walk/forest.hpp. A split sends rows with feature <= threshold to its
#: left child, a number within the tree; a leaf has the left child -1, a value, and its number in the library.
NODE = np.dtype(
    [
        ("threshold", np.float64),
        ("value", np.float64),
        ("feature", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("categories", np.int32),
        ("number", np.int32),
        ("missing", np.uint8),
        ("default_left", np.uint8),
        ("padding", np.uint16),  # named, for NumPy drops unnamed bytes when it joins arrays
    ]
)

# What a split does with missing values.
NAN_AS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2


class NotWalkableError(Exception):
    """The walk does not know this kind of model; the library's own functions are used. The message says why."""


@dataclass(frozen=True)
class Trees:
    """A model's trees."""

    first: NDArray[np.int64]  # (n_trees + 1,), where each tree's nodes begin; the first of them is its root
    nodes: NDArray[Any]  # (n_nodes,) of NODE, children after their parent; in an oblivious model a split for each level
    reading: dict[str, Any]  # how the library reads a row; see `Reading` in cpp/walk/forest.hpp
    categories: Sequence[NDArray[np.int32]] = field(default=())  # the sets of categories that splits refer to
    # By feature, how many categories the model knows, numbered from 0, where some of them may be in no set.
    n_categories: dict[int, int] = field(default_factory=dict)
    leaf_values: NDArray[np.float64] | None = None  # of an oblivious model's leaves, tree after tree

    @classmethod
    def of(cls, nodes: Sequence[NDArray[Any]], reading: dict[str, Any], *categories: Any) -> Trees:
        """Join the nodes of each tree."""
        return cls(offsets([len(part) for part in nodes]), np.concatenate(nodes), reading, *categories)

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return int(self.reading["n_features"])


def new_nodes(n: int) -> NDArray[Any]:
    """Return n leaves of value 0, to be filled in."""
    nodes = np.zeros(n, NODE)
    nodes["left"] = nodes["right"] = nodes["categories"] = -1
    return nodes


def offsets(counts: Sequence[int] | NDArray[np.intp]) -> NDArray[np.int64]:
    """Return where each part begins, and at the end where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def members_of(bitset: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return the numbers of the bits that are set: the categories of a set."""
    bits = np.unpackbits(np.ascontiguousarray(bitset, "<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int32)


# A thread is worth starting only for about a millisecond of work: this number of leaf numbers.
_LEAVES_PER_TASK = 2**20


class TreeWalk:
    """A model's trees, compiled."""

    def __init__(self, trees: Trees) -> None:
        self.n_features = trees.n_features
        self._forest = _compile(trees)
        self.n_trees = self._forest.n_trees

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

        def walk(start: int, stop: int) -> bool:
            return self._forest.walk(rows, start, stop, leaves, sums, instruction_set, trees)

        edges = [n_rows * i // n_tasks for i in range(n_tasks + 1)]
        done = run_parallel([partial(walk, start, stop) for start, stop in pairwise(edges)])
        return (leaves, sums) if all(done) else None


def _compile(trees: Trees) -> kernel.Forest:
    reading = kernel.Reading()
    for name, value in trees.reading.items():
        setattr(reading, name, value)
    nodes = trees.nodes.view(np.uint8).reshape(len(trees.nodes), trees.nodes.dtype.itemsize)
    try:
        if trees.leaf_values is not None:
            return kernel.Forest.build_oblivious(trees.first, nodes, trees.leaf_values, reading)
        first_member = offsets([len(members) for members in trees.categories])
        members = np.concatenate([*trees.categories, np.empty(0, np.int32)]).astype(np.int32)
        n_categories = np.array([trees.n_categories.get(i, 0) for i in range(trees.n_features)], np.int32)
        return kernel.Forest.build(trees.first, nodes, first_member, members, n_categories, reading)
    except ValueError as error:
        raise NotWalkableError(str(error)) from error


_SPECIAL = (np.nan, np.nan, 0.0, -0.0, 1e-40, -1e-36, 1e30, -1e30, -0.5, -1.0, 1.5)
_INFINITE = (np.inf, -np.inf)
_SHARE_OF_SPECIAL = 0.15


def make_probes(trees: Trees, n_rows: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Make rows for a model's trees, of shape (n_rows, n_features).

    Each value is a threshold of its feature, the next number above or below it, a category, or special: missing, zero,
    nearly zero, huge, infinite where the library takes that, or fractional.
    """
    rng = np.random.default_rng(seed)
    return np.column_stack([_probes_of_feature(trees, feature, n_rows, rng) for feature in range(trees.n_features)])


def _probes_of_feature(trees: Trees, feature: int, n_rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    nodes, refuse_infinite = trees.nodes, trees.reading.get("refuse_infinite")
    own = nodes[((nodes["left"] >= 0) | (trees.leaf_values is not None)) & (nodes["feature"] == feature)]
    numeric = own["categories"] < 0
    special: tuple[float, ...] = _SPECIAL if refuse_infinite else _SPECIAL + _INFINITE
    values: NDArray[Any]
    if numeric.any():
        values = _around(own["threshold"][numeric], bool(trees.reading.get("single")), n_rows, rng)
        if refuse_infinite:
            values = np.where(np.isinf(values), 0.0, values)
    elif feature in trees.n_categories:  # others are missing values by the time that the trees see them
        values, special = rng.integers(0, trees.n_categories[feature], n_rows), (np.nan,)
    else:
        members = np.concatenate([*(trees.categories[i] for i in np.unique(own["categories"])), [0]])
        values = rng.choice(members, n_rows) + rng.choice([0, 0, 0, 0.5, 1, 7], n_rows)
    odd = rng.random(n_rows) < _SHARE_OF_SPECIAL
    return np.where(odd, rng.choice(special, n_rows), values).astype(np.float64)


def _around(
    thresholds: NDArray[np.float64], single: bool, n_rows: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw thresholds and their neighbours, (n_rows,)."""
    precision = np.float32 if single else np.float64
    drawn = rng.choice(thresholds, n_rows).astype(precision)
    away = rng.choice(np.array(_INFINITE, precision), n_rows)
    with np.errstate(over="ignore"):  # beyond the largest number is an infinite one
        return np.where(rng.random(n_rows) < 0.5, drawn, np.nextafter(drawn, away)).astype(np.float64)


# The numbers of training rows and of made-up rows on which the walk must agree with the library.
CHECKED_ROWS, _PROBES = 512, 256
_TOLERANCE = 1e-9  # of predictions, relative

Link = Callable[[NDArray[np.float64]], NDArray[Any]]
Answers = tuple[NDArray[np.int32], NDArray[Any]]  # leaves (n_rows, n_trees), predictions (n_rows,)


class WalkingReader(LeafReader):
    """Reads with the compiled walk once :meth:`prepare` has found that it agrees with the library.

    A subclass says how the library's trees and rows are to be read. Whatever is unknown or does not agree is left to
    the library's own functions; `how` says which is used, and why.
    """

    library = ""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.how = f"{self.library}'s own functions"
        self._walk: TreeWalk | None = None
        self._link: Link | None = None

    @abstractmethod
    def _trees(self) -> tuple[Trees, Link | None]:
        """Return the trees that `predict` uses, and what makes predictions of the sums of leaf values.

        Raises NotWalkableError for models of which the walk does not know enough; the link is ``None`` where the sum
        of leaf values is not enough for the prediction.
        """

    @abstractmethod
    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return the rows as the library reads them, contiguous, or None where only the library can read them."""

    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        """Return the library's own leaves and predictions for rows that come as a plain matrix."""
        return self.library_leaves(matrix), self.predict(matrix)

    def __getstate__(self) -> dict[str, Any]:
        # The trees are read from the model again, so that a pickle holds them once.
        return {**self.__dict__, "_walk": self._walk is not None, "_link": self._link is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        checked = {"walk": state.pop("_walk"), "link": state.pop("_link"), "how": state["how"]}
        self.__dict__.update(state, _walk=None, _link=None)
        WalkingReader.restore(self, checked)

    def state(self) -> dict[str, Any]:
        """Return whether it walks, and whether predictions come from the walk."""
        return {"walk": self._walk is not None, "link": self._link is not None, "how": self.how}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Compile and check the walk again, if the training rows have not shown that the library is to be asked."""
        if not state["walk"]:
            self.how = str(state["how"])
            return
        self.prepare()
        if self._walk is not None and not state["link"]:
            self._link, self.how = None, str(state["how"])

    def prepare(self, X: Any = None) -> None:
        """Compile the trees, and check the walk on some of the rows X, if any, and on rows made to find faults."""
        self._walk = self._link = None
        try:
            trees, self._link = self._trees()
            walk = TreeWalk(trees)
            self._check(walk, X, make_probes(trees, _PROBES))
        except NotWalkableError as reason:
            self._leave_to_library(str(reason))
        except Exception as error:
            # A file format, a private attribute or an answer that has changed in a version of the library that is yet
            # unknown: whatever the error is, the library's own functions still work.
            self._leave_to_library(f"its trees cannot be read ({type(error).__name__}: {error})")
        else:
            self._walk = walk
            by_sum = "" if self._link is not None else f" for leaf numbers; predictions by {self.library}"
            self.how = f"compiled walk{by_sum}"

    def _leave_to_library(self, reason: str) -> None:
        self._link = None
        self.how = f"{self.library}'s own functions: {reason}"

    @property
    def predicts_by_walk(self) -> bool:
        return self._link is not None

    def read(self, X: Any, *, n_jobs: int | None = None) -> Answers:
        walked = self._walked(X, n_jobs)
        if walked is None:
            return super().read(X)
        leaves, sums = walked
        return leaves, self.predict(X) if self._link is None else self._link(sums)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        walked = self._walked(X, n_jobs, trees)
        return super().read_leaves(X, trees=trees) if walked is None else walked[0]

    def _walked(
        self, X: Any, n_jobs: int | None, trees: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
        if self._walk is None:
            return None
        matrix = self._matrix(X)
        if matrix is None or matrix.shape[1] != self._walk.n_features:
            return None
        return self._walk(matrix, n_jobs=n_jobs, trees=None if trees is None else trees.astype(np.int32))

    def _check(self, walk: TreeWalk, X: Any, made_up: NDArray[np.float64]) -> None:
        """Compare with the library on training rows and on probes; forget the link where predictions differ."""
        if X is not None:
            sample = sample_rows(X, CHECKED_ROWS)
            matrix = self._matrix(sample)
            if matrix is None:  # rows that come in another form later could not be trusted
                raise NotWalkableError("the training rows are no array or pandas frame of numbers that ibug can read")
            self._compare(walk, matrix, (self.library_leaves(sample), self.predict(sample)), "training rows")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that the probes have not
            answers = self._ask_library(made_up)
        self._compare(walk, made_up, answers, "made-up rows")

    def _compare(self, walk: TreeWalk, matrix: NDArray[Any], answers: Answers, rows: str) -> None:
        walked = walk(matrix)
        if walked is None:
            return  # as the library refuses such rows
        leaves, predictions = answers
        if not np.array_equal(walked[0], leaves):
            raise NotWalkableError(f"the walk finds other leaves on {rows}")
        if self._link is not None and not np.allclose(
            self._link(walked[1]), predictions, rtol=_TOLERANCE, atol=0, equal_nan=True
        ):
            self._link = None
