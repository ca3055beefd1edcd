"""A reader that walks the trees itself, as far as its answers have been checked against the library's own."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.leaves._base import LeafReader
from ibug.leaves._matrix import some_rows
from ibug.leaves.walk._probes import probes
from ibug.leaves.walk._tree_walk import TreeWalk
from ibug.leaves.walk._trees import NotWalkableError, Trees

# The numbers of training rows and of made-up rows on which the walk must agree with the library.
CHECKED_ROWS, _PROBES = 512, 256
_TOLERANCE = 1e-9  # of predictions, relative

Link = Callable[[NDArray[np.float64]], NDArray[Any]]
Answers = tuple[NDArray[np.int32], NDArray[Any]]  # leaves (n_rows, n_trees), predictions (n_rows,)


class WalkingReader(LeafReader):
    """Reads with the compiled walk once :meth:`prepare` has found that it agrees with the library.

    A subclass says how the library's trees and rows are to be read. Whatever is unknown or does not agree is left to
    the library's own functions; `how` tells which is used, and why.
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
        of leaf values does not tell the prediction.
        """

    @abstractmethod
    def _matrix(self, X: Any) -> NDArray[Any] | None:
        """Return the rows as the library reads them, contiguous, or None where only the library can read them."""

    @abstractmethod
    def _ask_library(self, matrix: NDArray[np.float64]) -> Answers:
        """Return the library's own leaves and predictions for rows that come as a plain matrix."""

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
            self._check(walk, X, probes(trees, _PROBES))
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
        """Whether one walk gives leaves and predictions."""
        return self._link is not None

    def read(self, X: Any, *, n_jobs: int | None = None) -> Answers:
        """Return leaf numbers and predictions, in one pass where possible."""
        walked = self._walked(X, n_jobs)
        if walked is None:
            return super().read(X)
        leaves, sums = walked
        return leaves, self.predict(X) if self._link is None else self._link(sums)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return leaf numbers of shape (n_rows, n_trees), or of the given trees, which alone are walked."""
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
            sample = some_rows(X, CHECKED_ROWS)
            matrix = self._matrix(sample)
            if matrix is None:  # rows that come in another form later could not be trusted
                raise NotWalkableError("the training rows are no array or pandas frame of numbers that ibug can read")
            self._compare(walk, matrix, (self.leaves(sample), self.predict(sample)), "training rows")
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
