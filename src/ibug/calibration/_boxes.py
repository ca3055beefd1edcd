"""Boxes that hold all targets of a row at once, by the largest error of its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ibug._typing import Floats
from ibug.calibration._recalibrated import Recalibrated
from ibug.calibration._score_map import ScoreMap
from ibug.calibration._stored import map_from_state, map_state
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError


class BoxCalibrator:
    """Split conformal boxes: each side is a central interval of its target, all of the same score.

    The score of a row is the largest ``|Φ⁻¹(F(y))|`` of its targets: how far the worst of them is from its median, in
    units of its own spread. If held-out rows and new rows are exchangeable, and the distributions were made without the
    held-out rows' targets, a box of coverage p holds all targets of a new row at once with probability p at least.

    Parameters
    ----------
    map_ : ScoreMap
        The scores of the held-out rows.
    """

    def __init__(self, map_: ScoreMap) -> None:
        self.map_ = map_

    @classmethod
    def fit(cls, marginals: Sequence[Distribution], y: Floats, weights: Floats | None = None) -> BoxCalibrator:
        """Learn from held-out rows.

        Parameters
        ----------
        marginals : sequence of Distribution
            The distributions of each target, predicted for n held-out rows.
        y : ndarray of shape (n, d)
            Their observed values.
        weights : ndarray of shape (n,) or None
            Of the rows.
        """
        if y.ndim != 2 or y.shape[1] != len(marginals) or not len(y):
            raise InvalidInputError(
                f"Boxes of {len(marginals)} targets need observed values of shape (n, {len(marginals)}), n of at least "
                f"1; got {y.shape}."
            )
        scores = np.max([np.abs(one.middle_score(y[:, j])) for j, one in enumerate(marginals)], axis=0)
        return cls(ScoreMap.of_absolute_scores(scores, weights))

    @property
    def n_rows(self) -> int:
        """The number of held-out rows."""
        return len(self.map_.scores)

    def box(self, marginals: Sequence[Distribution], coverage: Any) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of boxes, (n, d) each, or (n, d, m) for m coverages.

        Parameters
        ----------
        marginals : sequence of Distribution
            The distributions of each target, predicted for n rows.
        coverage : float or array-like of shape (m,)
            The probability that a box shall hold all targets at once; or several.
        """
        ends = []
        for one in marginals:
            whole = Recalibrated(one, [self.map_], np.zeros(one.shape, np.intp))
            ends.append(whole.interval(coverage))
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return lower, upper

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        return map_state(self.map_)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> BoxCalibrator:
        """Return the calibrator that has this state."""
        return cls(map_from_state(state))
