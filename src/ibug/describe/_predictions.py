"""Predictions of rows with the training rows behind them, each row searched once, and in which features they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats, Integers
from ibug._warnings import warn_infinite

_FARTHEST = 100.0  # standard deviations: a single extreme value must not hide the rest


@dataclass(frozen=True)
class NearestRows:
    """The training rows behind predictions."""

    similarity: Floats  # (n_rows,) what `affinity_score` returns for all rows
    means: Floats  # (n_rows,) or (n_rows, n_targets), the model's predictions of all rows, as `monitor` compares them
    affinities: NDArray[np.int32]  # (n_listed, k), what `kneighbors` returns for the rows whose neighbours are listed
    indices: Integers  # (n_listed, k)


@dataclass(frozen=True)
class Predictions:
    """Predicted distributions of rows, with the point predictions.

    They have the methods of the estimator that made them, so that scores of the same rows need no second search.
    """

    distribution: Any  # what `predict_dist` returns
    points: Floats  # (n_rows,) or (n_rows, n_targets), what `predict` returns
    training_targets_: Floats | None = None  # (n_train,) or (n_train, n_targets), where the estimator keeps them
    uncalibrated: Any = None  # the distributions of the plain neighbours, if asked for, where there is such a form
    nearest: NearestRows | None = None  # of an IBUGRegressor
    rule: Any = None  # that made the distributions, where there is one
    target_names_: Sequence[str] | None = None  # of several targets

    def plain_neighbors(self) -> Predictions | None:
        """Return the same rows, with the same point predictions, as the plain neighbours predict them."""
        if self.uncalibrated is None:
            return None
        return replace(self, distribution=self.uncalibrated, rule=self.rule and self.rule.uncalibrated())

    def by_target(self) -> list[Predictions]:
        """Return the predictions of each of several targets, with its conformal calibration."""
        distributions = self.rule.marginals(self.distribution)
        plain = [None] * len(distributions)
        if self.uncalibrated is not None:
            plain = self.rule.uncalibrated().marginals(self.uncalibrated)
        targets = self.training_targets_
        assert targets is not None, "an estimator of several targets keeps them"
        return [
            Predictions(one, self.points[:, j], targets[:, j], plain[j], self.nearest)
            for j, one in enumerate(distributions)
        ]

    def predict_dist(self, X: Any) -> Any:
        """Return the distributions of the rows that were predicted."""
        return self.distribution

    def predict(self, X: Any) -> Floats:
        """Return the point predictions of the rows that were predicted, (n_rows,)."""
        return self.points

    def predict_interval(self, X: Any, coverage: float, *, joint: bool = False) -> Floats:
        """Return the intervals or boxes of the rows that were predicted, (n_rows, n_targets, 2)."""
        ends = self.rule.ends(self.distribution, coverage, joint=joint)
        if joint or self.rule.conformal is not None:
            warn_infinite(ends, coverage, "predict_interval", joint=joint, conformal=self.rule.conformal)
        return np.asarray(ends)


def predict_rows(
    estimator: Any, X: Any, n_neighbors: int = 0, listed: Integers | None = None, *, uncalibrated: bool = False
) -> Predictions:
    """Predict rows and find their neighbours by one search, batch by batch, which bounds the memory.

    At least `n_neighbors` of them are listed, `k_` if that is more, for all rows or those `listed` (ascending). An
    estimator that is no ``IBUGRegressor`` has no neighbours. Shapes: listed (n_listed,).
    """
    from sklearn.utils.validation import _num_samples  # takes long to import

    from ibug.explain import plain_neighbors
    from ibug.regressor import IBUGRegressor
    from ibug.rule import most_needed

    if not isinstance(estimator, IBUGRegressor):
        has_plain = uncalibrated and hasattr(estimator, "rule_")
        plain = plain_neighbors(estimator).predict_dist(X) if has_plain else None
        targets = getattr(estimator, "training_targets_", None)
        rule, names = (getattr(estimator, name, None) for name in ("rule_", "target_names_"))
        return Predictions(estimator.predict_dist(X), _points(estimator, X), targets, plain, None, rule, names)
    n_rows, k, targets = _num_samples(X), max(n_neighbors, estimator.k_), estimator.training_targets_
    listed = np.arange(n_rows) if listed is None else listed
    rules = [estimator.rule_, estimator.rule_.uncalibrated()] if uncalibrated else [estimator.rule_]
    parts: list[list[Any]] = [[] for _ in rules]
    means, similarity = np.empty((n_rows, *targets.shape[1:])), np.empty(n_rows)
    affinities, indices = np.empty((len(listed), k), np.int32), np.empty((len(listed), k), np.int64)
    for batch in estimator.batches(X, most_needed(*(rule.needs for rule in rules), {"targets": k})):
        for part, rule in zip(parts, rules, strict=True):
            part.append(rule.distribution(batch))
        where = batch.where
        means[where] = batch.mean
        similarity[where] = batch.affinities[:, : estimator.k_].mean(axis=1) / batch.n_trees
        first, last = np.searchsorted(listed, [where.start, where.stop])
        inside = listed[first:last] - where.start
        affinities[first:last], indices[first:last] = batch.affinities[inside, :k], batch.rows[inside, :k]
    # The sums of a walk, which come with the leaf numbers, equal the library's predictions, but not to the last bit.
    points = _points(estimator, X) if estimator.source_.predicts_by_walk else means
    found = [type(part[0]).concatenate(part) for part in parts]
    nearest = NearestRows(similarity, means, affinities, indices)
    plain = found[1] if uncalibrated else None
    return Predictions(found[0], points, targets, plain, nearest, rules[0], estimator.target_names_)


def _points(estimator: Any, X: Any) -> Floats:
    return np.asarray(estimator.predict(X), np.float64)


def mean_distances(here: NDArray[Any], there: NDArray[Any], scale: float | None) -> Floats:
    """Return how far rows are from their neighbours in one feature, (n_rows,).

    Examples
    --------
    >>> import numpy as np
    >>> mean_distances(np.array([3.0]), np.array([[3.0, 5.0]]), 2.0)
    array([0.5])
    >>> mean_distances(np.array(["a"]), np.array([["a", "b"]]), None)
    array([0.5])

    Shapes: here (n_rows,); there (n_rows, n_neighbors).
    """
    one, other = np.broadcast_arrays(here[:, None], there)
    lacks_one, lacks_other = _is_missing(one), _is_missing(other)
    differs = np.asarray(one != other, np.bool_) & ~(lacks_one & lacks_other)
    distance = differs.astype(np.float64)
    if scale:
        both = differs & ~lacks_one & ~lacks_other
        gap = np.abs(one[both].astype(np.float64) - other[both].astype(np.float64))
        distance[both] = np.minimum(gap / scale, _FARTHEST)
    return np.asarray(distance.mean(axis=1), np.float64)


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.flat], np.bool_).reshape(values.shape)
    return np.asarray(values != values, np.bool_)


def deviation(values: Floats) -> float:
    """Return the standard deviation of the finite values; 0 where there are none. Shapes: values (n,)."""
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) else 0.0
