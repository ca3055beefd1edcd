"""Readers around other readers: models that wrap a model, columns of other names, trees that count several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._read_only import read_only
from ibug._typing import Floats
from ibug._validation import require
from ibug.exceptions import InvalidInputError
from ibug.leaves._matrix import is_pandas, sample_rows
from ibug.leaves._reader import (
    LeafReader,
    feature_names_of,
    n_features_of,
    reader_of,
    reader_type,
    require_fitted,
    unsupported,
)
from ibug.leaves._recipe import Bagging, Boosting, RecipeError
from ibug.leaves._walk import CHECKED_ROWS, Answers


def _of_inner(name: str) -> Any:
    """Return a property that is the inner reader's property or method of this name."""
    return property(lambda self: getattr(self.inner, name))


class DelegatingReader(LeafReader):
    """Reads through another reader, of the model with the trees: what a subclass does not change is the inner one's."""

    how = _of_inner("how")
    predicts_by_walk = _of_inner("predicts_by_walk")
    nonnegative_losses = _of_inner("nonnegative_losses")
    leaf_sizes = _of_inner("leaf_sizes")
    recipe = _of_inner("recipe")
    written_as = _of_inner("written_as")

    def __init__(self, model: Any, inner: LeafReader) -> None:
        super().__init__(model)
        self.inner = inner
        self.n_trees, self.n_outputs, self.outputs = inner.n_trees, inner.n_outputs, inner.outputs
        self.n_features, self.feature_names = inner.n_features, inner.feature_names
        self.changes_unit, self.quantile, self.expectile = inner.changes_unit, inner.quantile, inner.expectile

    def _inner_rows(self, X: Any) -> Any:
        """Return the rows as the inner reader's model sees them."""
        return X

    def prepare(self, X: Any = None) -> None:
        self.inner.prepare(None if X is None else self._inner_rows(X))

    def read(self, X: Any, *, n_jobs: int | None = None) -> Answers:
        return self.inner.read(self._inner_rows(X), n_jobs=n_jobs)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        return self.inner.read_leaves(self._inner_rows(X), n_jobs=n_jobs, trees=trees)

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        return self.inner.library_leaves(self._inner_rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        return self.inner.predict(self._inner_rows(X))

    def state(self) -> dict[str, Any]:
        return {"inner": self.inner.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.inner.restore(state["inner"])


class WrapperReader(DelegatingReader):
    """Reads a model that wraps another: predictions are the outer one's, leaves the inner one's."""

    def __init__(self, model: Any) -> None:
        require_fitted(model)
        super().__init__(model, reader_of(self.wrapped(model)))
        self.n_features = n_features_of(model)
        self.changes_unit = False
        self._agrees = True

    @property
    def predicts_by_walk(self) -> bool:
        """Whether the inner reader does, and the outer model's predictions follow from its."""
        return self._agrees and self.inner.predicts_by_walk

    def prepare(self, X: Any = None) -> None:
        """Prepare the inner reader, and see whether the outer model makes of its predictions what is expected."""
        if X is None:
            self.inner.prepare()
            return
        self._agrees = True  # until the rows show that it does not
        sample = sample_rows(X, CHECKED_ROWS)  # so that not all rows are transformed at once
        self.inner.prepare(self._inner_rows(sample))
        if self.inner.predicts_by_walk:
            self._agrees = np.allclose(self.read(sample)[1], self.predict(sample), rtol=1e-9, atol=0, equal_nan=True)

    def read(self, X: Any, *, n_jobs: int | None = None) -> Answers:
        if not self.predicts_by_walk:
            return self.read_leaves(X, n_jobs=n_jobs), self.predict(X)
        leaves, predictions = super().read(X, n_jobs=n_jobs)
        return leaves, self._outer_predictions(predictions)

    def predict(self, X: Any) -> NDArray[Any]:
        return LeafReader.predict(self, X)

    def _outer_predictions(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Return what the wrapper makes of the wrapped model's predictions, (n_rows,)."""
        return predictions

    def state(self) -> dict[str, Any]:
        return {**super().state(), "agrees": self._agrees}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._agrees = bool(state["agrees"])


class FrozenReader(WrapperReader):
    """Reads a ``FrozenEstimator``."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        return model.estimator


class TransformedTargetReader(WrapperReader):
    """Reads a ``TransformedTargetRegressor``: neighbours and their targets are in the original unit."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        if hasattr(model, "regressor_"):
            return model.regressor_
        if model.regressor is None:
            raise unsupported(model, "its regressor is None, which means a linear model")
        return model.regressor

    @property
    def nonnegative_losses(self) -> list[str]:
        """None is known: the loss is of the transformed target."""
        return [""] * self.n_outputs

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting | Bagging:
        if self.n_outputs > 1:  # a transformation may mix them
            raise RecipeError("its targets are transformed together")
        inner = self.inner.recipe(self.model.transformer_.transform(y.reshape(-1, 1)).reshape(-1), sample_weight)
        return replace(inner, link=lambda raw: self._outer_predictions(inner.link(raw)))

    def _outer_predictions(self, predictions: NDArray[Any]) -> NDArray[Any]:
        columns = predictions.reshape(len(predictions), -1)
        return np.asarray(self.model.transformer_.inverse_transform(columns)).reshape(predictions.shape)


class PipelineReader(WrapperReader):
    """Reads a ``Pipeline`` whose last step is a supported model."""

    @staticmethod
    def wrapped(model: Any) -> Any:
        last = model.steps[-1][1] if model.steps else None
        if last is None or last == "passthrough":
            raise unsupported(model, "its last step is no model")
        return last

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if len(model.steps) > 1:  # what comes out of the first step has other names
            self.feature_names = feature_names_of(model)

    def written_as(self, name: str) -> str:
        return self.inner.written_as(name) if len(self.model.steps) == 1 else name

    def _inner_rows(self, X: Any) -> Any:
        # Step by step, as the pipeline's own `predict` does it: `model[:-1].transform` would ask each transformer
        # whether it is fitted, and one without a state cannot say yes.
        for _, step in self.model.steps[:-1]:
            if step is not None and step != "passthrough":
                X = step.transform(X)
        return X


class RenamingReader(DelegatingReader):
    """Reads a model that knows its columns by other names than the user's: by these names."""

    def __init__(self, inner: LeafReader, names: Sequence[str]) -> None:
        super().__init__(inner.model, inner)
        self.names = list(names)

    def _inner_rows(self, X: Any) -> Any:
        return renamed(X, self.names)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "names": self.names}


class RepeatedReader(DelegatingReader):
    """Reads a model in which some trees count several times, all at least once: their leaves are that many columns."""

    def __init__(self, inner: LeafReader, repeats: Sequence[int]) -> None:
        super().__init__(inner.model, inner)
        self.repeats = list(repeats)
        self._tree_of = np.repeat(np.arange(len(self.repeats)), self.repeats)
        self.n_trees = len(self._tree_of)
        self.outputs = read_only(None if inner.outputs is None else inner.outputs[self._tree_of])

    def read(self, X: Any, *, n_jobs: int | None = None) -> Answers:
        leaves, predictions = super().read(X, n_jobs=n_jobs)
        return leaves[:, self._tree_of], predictions

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        columns = self._tree_of if trees is None else self._tree_of[trees]
        used, places = np.unique(columns, return_inverse=True)
        return super().read_leaves(X, n_jobs=n_jobs, trees=used)[:, places]

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        return super().library_leaves(X)[:, self._tree_of]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "repeats": self.repeats}


def weighted_outputs(reader: LeafReader, weights: Sequence[int] | None) -> LeafReader:
    """Return a reader in which the trees of each output count as often as its weight says; as it is for None."""
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


def reader_from_state(model: Any, state: Mapping[str, Any]) -> LeafReader:
    """Return the reader of a model that reads as the one with this state did, after checking what a file may claim."""
    if "repeats" in state:
        inner, repeats = reader_from_state(model, state["inner"]), state["repeats"]
        known = isinstance(repeats, list) and all(type(one) is int and 1 <= one <= 100 for one in repeats)
        require(known and len(repeats) == inner.n_trees, "the weights of its trees are impossible")
        return RepeatedReader(inner, repeats)
    reader = reader_of(model)
    if "names" in state:
        names = state["names"]
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(known and len(set(names)) == len(names), "the names of its model's columns are impossible")
        require(reader.n_features in (None, len(names)), "the names of its model's columns are too many or too few")
        reader = RenamingReader(reader, names)
    reader.restore(state)
    return reader


def names_taken(model: Any, names: Sequence[str]) -> list[str] | None:
    """Return names that the model's library takes in place of these; None where it takes these as they are.

    A Pipeline gets its columns under their own names, which its steps may ask for.
    """
    reader = reader_type(model)
    while (inner := reader.wrapped(model)) is not None:
        if len(getattr(model, "steps", ())) > 1 or reader.drops_names:
            return None
        model, reader = inner, reader_type(inner)
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
