"""The sample of validation rows that later rows are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ibug._typing import Floats
from ibug._validation import require
from ibug._weights import effective_rows, weighted_quantile

#: More values than this are represented by as many quantiles.
MOST_KEPT = 1000

#: Where a validation row was predicted by another model, or by other neighbours, than a new row: the difference between
#: distribution functions, and between coverages, that is no evidence. `benchmarks/drift.py` measures the false alarms.
TOLERANCE = 0.03

# Of fewer consecutive rows a correlation is chance.
_FEWEST_CONSECUTIVE = 100

_NAMES, _FLAGS = ("similarity", "prediction", "pit"), ("same_model", "same_index")


@dataclass(frozen=True, eq=False)
class Reference:
    """Affinity scores, predictions and transforms of validation rows, each ascending; empty where unknown."""

    similarity: Floats = field(default_factory=lambda: np.empty(0))  # (n,) affinity scores
    prediction: Floats = field(default_factory=lambda: np.empty((0, 1)))  # (n, n_targets)
    pit: Floats = field(default_factory=lambda: np.empty(0))  # (n,) F(y), of one target
    same_model: bool = True  # whether the model itself has predicted the rows, not clones or one of some of its rows
    same_index: bool = True  # whether their neighbours came from the index that new rows have theirs from
    order: float = float("nan")  # the correlation of the normal scores of consecutive rows; NaN where unknown

    @property
    def samples(self) -> dict[str, Floats]:
        """The samples that are known, by name."""
        return {name: getattr(self, name) for name in _NAMES if len(getattr(self, name))}

    @property
    def tolerance(self) -> dict[str, float]:
        """The difference between shares of rows that is no evidence of drift, by name."""
        same_neighbors = self.same_model and self.same_index
        return {"prediction": 0.0 if self.same_model else TOLERANCE, "pit": 0.0 if same_neighbors else TOLERANCE}

    def for_other_model(self) -> Reference:
        """Return the reference for a model of more rows, in which new rows have other affinity scores."""
        return replace(self, similarity=np.empty(0), same_model=False, same_index=False)

    def for_other_index(self) -> Reference:
        """Return the reference for the same model with other training rows: affinity scores change with them."""
        return replace(self, similarity=np.empty(0), same_index=False)

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return {name: getattr(self, name) for name in (*_NAMES, *_FLAGS, "order")}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Reference:
        """Return the reference that has this state; impossible values are refused."""
        arrays = [np.asarray(state[name], np.float64) for name in _NAMES]
        flags = [state[name] for name in _FLAGS]
        order = state.get("order", float("nan"))
        possible = all(isinstance(flag, bool) for flag in flags) and isinstance(order, float)
        for name, array in zip(_NAMES, arrays, strict=True):
            possible &= array.ndim == (2 if name == "prediction" else 1) and len(array) <= MOST_KEPT
            possible &= bool(np.all(np.isfinite(array)) and np.all(np.diff(array, axis=0) >= 0))
            possible &= name == "prediction" or bool(np.all((array >= 0) & (array <= 1)))
        require(possible, "what it keeps of its validation rows is impossible")
        return cls(arrays[0], arrays[1], arrays[2], flags[0], flags[1], order)


def order_correlation(transforms: Floats) -> float:
    """Return the correlation of the normal scores of consecutive rows, 0 where it may be chance; NaN of too few.

    Shapes: transforms (n,).
    """
    if len(transforms) < _FEWEST_CONSECUTIVE:
        return float("nan")
    scores = ndtri(np.clip(transforms, 1e-3, 1 - 1e-3))
    square = float(np.mean(np.square(scores)))
    found = float(np.mean(scores[1:] * scores[:-1])) / square if square > 0 else 0.0
    return found if abs(found) > 3.0 / np.sqrt(len(scores)) else 0.0


def ordered_sample(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the values in ascending order, or 1,000 quantiles of more, column by column; with weights, quantiles.

    Shapes: values (n,) or (n, n_columns); weights (n,).
    """
    if values.ndim > 1:
        return np.stack([ordered_sample(column, weights) for column in values.T], axis=1)
    n = min(max(1, round(effective_rows(weights, len(values)))), MOST_KEPT)
    if weights is None and len(values) <= MOST_KEPT:
        return np.sort(values)
    return np.asarray(weighted_quantile(values, (np.arange(n) + 0.5) / n, weights))
