"""Likelihood ratios of covariates, estimated from the leaves that rows fall into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from ibug._typing import Floats
from ibug._validation import as_rows, subsample
from ibug._weights import effective_rows
from ibug.exceptions import InvalidInputError

# The weight of the data against the penalty: that of scikit-learn, for features whose inner product is at most 1.
_INVERSE_PENALTY = 1.0
_MOST_STEPS = 1000
_MOST_ENTRIES = 2**27  # of the table: 1 GiB
_MOST_LEAVES = 2**26  # of the rows of one kind: they must fit into memory

Leaves = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """The density of rows to be predicted over that of validation rows, estimated from the leaves of a model.

    A logistic regression separates the two kinds of rows. Its features are the leaves, scaled so that the inner
    product of two rows is their affinity as a share of the trees: it is the kernel method whose kernel is the affinity.
    The log ratio of a row is a sum over its leaves, so that columns of any type will do. It sees what the model splits
    on, and nothing else. `estimate` makes one, ``ScaleConformal(ratio=...)`` takes it.

    Parameters
    ----------
    table : ndarray of shape (n_trees, width)
        What a row's leaf in each tree adds to the log ratio, by leaf number.
    intercept : float
        The log ratio where no leaf adds anything.
    n_effective : float
        The number of rows that the validation rows are worth with these weights, (Σw)²/Σw².
    """

    table: Floats
    intercept: float
    n_effective: float

    @classmethod
    def estimate(cls, estimator: Any, X_val: Any, X_new: Any) -> LikelihoodRatio:
        """Estimate how much likelier each row is among new rows than among validation rows, from the model's leaves.

        Parameters
        ----------
        estimator : IBUGRegressor
            A fitted regressor, whose `recalibrate` takes the ratio in ``ScaleConformal(ratio=...)``.
        X_val, X_new : array-like or data frame of shape (n_rows, n_features)
            Validation rows, and rows like those to be predicted.
        """
        check_is_fitted(estimator)
        most = max(1, _MOST_LEAVES // estimator.source_.index.n_trees)

        def leaves_of(X: Any) -> Leaves:
            X = as_rows(X)
            validate_data(estimator, X, reset=False, skip_check_array=True)
            return np.concatenate([*estimator.source_.leaves_of(subsample(X, most))])

        return cls.from_leaves(leaves_of(X_val), leaves_of(X_new))

    @classmethod
    def from_leaves(cls, before: Leaves, new: Leaves) -> LikelihoodRatio:
        """Estimate the ratio from the leaves of two samples.

        Parameters
        ----------
        before, new : ndarray of int32, shape (n_before, n_trees) and (n_new, n_trees)
            The leaf numbers of validation rows, and of rows to be predicted.
        """
        n_trees, width = before.shape[1], int(max(before.max(), new.max())) + 1
        if n_trees * width > _MOST_ENTRIES:
            raise InvalidInputError(
                f"Leaf numbers up to {width - 1} in {n_trees} trees are too many for a table of likelihood ratios: "
                "give ratio a function of X."
            )
        features = _as_features(np.concatenate([before, new]), width)
        is_new = np.repeat([False, True], [len(before), len(new)])
        # Both kinds of rows have the same total weight, so that the odds are the ratio.
        weights = np.where(is_new, 0.5 / len(new), 0.5 / len(before)) * len(is_new)
        classifier = LogisticRegression(C=_INVERSE_PENALTY, max_iter=_MOST_STEPS)
        classifier.fit(features, is_new, sample_weight=weights)
        table = classifier.coef_.reshape(n_trees, width) / np.sqrt(n_trees)
        found = cls(table, float(classifier.intercept_[0]), np.nan)
        return replace(found, n_effective=effective_rows(found.of_leaves(before), len(before)))

    def of_leaves(self, leaves: Leaves) -> Floats:
        """Return the ratios of rows, (n_rows,).

        Parameters
        ----------
        leaves : ndarray of int32, shape (n_rows, n_trees)
            Their leaf numbers. A leaf that no row had when the ratio was estimated adds nothing.
        """
        n_trees, width = self.table.shape
        if leaves.shape[1] != n_trees:
            raise InvalidInputError(
                f"The likelihood ratio was estimated with a model of {n_trees} trees, and this one has "
                f"{leaves.shape[1]}: estimate it again with this model, LikelihoodRatio.estimate(u, X_val, X_new)."
            )
        known = leaves < width
        added = self.table[np.arange(n_trees), np.where(known, leaves, 0)]
        return np.asarray(np.exp(self.intercept + np.sum(added * known, axis=1)))

    def of_chunks(self, chunks: Iterable[Leaves]) -> Floats:
        """Return the ratios of rows whose leaves come in chunks, (n_rows,)."""
        return np.concatenate([self.of_leaves(leaves) for leaves in chunks])

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LikelihoodRatio:
        """Return the ratio that has this state."""
        table = np.asarray(state["table"], np.float64)
        intercept, n_effective = float(state["intercept"]), float(state["n_effective"])
        if table.ndim != 2 or not table.size or not np.all(np.isfinite(table)) or not np.isfinite(intercept):
            raise InvalidInputError("A likelihood ratio has a table of finite numbers, one row per tree.")
        return cls(table, intercept, n_effective)

    def __repr__(self) -> str:
        return f"LikelihoodRatio(n_trees={len(self.table)}, n_effective={self.n_effective:.0f})"


def _as_features(leaves: Leaves, width: int) -> Any:
    """Return a sparse matrix of one column per leaf, (n_rows, n_trees * width), rows of length 1."""
    n_rows, n_trees = leaves.shape
    columns = (leaves.astype(np.int64) + np.arange(n_trees) * width).ravel()
    values = np.full(columns.size, 1 / np.sqrt(n_trees))
    starts = np.arange(n_rows + 1) * n_trees
    # scikit-learn's solvers take indices of 32 bits.
    return csr_array((values, columns.astype(np.int32), starts.astype(np.int32)), shape=(n_rows, n_trees * width))
