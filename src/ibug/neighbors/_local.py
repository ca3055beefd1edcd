"""Neighbours from an index on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._typing import Floats, Integers
from ibug._validation import require
from ibug.exceptions import InvalidInputError
from ibug.leaves import LeafReader, reader_from_state
from ibug.neighbors._index import JoinedIndex, LeafIndex
from ibug.neighbors._leaf_numbers import LeafNumbers
from ibug.neighbors._sampling import Sampling
from ibug.neighbors._search import SearchPlan, not_self
from ibug.neighbors._source import Batch, Residuals, TargetNeighbors, plain_floats


@dataclass(frozen=True, eq=False)
class LocalSource:
    """The training rows of a model, indexed by their leaves, and what belongs to each of them."""

    model: Any  # fitted
    leaves: LeafNumbers  # of any row that the model can predict
    index: LeafIndex | JoinedIndex  # of the training rows' leaves
    rows: NDArray[np.intp] | None  # (n_index_rows,) the rows in the index, ascending; None for all
    targets: Floats  # (n_train,), or (n_train, n_targets) of several targets
    # Out-of-sample residuals of the training rows; or of validation rows, which have an index of their own.
    out_of_sample: Residuals = field(default_factory=Residuals)
    residual_index: LeafIndex | JoinedIndex | None = None
    leaves_out_self: bool = False  # the rows asked for are those of residual_index: none is its own neighbour there
    weights: Floats | None = None  # (n_train,) of the rows as neighbours, all above zero; None where they count equally
    new_errors: Floats | None = None  # (n_new,) or (n_new, d), the model's on the latest rows added, 1,000 at most
    # An index for each of several targets that have trees of their own.
    target_indexes: tuple[LeafIndex | JoinedIndex, ...] = ()
    search: SearchPlan = field(default_factory=SearchPlan)  # of all these indexes

    @property
    def predicts_by_walk(self) -> bool:
        """Whether the means of its batches are sums of a walk: the model's own but for the last bit."""
        return self.leaves.reader.predicts_by_walk

    @classmethod
    def build(
        cls,
        model: Any,
        reader: LeafReader,
        X: Any,
        y: Floats,
        sampling: Sampling,
        rng: np.random.RandomState,
        *,
        residuals: Residuals | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> LocalSource:
        """Index the training rows X of a fitted model, or a sample of them."""
        leaves = LeafNumbers.of(reader, X, sampling, rng, verbose=verbose)
        rows = sampling.rows(len(y), rng)
        index = leaves.index_of(X, rows, n_jobs=n_jobs, title="indexing training rows", verbose=verbose)
        target_indexes = tuple(
            one.index_of(X, rows, n_jobs=n_jobs, title=f"indexing the trees of target {j}", verbose=verbose)
            for j, one in enumerate(leaves.of_outputs())
        )
        source = cls(model, leaves, index, rows, y, residuals or Residuals(), target_indexes=target_indexes)
        return source._by_gain(sampling) if sampling.takes_gains else source

    def _by_gain(self, sampling: Sampling) -> LocalSource:
        """Return the source in which only the trees count that explain most of the targets."""
        assert isinstance(self.index, LeafIndex), "shards are built with the trees that count"
        chosen = sampling.trees_of_most_gain(
            self.index.explained(self.targets if self.rows is None else self.targets[self.rows])
        )
        if len(chosen) == self.n_trees:
            return self
        trees = chosen if self.leaves.trees is None else self.leaves.trees[chosen]
        return replace(self, leaves=replace(self.leaves, trees=trees), index=self.index.of_trees(chosen))

    @property
    def tree_fraction(self) -> float:
        """The share of the model's trees that count."""
        return self.n_trees / self.leaves.n_model_trees

    @property
    def n_trees(self) -> int:
        """The number of trees that count: the affinity of twins."""
        return self.index.n_trees

    @property
    def walk(self) -> str:
        """How leaves are found, in words."""
        return self.leaves.reader.how

    @property
    def residuals(self) -> Floats | None:
        """The values of the out-of-sample residuals."""
        return self.out_of_sample.values

    @property
    def has_training_residuals(self) -> bool:
        """Whether each training row has an out-of-sample residual."""
        return self.residuals is not None and self.residual_index is None

    def n_neighbors(self, quantity: str) -> int:
        """Return the number of rows that can be neighbours and have the quantity."""
        if quantity == "residuals" and self.residual_index is not None:
            return self.residual_index.n_rows - self.leaves_out_self
        return self.index.n_rows

    def with_residuals_of(
        self, X_val: Any, errors: Floats, *, n_jobs: int | None = None, verbose: bool = False
    ) -> LocalSource:
        """Return a source whose residuals are the errors on validation rows: the model has not seen them."""
        index = self.leaves.index_of(X_val, n_jobs=n_jobs, verbose=verbose)
        residuals = Residuals(errors, "validation", self.out_of_sample.reason)
        return replace(self, out_of_sample=residuals, residual_index=index)

    def with_training_residuals(self, residuals: Residuals) -> LocalSource:
        """Return a source with these residuals of the training rows, or with none."""
        return replace(self, out_of_sample=residuals, residual_index=None)

    def searched(self, plan: SearchPlan) -> LocalSource:
        """Return a source that searches in another way."""
        return replace(self, search=plan)

    def leaving_out_self(self) -> LocalSource:
        """Return the source for the very rows that have residuals."""
        return replace(self, leaves_out_self=True)

    def batches(
        self,
        X: Any,
        needs: Mapping[str, int],
        *,
        predict: bool = True,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> Iterator[Batch]:
        """Yield one batch of rows after another, with predictions, neighbours and their values."""
        training_needs, k_others = dict(needs), 0
        if self.residual_index is not None and "residuals" in training_needs:
            k_others = training_needs.pop("residuals")
        k = max(training_needs.values(), default=0)
        quantities = {quantity: self._values(quantity) for quantity in training_needs}
        chunks = self.leaves.chunks(
            X, k + k_others, predict=predict, n_jobs=n_jobs, title="finding neighbours", verbose=verbose
        )
        for where, leaves, mean in chunks:
            batch = Batch.of(
                where,
                np.full((len(leaves), *self.targets.shape[1:]), np.nan)
                if mean is None
                else np.asarray(mean, np.float64),
                *self._query(leaves, k, n_jobs),
                self.n_trees,
                quantities,
                training_needs,
                weights=self.weights,
                per_target=tuple(self._per_target(leaves, k, n_jobs)),
            )
            if k_others:
                near = self._validation_rows(leaves, k_others, where, n_jobs)
                batch = batch._replace(values={**batch.values, "residuals": self._values("residuals")[near]})
            yield batch

    def leaves_of(self, X: Any) -> Iterator[NDArray[np.int32]]:
        """Yield the leaves of the rows X, chunk after chunk, (n_chunk_rows, n_trees)."""
        return (chunk.leaves for chunk in self.leaves.chunks(X))

    def nearest(
        self, X: Any, k: int, *, n_jobs: int | None = None, verbose: bool = False
    ) -> Iterator[tuple[slice, NDArray[np.int32], Integers]]:
        """Yield chunk after chunk: its rows as a slice, affinities and training rows, (n_rows, k) each.

        Nothing is predicted.
        """
        for where, leaves, _ in self.leaves.chunks(X, k, n_jobs=n_jobs, title="finding neighbours", verbose=verbose):
            yield where, *self._query(leaves, k, n_jobs)

    def neighbors(
        self, X: Any, k: int, *, n_jobs: int | None = None, verbose: bool = False
    ) -> tuple[NDArray[np.int32], Integers]:
        """Return affinities and training rows of the k nearest, (n_rows, k) each."""
        shape = _num_samples(X), k
        affinities, rows = np.empty(shape, np.int32), np.empty(shape, np.int64)
        for where, *found in self.nearest(X, k, n_jobs=n_jobs, verbose=verbose):
            affinities[where], rows[where] = found
        return affinities, rows

    def affinity_scores(self, X: Any, k: int, *, n_jobs: int | None = None, verbose: bool = False) -> Floats:
        """Return the mean affinity of the k nearest as a share of the trees, (n_rows,)."""
        nearest = self.nearest(X, k, n_jobs=n_jobs, verbose=verbose)
        return np.concatenate([affinities.mean(axis=1) / self.n_trees for _, affinities, _ in nearest])

    def leaf_density(self, X: Any, *, n_jobs: int | None = None) -> tuple[Floats, Floats]:
        """Return the mean share of the training rows in the same leaf: for each row, and for each tree."""
        by_row, by_tree = [], np.zeros(self.n_trees, np.int64)
        for _, leaves, _ in self.leaves.chunks(X, n_jobs=n_jobs):
            sizes = self.index.leaf_sizes(leaves)
            by_row.append(sizes.mean(axis=1) / self.index.n_rows)
            by_tree += sizes.sum(axis=0)
        rows = np.concatenate(by_row)
        return rows, by_tree / (len(rows) * self.index.n_rows)

    def state(self) -> dict[str, Any]:
        """Return all but the model as plain values and arrays; `from_state` puts it together again."""
        other = self.residual_index
        indexes = {"index": self.index.arrays(), "residual_index": None if other is None else other.arrays()}
        per_target = {"own_indexes": [one.arrays() for one in self.target_indexes]} if self.target_indexes else {}
        return {**indexes, **per_target, **self._rest()}

    @classmethod
    def from_state(cls, model: Any, state: Mapping[str, Any]) -> LocalSource:
        """Return the source of a model that has this state; parts that do not belong together are refused."""
        other = state["residual_index"]
        residual_index = None if other is None else LeafIndex.from_arrays(other)
        target_indexes = tuple(LeafIndex.from_arrays(one) for one in state.get("own_indexes", ()))
        return cls.assemble(model, LeafIndex.from_arrays(state["index"]), residual_index, state, target_indexes)

    @classmethod
    def assemble(
        cls,
        model: Any,
        index: LeafIndex | JoinedIndex,
        residual_index: LeafIndex | JoinedIndex | None,
        rest: Mapping[str, Any],
        target_indexes: tuple[LeafIndex | JoinedIndex, ...] = (),
    ) -> LocalSource:
        """Return the source of a model and its indexes, after checking that they belong together."""
        reader, n_trees = reader_from_state(model, rest["reader"]), rest["n_model_trees"]
        require(
            reader.n_trees == n_trees,
            f"its model does not match its index: it has {reader.n_trees} trees, and {n_trees!r:.50} were indexed",
        )
        leaves = LeafNumbers(reader, n_trees, ascending(rest["trees"]))
        residuals = Residuals.from_state(rest, of_validation=residual_index is not None)
        weights = None if rest.get("weights") is None else plain_floats(rest["weights"])
        new = None if rest.get("new_errors") is None else plain_floats(rest["new_errors"], multioutput=True)
        source = cls(
            model,
            leaves,
            index,
            ascending(rest["rows"]),
            plain_floats(rest["targets"], multioutput=True),
            residuals,
            residual_index,
            weights=weights,
            new_errors=new,
            target_indexes=target_indexes,
            search=SearchPlan.from_state(rest.get("search", {})),
        )
        source.check()
        return source

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds what a file holds: the trees are read from the model again.
        return LocalSource.assemble, (self.model, self.index, self.residual_index, self._rest(), self.target_indexes)

    def _rest(self) -> dict[str, Any]:
        """Return all but the model and the indexes as plain values and arrays."""
        return {
            "n_model_trees": self.leaves.n_model_trees,
            "trees": self.leaves.trees,
            "rows": self.rows,
            "targets": self.targets,
            **self.out_of_sample.state(),
            **({} if self.weights is None else {"weights": self.weights}),
            **({} if self.new_errors is None else {"new_errors": self.new_errors}),
            "reader": self.leaves.reader.state(),
            "search": asdict(self.search),
        }

    def check(self) -> None:
        """Raise InvalidInputError unless index, targets and residuals belong together."""
        n_train = len(self.targets)
        n_rows = n_train if self.rows is None else len(self.rows)
        known = self.rows is None or self.rows[-1] < n_train
        require(self.index.n_rows == n_rows and known, "its index does not match its targets")
        if self.new_errors is not None:
            right = self.new_errors.shape[1:] == self.targets.shape[1:] and np.all(np.isfinite(self.new_errors))
            require(right, "the errors of its new rows do not match its targets")
        if self.weights is not None:
            right = self.weights.shape == (n_train,) and np.all(np.isfinite(self.weights) & (self.weights > 0))
            require(right, "its weights do not match its targets: one above zero for each is expected")
        trees, n_model_trees = self.leaves.trees, self.leaves.n_model_trees
        require(
            self.index.n_trees == self.leaves.n_trees and (trees is None or trees[-1] < n_model_trees),
            "its model does not match its index: the number of trees is another one",
        )
        if self.residual_index is not None:
            n_residuals = 0 if self.residuals is None else len(self.residuals)
            require(n_residuals == self.residual_index.n_rows, "its residuals do not match their index")
            same = self.residual_index.n_trees == self.index.n_trees
            require(same, "its two indexes have not the same number of trees")
        elif self.residuals is not None:
            require(self.residuals.shape == self.targets.shape, "its residuals do not match its targets")
        n_targets = 1 if self.targets.ndim == 1 else self.targets.shape[1]
        require(self.leaves.reader.n_outputs == n_targets, "its model does not match its targets")
        sizes = [len(some) for some in self.leaves.columns_of_outputs] if self.target_indexes else []
        fits = [(one.n_trees, one.n_rows) for one in self.target_indexes] == [(size, n_rows) for size in sizes]
        require(fits, "the indexes of its targets do not match its model")

    def _query(self, leaves: NDArray[np.int32], k: int, n_jobs: int | None) -> tuple[NDArray[np.int32], Integers]:
        if not k:
            return np.empty((len(leaves), 0), np.int32), np.empty((len(leaves), 0), np.int64)
        affinities, rows = self.index.query(leaves, k, n_cells=self.search.n_cells, n_jobs=n_jobs)
        return affinities, rows if self.rows is None else self.rows[rows]

    def _per_target(self, leaves: NDArray[np.int32], k: int, n_jobs: int | None) -> Iterator[TargetNeighbors]:
        """Yield the neighbours of rows by the trees of each target, where these are apart."""
        columns = self.leaves.columns_of_outputs
        for index, some in zip(self.target_indexes, columns, strict=True):
            chosen = np.ascontiguousarray(leaves[:, some])
            affinities, rows = index.query(chosen, k, n_cells=self.search.n_cells, n_jobs=n_jobs)
            yield TargetNeighbors(affinities, rows if self.rows is None else self.rows[rows], len(some))

    def _validation_rows(self, leaves: NDArray[np.int32], k: int, where: slice, n_jobs: int | None) -> Integers:
        """Return the k nearest validation rows, (n_rows, k)."""
        assert self.residual_index is not None, "only validation rows with residuals are asked for"
        n_cells = self.search.n_cells
        if not self.leaves_out_self:
            return self.residual_index.query(leaves, k, n_cells=n_cells, n_jobs=n_jobs)[1]
        rows = self.residual_index.query(leaves, k + 1, n_cells=n_cells, n_jobs=n_jobs)[1]
        return rows[not_self(rows, np.arange(where.start, where.stop))].reshape(len(rows), k)

    def _values(self, quantity: str) -> Floats:
        values = self.targets if quantity == "targets" else self.residuals
        assert values is not None, "only quantities that the rows have are asked for"
        return values


def ascending(array: Any) -> NDArray[np.intp] | None:
    """Return row or tree numbers, ascending."""
    if array is None:
        return None
    numbers = np.asarray(array)
    require(numbers.dtype.kind == "i" and numbers.ndim == 1 and numbers.size, "its row or tree numbers are impossible")
    require(numbers[0] >= 0 and np.all(np.diff(numbers) > 0), "its row or tree numbers are not ascending")
    return numbers.astype(np.intp, copy=False)


# The largest number of errors of new rows that are kept, to compare those of later ones with.
_MOST_ERRORS = 1000


def updated(
    source: LocalSource,
    X: Any,
    y: Floats,
    sampling: Sampling,
    rng: np.random.RandomState,
    *,
    weights: Floats | None = None,
    keep: int | None = None,
    least: int = 1,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> LocalSource:
    """Return the source with newer rows behind its own, without the oldest if there are more than are to be kept.

    The model has not been trained on the new rows: where rows have residuals, theirs are target minus prediction.

    Shapes: weights (n_rows,).
    """
    for index in (source.index, source.residual_index, *source.target_indexes):
        _check_growable(index)
    n_old = len(source.targets)
    gone = 0 if keep is None else max(0, n_old + len(y) - keep)
    # As numbers of all rows, old and new, those that are in the index; ascending.
    old = np.arange(n_old) if source.rows is None else source.rows
    drawn = np.arange(len(y))
    if source.rows is not None:
        staying = drawn[max(0, gone - n_old) :]
        wanted = sampling.n_rows(n_old + len(y) - gone) - int(np.sum(old >= gone))
        drawn = np.sort(rng.choice(staying, min(max(wanted, 0), len(staying)), replace=False))
    rows = np.concatenate([old, n_old + drawn])
    n_left = int(np.sum(rows >= gone))
    if n_left < least:
        raise InvalidInputError(
            f"keep={keep} leaves {n_left} rows that can be neighbours, and {least} make up a distribution: keep more."
        )
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    n_gone = len(rows) - n_left
    errors = y - np.asarray(source.leaves.reader.predict(X), np.float64)
    before = errors[:0] if source.new_errors is None else source.new_errors
    changed: dict[str, Any] = {
        "index": _moved(source.index, source.leaves, X, drawn, n_gone, **options),
        "rows": None if source.rows is None else rows[rows >= gone] - gone,
        "targets": np.concatenate([source.targets, y])[gone:],
        "new_errors": np.concatenate([before, errors])[-_MOST_ERRORS:],
        "target_indexes": tuple(
            _moved(one, leaves, X, drawn, n_gone, **options)
            for one, leaves in zip(
                source.target_indexes, source.leaves.of_outputs() if source.target_indexes else (), strict=True
            )
        ),
    }
    if source.weights is not None:
        changed["weights"] = np.concatenate([source.weights, np.ones(len(y)) if weights is None else weights])[gone:]
    if source.residuals is not None:
        residuals, other = np.concatenate([source.residuals, errors]), source.residual_index
        # Rows with residuals of their own are forgotten as training rows are.
        first = gone if other is None or keep is None else max(0, len(residuals) - keep)
        if other is not None:
            changed["residual_index"] = _moved(other, source.leaves, X, np.arange(len(y)), first, **options)
        changed["out_of_sample"] = replace(source.out_of_sample, values=residuals[first:])
    return replace(source, **changed)


def _check_growable(index: LeafIndex | JoinedIndex | None) -> None:
    if isinstance(index, JoinedIndex):
        raise InvalidInputError(
            "The index is divided into shards, which rows cannot be added to: fit ibug.dask.IBUGRegressor on all rows."
        )
    if index is not None and index.is_mapped:
        raise InvalidInputError(
            "The index is mapped from a file, which other processes may share, and cannot take more rows: load the "
            "file with ibug.load(path, mmap=False)."
        )


def _moved(
    index: Any, leaves: LeafNumbers, X: Any, drawn: NDArray[np.intp], gone: int, *, n_jobs: int | None, verbose: bool
) -> LeafIndex:
    """Return the index with some rows of X behind its own, without the first `gone` of all."""
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    if gone >= index.n_rows:
        return leaves.index_of(X, drawn[gone - index.n_rows :], title="indexing new rows", **options)
    kept: LeafIndex = index.without_first(gone) if gone else index
    if not len(drawn):  # few new rows, of which a share can be neighbours
        return kept
    return kept.extended(_leaves(leaves, _safe_indexing(X, drawn), options), len(drawn))


def _leaves(leaves: LeafNumbers, X: Any, options: dict[str, Any]) -> Iterator[NDArray[np.int32]]:
    for chunk in leaves.chunks(X, title="indexing new rows", **options):
        yield chunk.leaves
