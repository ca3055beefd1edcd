"""All scores of one model of several targets on one set of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._inputs import check_target_names, check_weights
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError
from ibug.metrics._coverage import coverage
from ibug.metrics._crps import crps
from ibug.metrics._energy_score import energy_score
from ibug.metrics._inputs import check_levels, reduced
from ibug.metrics._mae import mae
from ibug.metrics._mean_width import mean_width
from ibug.metrics._rmse import rmse
from ibug.metrics._scores import Scores
from ibug.metrics._several_inputs import as_several_targets
from ibug.metrics._variogram_score import variogram_score


def evaluate_several(
    estimator: Any, X: Any, y: ArrayLike, levels: Sequence[float], sample_weight: ArrayLike | None
) -> Scores:
    """Return the scores of all targets together, and those of each one. Shapes: sample_weight (n,)."""
    names = estimator.target_names_
    shape = np.shape(y)
    if len(shape) != 2 or shape[1] != len(names):
        n_rows = shape[0] if shape else "n"
        raise InvalidInputError(
            f"This estimator has {len(names)} targets: y must have the shape ({n_rows}, {len(names)}); got {shape}."
        )
    check_target_names(names, y, "y")
    values = as_several_targets(y)
    weights = None if sample_weight is None else check_weights(sample_weight, len(values))
    distribution, points = estimator.predict_dist(X), estimator.predict(X)
    scores: dict[str, float] = {
        "energy_score": energy_score(values, distribution, sample_weight=weights),
        "variogram_score": variogram_score(values, distribution, sample_weight=weights),
    }
    meanings = {
        "energy_score": "score of all targets together, in units of their deviations",
        "variogram_score": "whether the dependence between targets is right",
    }
    coverages = check_levels(levels, "levels")
    for level in coverages:
        percent = f"{100 * level:g}"
        scores[f"box_coverage_{percent}"] = _box_coverage(estimator, X, values, float(level), weights)
        meanings[f"box_coverage_{percent}"] = f"share of rows with all values inside the {percent} % box"
    for j, name in enumerate(names):
        one, own = distribution.marginal(j), values[:, j]
        for metric, predicted, meaning in (
            (rmse, points[:, j], "root mean squared error of the point prediction"),
            (mae, points[:, j], "mean absolute error of the point prediction"),
            (crps, one, "continuous ranked probability score"),
        ):
            scores[f"{name}_{metric.__name__}"] = metric(own, predicted, sample_weight=weights)
            meanings[f"{name}_{metric.__name__}"] = meaning
    for level in coverages:
        percent, ends = f"{100 * level:g}", estimator.predict_interval(X, float(level))
        for j, name in enumerate(names):
            for kind, metric, meaning in (
                ("coverage", coverage, f"share of values inside the {percent} % interval"),
                ("width", mean_width, f"mean width of the {percent} % interval"),
            ):
                scores[f"{name}_{kind}_{percent}"] = metric(values[:, j], ends[:, j], sample_weight=weights)
                meanings[f"{name}_{kind}_{percent}"] = meaning
    return Scores(scores, meanings, len(values))


def _box_coverage(estimator: Any, X: Any, y: Floats, level: float, weights: Floats | None) -> float:
    """Return the share of rows inside their boxes; NaN where the estimator had no rows to size boxes with."""
    try:
        boxes = estimator.predict_interval(X, level, joint=True)
    except InvalidInputError:
        return float("nan")
    inside = ((boxes[:, :, 0] <= y) & (y <= boxes[:, :, 1])).all(axis=1)
    return float(reduced(inside.astype(np.float64), "mean", weights))
