"""The rows of the explorer: predictions, densities, neighbours, and the features in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ibug._typing import Floats, Integers
from ibug.report._densities import densities
from ibug.report._features import Feature, check_train, differences, feature, names_of
from ibug.report._pack import pack
from ibug.report._predicted import Predicted
from ibug.report._summary import Familiarity

_MOST_TICKS = 100  # of a rug
_MOST_DIFFERENCES = 8
_MOST_FEATURE_BYTES = 1_500_000


def choose(n_rows: int, most: int) -> Integers:
    """Return the rows of the explorer, ascending: all, or a random sample that is the same each time."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def named(familiar: Familiarity | None, rows: Integers, ids: Sequence[Any] | None) -> dict[str, Any]:
    """Return what the table says of rows whatever the target: numbers, names, and how familiar they are."""
    return {
        "row": pack(rows, "int32"),
        "id": None if ids is None else [str(ids[row]) for row in rows],
        "affinity": None if familiar is None else pack(familiar.score[rows], "float64"),
        "threshold": None if familiar is None else familiar.threshold,
    }


def predictions(found: Predicted, rows: Integers) -> dict[str, Any]:
    """Return the numbers of the table."""
    std = found.distribution.std()
    return {
        "prediction": pack(found.points[rows], "float64"),
        "lower": pack(found.lower[rows], "float64"),
        "upper": pack(found.upper[rows], "float64"),
        "truth": pack(found.y[rows], "float64"),
        "std": pack(std[rows], "float64"),
        # Compared with all rows, not only with those of the table.
        "wider": pack(np.searchsorted(np.sort(std), std[rows]) / len(std), "float32"),
        "density": densities(found.distribution[rows], found.lower[rows], found.upper[rows]),
    }


@dataclass(frozen=True)
class Near:
    """The nearest training rows of the explorer's rows: a list of those that occur, and for each row places in it.

    Parameters
    ----------
    affinities, indices : ndarray of shape (n_rows, at least k)
        What ``kneighbors`` says of the rows.
    count : int
        The number of neighbours to list; the rug shows more of them.
    k : int
        The number of neighbours that predictions look at.
    familiar : Familiarity
        How familiar all rows are.
    means : ndarray of shape (n_rows,) or (n_rows, n_targets)
        The model's predictions of all rows.
    """

    affinities: NDArray[np.int32]
    indices: Integers
    count: int
    k: int
    familiar: Familiarity
    means: Floats

    @cached_property
    def _occurring(self) -> tuple[Integers, Integers]:
        ticks = self.indices[:, : max(self.count, min(self.k, _MOST_TICKS))]
        occurring, places = np.unique(ticks, return_inverse=True)
        return occurring, places.reshape(ticks.shape)

    def listed(self, n_trees: int, train_ids: Any) -> dict[str, Any]:
        """Return the neighbours whatever the target."""
        occurring, places = self._occurring
        return {
            "k": self.k,
            "shown": self.count,
            "trees": n_trees,
            "row": pack(occurring),
            "id": None if train_ids is None else [str(train_ids[row]) for row in occurring],
            "places": pack(places),
            "affinity": pack(self.affinities[:, : self.count]),
        }

    def targets(self, targets: Floats) -> dict[str, Any]:
        """Return what the neighbours had of one target. Shapes: targets (n_train,)."""
        used = targets[self.indices[:, : self.k]]
        return {
            "target": pack(targets[self._occurring[0]], "float64"),
            "mean": pack(used.mean(axis=1), "float32"),
            "std": pack(used.std(axis=1), "float32"),
            "low": pack(used.min(axis=1), "float32"),
            "high": pack(used.max(axis=1), "float32"),
        }


def features(estimator: Any, X: Any, X_train: Any, rows: Integers, indices: Integers | None) -> dict[str, Any]:
    """Return the values of the rows' features, and those in which they differ from their neighbours.

    Shapes: indices (n_rows, shown).
    """
    chosen = _safe_indexing(X, rows)
    if X_train is not None:
        check_train(X_train, chosen.shape[1], len(estimator.training_targets_))
    every = [feature(name, j, chosen, X_train) for j, name in enumerate(names_of(X, estimator))]
    result: dict[str, Any] = {"columns": _columns(every), "differences": None}
    if X_train is not None and indices is not None:
        found = differences(every, indices, _MOST_DIFFERENCES)
        own = np.stack([each.here for each in every], axis=1)
        here = np.take_along_axis(own, np.maximum(found.features, 0), axis=1)
        result["differences"] = {
            "feature": pack(found.features),
            "distance": pack(found.distances, "float32"),
            "here": pack(here),
            "there": pack(found.values),
            "count": pack(found.counts),
        }
    return result


def _columns(every: list[Feature]) -> list[dict[str, Any]]:
    """Return name and texts of each feature, and its values as long as there is room."""
    columns, size = [], 0
    for each in every:
        packed = pack(each.here)
        size += len(packed["data"])
        values = packed if size <= _MOST_FEATURE_BYTES else None
        columns.append(
            {"name": each.name, "texts": each.texts, "values": values, "categorical": each.texts is not None}
        )
    return columns
