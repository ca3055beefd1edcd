"""Names of columns that a library refuses: the model is trained and asked with others, and users see their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._inputs import require
from ibug.leaves._base import LeafReader, read_leaves_of, reader_type
from ibug.leaves._delegating import DelegatingReader
from ibug.leaves._matrix import is_pandas
from ibug.leaves._repeated import RepeatedReader


def names_taken(model: Any, names: Sequence[str]) -> list[str] | None:
    """Return names that the model's library takes in place of these; None where it takes these as they are.

    A Pipeline gets its columns under their own names, which its steps may ask for.
    """
    reader = reader_type(model)
    while hasattr(reader, "wrapped"):
        if len(getattr(model, "steps", ())) > 1 or getattr(reader, "drops_names", False):
            return None
        model = reader.wrapped(model)
        reader = reader_type(model)
    spelled = [reader.spelled(str(name)) for name in names]
    if len(set(spelled)) == len(spelled) and not any(reader.refuses(str(name)) for name in names):
        return None
    taken: list[str] = []
    for name in spelled:
        other, n = name, 1
        while other in taken or (n > 1 and other in spelled):
            n += 1
            other = f"{name}_{n}"
        taken.append(other)
    return taken


def renamed(X: Any, names: Sequence[str]) -> Any:
    """Return a data frame with other names of its columns, its values shared; arrays as they are."""
    if X.shape[1] != len(names):
        return X  # for the model to refuse
    if is_pandas(X):
        return X.set_axis(list(names), axis=1)
    if hasattr(X, "rename") and hasattr(X, "columns"):  # polars
        return X.rename(dict(zip(X.columns, names, strict=True)))
    return X


def renamed_parameters(parameters: Mapping[str, Any], names: Sequence[str], taken: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a model's `fit` with other names of columns: in data frames, and in lists of names."""
    by_name = dict(zip(map(str, names), taken, strict=True))

    def other(value: Any) -> Any:
        if hasattr(value, "columns") and [str(name) for name in value.columns] == list(by_name):
            return renamed(value, taken)
        if isinstance(value, (list, tuple)):
            return type(value)(by_name.get(item, item) if isinstance(item, str) else other(item) for item in value)
        return value

    return {key: other(value) for key, value in parameters.items()}


class RenamingReader(DelegatingReader):
    """Reads a model that knows its columns by other names than the user's.

    Parameters
    ----------
    inner : LeafReader
        The model's own reader.
    names : sequence of str
        The columns' names as the model knows them.
    """

    def __init__(self, inner: LeafReader, names: Sequence[str]) -> None:
        super().__init__(inner)
        self.names = list(names)

    @classmethod
    def from_state(cls, model: Any, state: Mapping[str, Any]) -> LeafReader:
        """Return the reader of a model, which was one of this class if its state has names."""
        if "repeats" in state:
            return RepeatedReader.from_state(cls.from_state(model, state["inner"]), state["repeats"])
        inner, names = read_leaves_of(model), state.get("names")
        if names is None:
            return inner
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(known and len(set(names)) == len(names), "the names of its model's columns are impossible")
        require(inner.n_features in (None, len(names)), "the names of its model's columns are too many or too few")
        return cls(inner, names)

    def prepare(self, X: Any = None) -> None:
        """Prepare the inner reader."""
        self.inner.prepare(None if X is None else renamed(X, self.names))

    def read(self, X: Any, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return leaf numbers and predictions, the fastest way."""
        return self.inner.read(renamed(X, self.names), n_jobs=n_jobs)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        """Return leaf numbers, the fastest way."""
        return self.inner.read_leaves(renamed(X, self.names), n_jobs=n_jobs, trees=trees)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own predictions, (n_rows,)."""
        return self.inner.predict(renamed(X, self.names))

    def leaves(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf numbers by the library."""
        return self.inner.leaves(renamed(X, self.names))

    def state(self) -> dict[str, Any]:
        """Return the names, and what the inner reader has found."""
        return {"names": self.names, "inner": self.inner.state()}

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self.inner.n_trees

    @property
    def outputs(self) -> NDArray[np.intp] | None:
        """The output of each tree."""
        return self.inner.outputs
