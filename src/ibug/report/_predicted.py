"""The predictions of all rows, made once: scores, charts and the explorer use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug.describe import Predictions
from ibug.distributions import Distribution
from ibug.metrics import Scores, evaluate

#: Coverages of the intervals that are scored, beside the one that was asked for.
LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Predicted:
    """Predictions of all rows, with their scores.

    Attributes
    ----------
    distribution
        One distribution per row.
    points, lower, upper, y : ndarray of shape (n_rows,)
        Point predictions, ends of the central interval, observed values.
    coverage
        The coverage of that interval.
    scores
        All scores.
    """

    distribution: Distribution
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


def scored(predictions: Predictions, X: Any, y: Floats, coverage: float, groups: Any = None) -> Predicted:
    """Score the predictions of rows X with the observed values y, (n_rows,); also by group, as in `evaluate`."""
    lower, upper = predictions.distribution.interval(coverage)
    levels = sorted({*LEVELS, coverage})
    with np.errstate(invalid="ignore"):  # means of infinite widths
        scores = evaluate(predictions, X, y, levels=levels, groups=groups)
    return Predicted(predictions.distribution, predictions.points, lower, upper, y, coverage, scores)
