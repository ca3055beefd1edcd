"""Predictions of rows and the neighbours behind them, each row searched once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats, Integers

if TYPE_CHECKING:
    from typing import Self  # in typing from Python 3.11 on


@dataclass(frozen=True)
class Neighbors:
    """The training rows behind predictions.

    Attributes
    ----------
    similarity : ndarray of shape (n_rows,)
        What ``affinity_score`` says of all rows.
    means : ndarray of shape (n_rows,) or (n_rows, n_targets)
        The model's predictions of all rows, as ``monitor`` compares them.
    affinities, indices : ndarray of shape (n_kept, k)
        What ``kneighbors`` says of the rows whose neighbours are kept.
    """

    similarity: Floats
    means: Floats
    affinities: NDArray[np.int32]
    indices: Integers


@dataclass(frozen=True)
class Predictions:
    """Predicted distributions of rows, with the point predictions.

    They have the methods ``predict_dist`` and ``predict`` of the estimator that made them, so that scores of the same
    rows need no second search.

    Parameters
    ----------
    distribution : batched distribution of n_rows rows
        What ``predict_dist`` says.
    points : ndarray of shape (n_rows,), or (n_rows, d) of several targets
        What ``predict`` says.
    training_targets_ : ndarray of shape (n_train,) or (n_train, d), or None
        The targets that the estimator was fitted on, where it keeps them.
    uncalibrated : batched distribution of n_rows rows, or None
        What it would say without calibration, if that was asked for and the estimator has such a form.
    """

    distribution: Any
    points: Floats
    training_targets_: Floats | None = None
    uncalibrated: Any = None

    @classmethod
    def of(cls, estimator: Any, X: Any, *, both: bool = False) -> Self:
        """Predict rows. Shapes: X (n_rows, n_features)."""
        if hasattr(estimator, "batches"):
            return cls.with_neighbors(estimator, X, 1, np.arange(0), both=both)[0]
        plain = estimator.uncalibrated().predict_dist(X) if both and hasattr(estimator, "uncalibrated") else None
        targets = getattr(estimator, "training_targets_", None)
        return cls(estimator.predict_dist(X), _points(estimator, X), targets, plain)

    @classmethod
    def with_neighbors(
        cls, estimator: Any, X: Any, n_neighbors: int, kept: Integers | None = None, *, both: bool = False
    ) -> tuple[Self, Neighbors]:
        """Predict rows and find their neighbours by one search, batch by batch, which bounds the memory.

        Shapes: X (n_rows, n_features).
        """
        from sklearn.utils.validation import _num_samples  # takes long to import

        n_rows, k = _num_samples(X), max(n_neighbors, estimator.k_)
        kept = np.arange(n_rows) if kept is None else kept
        rules = [estimator.rule_, estimator.rule_.uncalibrated()] if both else [estimator.rule_]
        parts: list[list[Any]] = [[] for _ in rules]
        points, similarity = np.empty((n_rows, *estimator.training_targets_.shape[1:])), np.empty(n_rows)
        affinities, indices = np.empty((len(kept), k), np.int32), np.empty((len(kept), k), np.int64)
        for batch in estimator.batches(X, _most([*(rule.needs for rule in rules), {"targets": k}])):
            for part, rule in zip(parts, rules, strict=True):
                part.append(rule.distribution(batch))
            where = batch.where
            points[where] = batch.mean
            similarity[where] = batch.affinities[:, : estimator.k_].mean(axis=1) / batch.n_trees
            first, last = np.searchsorted(kept, [where.start, where.stop])
            inside = kept[first:last] - where.start
            affinities[first:last], indices[first:last] = batch.affinities[inside, :k], batch.rows[inside, :k]
        means = points
        if estimator.source_.leaves.reader.predicts_by_walk:  # equal to the library's own, but not to the last bit
            points = _points(estimator, X)
        found = [type(part[0]).concatenate(part) for part in parts]
        predictions = cls(found[0], points, estimator.training_targets_, found[1] if both else None)
        return predictions, Neighbors(similarity, means, affinities, indices)

    def before_calibration(self) -> Self | None:
        """Return the same rows as predicted without calibration; None where that is not known.

        Point predictions are the same ones.
        """
        return None if self.uncalibrated is None else replace(self, distribution=self.uncalibrated)

    def by_target(self, rule: Any) -> list[Self]:
        """Return the predictions of each of several targets, with its conformal calibration if there is one."""
        after = rule.marginals(self.distribution)
        plain = self.uncalibrated
        before = [None] * len(after) if plain is None else rule.uncalibrated().marginals(plain)
        targets = self.training_targets_
        assert targets is not None, "a rule of several targets comes with them"
        return [type(self)(one, self.points[:, j], targets[:, j], before[j]) for j, one in enumerate(after)]

    def predict_dist(self, X: Any) -> Any:
        """Return the distributions of the rows that were predicted."""
        return self.distribution

    def predict(self, X: Any) -> Floats:
        """Return the point predictions of the rows that were predicted, (n_rows,)."""
        return self.points


def _most(needs: list[Mapping[str, int]]) -> dict[str, int]:
    """Return the largest number of neighbours, by quantity."""
    return {name: max(one.get(name, 0) for one in needs) for name in {name: 0 for one in needs for name in one}}


def _points(estimator: Any, X: Any) -> Floats:
    return np.asarray(estimator.predict(X), np.float64)
