"""What was predicted for all rows, once: scores, charts and rows are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug.distributions import Distribution
from ibug.metrics import Scores, evaluate

Floats = NDArray[np.float64]

#: Coverages of the intervals that are looked at, beside the one that was asked for.
LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Predicted:
    """The laws of all rows.

    Attributes
    ----------
    law
        One law per row.
    points, lower, upper, y : ndarray of shape (n_rows,)
        Point predictions, ends of the central interval, observed values.
    coverage
        Of that interval.
    scores
        All scores.
    """

    law: Distribution
    points: Floats
    lower: Floats
    upper: Floats
    y: Floats
    coverage: float
    scores: Scores

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether the interval holds the observed value, (n_rows,)."""
        return (self.lower <= self.y) & (self.y <= self.upper)

    @property
    def width(self) -> Floats:
        """The width of the interval, (n_rows,)."""
        return self.upper - self.lower


class _Known:
    """Predicts what was predicted already, so that scores need no second search."""

    def __init__(self, law: Distribution, points: Floats, targets: Any) -> None:
        self._law, self._points, self._targets = law, points, targets

    def predict_dist(self, X: Any) -> Distribution:
        return self._law

    def predict(self, X: Any) -> Floats:
        return self._points


def predict(estimator: Any, X: Any, y: Floats, coverage: float) -> Predicted:
    """Predict all rows and score the predictions."""
    law = estimator.predict_dist(X)
    points = np.asarray(estimator.predict(X), np.float64)
    lower, upper = law.interval(coverage)
    known = _Known(law, points, getattr(estimator, "_targets", None))
    levels = sorted({*LEVELS, coverage})
    with np.errstate(invalid="ignore"):  # means of infinite widths
        scores = evaluate(known, X, y, levels=levels)
    return Predicted(law, points, lower, upper, y, coverage, scores)
