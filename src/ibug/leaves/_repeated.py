"""Trees that count several times: weights of the outputs in the affinity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._inputs import require
from ibug.exceptions import InvalidInputError
from ibug.leaves._base import LeafReader
from ibug.leaves._delegating import DelegatingReader


def weighted_outputs(reader: LeafReader, weights: Sequence[int] | None) -> LeafReader:
    """Return a reader in which the trees of each output count as often as its weight tells; as it is for None."""
    if weights is None:
        return reader
    outputs = reader.outputs
    if outputs is None:
        raise InvalidInputError(
            f"output_weights weigh the trees of each target, and those of this {type(reader.model).__name__} are for "
            "all targets at once, or there is one target: leave output_weights out."
        )
    if len(weights) != reader.n_outputs:
        raise InvalidInputError(
            f"output_weights must be {reader.n_outputs} numbers, one for each target; got {list(weights)}."
        )
    return RepeatedReader(reader, np.asarray(weights, np.int64)[outputs].tolist())


class RepeatedReader(DelegatingReader):
    """Reads a model in which some trees count several times: their leaves are that many columns.

    Parameters
    ----------
    inner : LeafReader
        The model's own reader.
    repeats : sequence of int
        How often each tree counts, at least once.
    """

    def __init__(self, inner: LeafReader, repeats: Sequence[int]) -> None:
        super().__init__(inner)
        self.repeats = list(repeats)
        self._columns = np.repeat(np.arange(len(self.repeats)), self.repeats)

    @classmethod
    def from_state(cls, inner: LeafReader, repeats: Any) -> RepeatedReader:
        """Return the reader of a file, after checking that it may be."""
        known = isinstance(repeats, list) and all(type(one) is int and 1 <= one <= 100 for one in repeats)
        require(known and len(repeats) == inner.n_trees, "the weights of its trees are impossible")
        return cls(inner, repeats)

    def prepare(self, X: Any = None) -> None:
        """Prepare the inner reader."""
        self.inner.prepare(X)

    def read(self, X: Any, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return leaf numbers and predictions, the fastest way."""
        leaves, predictions = self.inner.read(X, n_jobs=n_jobs)
        return leaves[:, self._columns], predictions

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return leaf numbers, each tree as often as it counts."""
        columns = self._columns if trees is None else self._columns[trees]
        used, places = np.unique(columns, return_inverse=True)
        return self.inner.read_leaves(X, n_jobs=n_jobs, trees=used)[:, places]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own predictions."""
        return self.inner.predict(X)

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers by the library."""
        return self.inner.leaves(X)[:, self._columns]

    def state(self) -> dict[str, Any]:
        """Return how often trees count, and what the inner reader has found."""
        return {"repeats": self.repeats, "inner": self.inner.state()}

    @property
    def n_trees(self) -> int:
        """The number of trees, each as often as it counts."""
        return len(self._columns)

    @property
    def outputs(self) -> NDArray[np.intp] | None:
        """The output of each tree."""
        outputs = self.inner.outputs
        return None if outputs is None else outputs[self._columns]
