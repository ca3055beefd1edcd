"""Models with one model for each target: scikit-learn's ``MultiOutputRegressor`` and ``RegressorChain``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ibug._read_only import read_only
from ibug._typing import Floats
from ibug._validation import require
from ibug.leaves._reader import LeafReader, reader_of, require_fitted, unsupported
from ibug.leaves._recipe import Bagging, Boosting, RecipeError


class PerTargetReader(LeafReader):
    """Reads a model that has one model for each target: the trees of all of them, one model after another."""

    def __init__(self, model: Any) -> None:
        require_fitted(model)
        super().__init__(model)
        self.inner = [reader_of(member) for member in model.estimators_]
        if len(self.inner) < 2:
            raise unsupported(model, "it has one target; give the model inside of it")
        if any(reader.n_outputs > 1 for reader in self.inner):
            raise unsupported(model, "the models inside of it have several outputs themselves")
        n_trees = [reader.n_trees for reader in self.inner]
        self.n_trees, self.n_outputs = sum(n_trees), len(self.inner)
        self._order = [int(output) for output in getattr(model, "order_", range(self.n_outputs))]  # of a chain
        self.outputs = read_only(np.repeat(np.array(self._order, np.intp), n_trees))
        self.changes_unit = any(reader.changes_unit for reader in self.inner)
        self.quantile = _least_central([reader.quantile for reader in self.inner])
        self.expectile = _least_central([reader.expectile for reader in self.inner])

    @staticmethod
    def wrapped(model: Any) -> Any:
        """Return the estimator that is trained for each target."""
        found = getattr(model, "estimator", None)
        if not hasattr(found, "fit"):  # a chain's former name for it
            found = getattr(model, "base_estimator", None)
        if found is None:
            raise unsupported(model, "it has no model inside of it")
        return found

    @abstractmethod
    def _rows(self, X: Any, n_jobs: int | None = None) -> Iterator[tuple[LeafReader, Any, NDArray[np.int32] | None]]:
        """Yield each member with the rows as it sees them, and their leaves if they had to be found for that."""

    def leaf_sizes(self, n: int) -> list[Floats] | None:
        """Return the number of rows in leaves of the first member: its trees come first."""
        return self.inner[0].leaf_sizes(n)

    @property
    def nonnegative_losses(self) -> list[str]:
        return [self.inner[member].nonnegative_losses[0] for member in np.argsort(self._order)]

    @property
    def how(self) -> str:  # type: ignore[override]  # a constant of other readers
        return "; ".join(dict.fromkeys(reader.how for reader in self.inner))

    def library_leaves(self, X: Any) -> NDArray[np.int32]:
        return np.concatenate([reader.library_leaves(rows) for reader, rows, _ in self._rows(X)], axis=1)

    def read_leaves(
        self, X: Any, *, n_jobs: int | None = None, trees: NDArray[np.intp] | None = None
    ) -> NDArray[np.int32]:
        found, first = [], 0
        for reader, rows, leaves in self._rows(X, n_jobs):
            own = None
            if trees is not None:  # those of this member, which alone are walked
                own = trees[(trees >= first) & (trees < first + reader.n_trees)] - first
                first += reader.n_trees
                if not len(own):
                    continue
            if leaves is None:
                found.append(reader.read_leaves(rows, n_jobs=n_jobs, trees=own))
            else:
                found.append(leaves if own is None else leaves[:, own])
        return np.concatenate(found, axis=1)

    def state(self) -> dict[str, Any]:
        return {"members": [reader.state() for reader in self.inner]}

    def restore(self, state: Mapping[str, Any]) -> None:
        require(len(state["members"]) == len(self.inner), "its model has another number of targets")
        for reader, own in zip(self.inner, state["members"], strict=True):
            reader.restore(own)


class MultiOutputReader(PerTargetReader):
    """Reads a ``MultiOutputRegressor``: all members see the same rows."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.feature_names = self.inner[0].feature_names

    def _rows(self, X: Any, n_jobs: int | None = None) -> Iterator[tuple[LeafReader, Any, NDArray[np.int32] | None]]:
        for reader in self.inner:
            yield reader, X, None

    def prepare(self, X: Any = None) -> None:
        for reader in self.inner:
            reader.prepare(X)

    @property
    def predicts_by_walk(self) -> bool:
        return all(reader.predicts_by_walk for reader in self.inner)

    def read(self, X: Any, *, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[Any]]:
        if not self.predicts_by_walk:
            return super().read(X, n_jobs=n_jobs)
        leaves, predictions = zip(*(reader.read(X, n_jobs=n_jobs) for reader in self.inner), strict=True)
        return np.concatenate(leaves, axis=1), np.stack(predictions, axis=1)

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting | Bagging:
        return self.inner[output].recipe(y, sample_weight)

    def written_as(self, name: str) -> str:
        return self.inner[0].written_as(name)


class ChainReader(PerTargetReader):
    """Reads a ``RegressorChain``: later members see the predictions of earlier ones as further columns.

    In its training they may have seen the targets in that place. Rows to predict have none: training rows are read in
    the same way as these, with predictions.
    """

    drops_names = True

    def _rows(self, X: Any, n_jobs: int | None = None) -> Iterator[tuple[LeafReader, Any, NDArray[np.int32] | None]]:
        rows = validate_data(self.model, X, accept_sparse=True, reset=False)
        for reader in self.inner[:-1]:
            leaves, prediction = reader.read(rows, n_jobs=n_jobs)
            yield reader, rows, leaves
            rows = _with_column(rows, np.asarray(prediction, np.float64))
        yield self.inner[-1], rows, None

    def prepare(self, X: Any = None) -> None:
        """Prepare the members' readers, one after the other: each needs the predictions of those before."""
        if X is None:
            for reader in self.inner:
                reader.prepare()
            return
        rows = validate_data(self.model, X, accept_sparse=True, reset=False)
        for reader in self.inner:
            reader.prepare(rows)
            rows = _with_column(rows, np.asarray(reader.predict(rows), np.float64))

    def recipe(self, y: Floats, sample_weight: Floats | None, output: int = 0) -> Boosting | Bagging:
        """Return that of the first member; later ones were trained on other columns than they see now."""
        if output == self._order[0]:
            return self.inner[0].recipe(y, sample_weight)
        raise RecipeError("the members of a chain were trained on targets, and see predictions in their place")


def _least_central(levels: list[float | None]) -> float | None:
    """Return a level other than 0.5, if there is one."""
    found = [level for level in levels if level is not None]
    return next((level for level in found if level != 0.5), found[0] if found else None)


def _with_column(rows: Any, column: Floats) -> Any:
    """Return rows with one column more."""
    more = column[:, None]
    return scipy.sparse.hstack((rows, more), format="csr") if scipy.sparse.issparse(rows) else np.hstack((rows, more))
