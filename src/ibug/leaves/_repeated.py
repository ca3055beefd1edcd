"""Trees that count several times: weights of the outputs in the affinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._inputs import require
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.leaves._base import LeafReader
from ibug.leaves.recipe import Bagging, Boosting


def weighted_outputs(reader: LeafReader, weights: Sequence[int] | None) -> LeafReader:
    """Return a reader in which the trees of each output count as often as its weight tells; as it is for None.

    Parameters
    ----------
    reader : LeafReader
        The reader of a fitted model.
    weights : sequence of int, or None
        One for each output, of at least 1.
    """
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


class RepeatedReader(LeafReader):
    """Reads a model in which some trees count several times: their leaves are that many columns.

    Parameters
    ----------
    inner : LeafReader
        The model's own reader.
    repeats : sequence of int
        How often each tree counts, at least once.
    """

    def __init__(self, inner: LeafReader, repeats: Sequence[int]) -> None:
        super().__init__(inner.model)
        self.inner, self.repeats = inner, list(repeats)
        self._columns = np.repeat(np.arange(len(self.repeats)), self.repeats)

    @classmethod
    def recalled(cls, inner: LeafReader, repeats: Any) -> RepeatedReader:
        """Return the reader of a file, after checking that it may be.

        Parameters
        ----------
        inner : LeafReader
            The model's own reader.
        repeats : list of int
            How often each tree counts.
        """
        known = isinstance(repeats, list) and all(type(one) is int and 1 <= one <= 100 for one in repeats)
        require(known and len(repeats) == inner.n_trees, "the weights of its trees are impossible")
        return cls(inner, repeats)

    def prepare(self, X: Any = None) -> None:
        """Prepare the inner reader."""
        self.inner.prepare(X)

    @property
    def how(self) -> str:  # type: ignore[override]  # a constant of other readers
        """How the inner reader finds leaf numbers, in words."""
        return self.inner.how

    @property
    def predicts_by_walk(self) -> bool:
        """Whether the inner reader does."""
        return self.inner.predicts_by_walk

    @property
    def n_training_rows(self) -> int | None:
        """The number of rows that the wrapped model's first tree was trained on."""
        return self.inner.n_training_rows

    @property
    def changes_unit(self) -> bool:
        """Whether the inner reader does."""
        return self.inner.changes_unit

    @property
    def quantile(self) -> float | None:
        """The level of the quantile that the model was trained for."""
        return self.inner.quantile

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

    def findings(self) -> dict[str, Any]:
        """Return how often trees count, and what the inner reader has found."""
        return {"repeats": self.repeats, "inner": self.inner.findings()}

    def recall(self, findings: Mapping[str, Any]) -> None:
        """Get the inner reader ready."""
        self.inner.recall(findings["inner"])

    @property
    def n_trees(self) -> int:
        """The number of trees, each as often as it counts."""
        return len(self._columns)

    @property
    def n_outputs(self) -> int:
        """The number of targets."""
        return self.inner.n_outputs

    @property
    def outputs(self) -> NDArray[np.intp] | None:
        """The output of each tree."""
        outputs = self.inner.outputs
        return None if outputs is None else outputs[self._columns]

    def recipe_of(self, output: int, y: Floats, sample_weight: Floats | None) -> Boosting | Bagging:
        """Return how the model came to the leaf values of one output."""
        return self.inner.recipe_of(output, y, sample_weight)

    @property
    def n_features(self) -> int | None:
        """The number of columns."""
        return self.inner.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns."""
        return self.inner.feature_names

    def written_as(self, name: str) -> str:
        """Return a column's name as the library writes it."""
        return self.inner.written_as(name)
