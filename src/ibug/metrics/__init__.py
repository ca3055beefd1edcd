"""Scores of probabilistic predictions: functions of ``(y, distribution)``, lower is better unless stated otherwise.

A distribution is what ``predict_dist`` returns, or a tuple ``(means, standard deviations)`` of any other method. Scores
of intervals and quantiles also take the arrays of ``predict_interval`` and ``predict_quantiles``.
"""

from ibug.metrics._calibration import calibration_curve, mace, miscalibration_area, pit, rms_calibration_error
from ibug.metrics._drift import Drift, DriftTest, drift
from ibug.metrics._evaluate import Scores, evaluate
from ibug.metrics._inputs import Reduce, as_distribution, as_interval, as_points, as_quantiles, as_targets, reduced
from ibug.metrics._scorers import (
    DistributionScorer,
    Scoring,
    crps_scorer,
    interval_scorer,
    nll_scorer,
    predict_dist,
    resolve_scoring,
)
from ibug.metrics._scores import (
    check_score,
    coverage,
    crps,
    crps_skill,
    energy_score,
    interval_score,
    mae,
    mean_width,
    nll,
    rmse,
    sharpness,
    variogram_score,
)

__all__ = [
    "DistributionScorer",
    "Drift",
    "DriftTest",
    "Reduce",
    "Scores",
    "Scoring",
    "as_distribution",
    "as_interval",
    "as_points",
    "as_quantiles",
    "as_targets",
    "calibration_curve",
    "check_score",
    "coverage",
    "crps",
    "crps_scorer",
    "crps_skill",
    "drift",
    "energy_score",
    "evaluate",
    "interval_score",
    "interval_scorer",
    "mace",
    "mae",
    "mean_width",
    "miscalibration_area",
    "nll",
    "nll_scorer",
    "pit",
    "predict_dist",
    "reduced",
    "resolve_scoring",
    "rms_calibration_error",
    "rmse",
    "sharpness",
    "variogram_score",
]
