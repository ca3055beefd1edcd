"""Scores of probabilistic predictions: functions of ``(y, distribution)``, lower is better unless they say otherwise.

A distribution is what ``predict_dist`` returns, or a tuple ``(means, standard deviations)`` of any other method. Scores
of intervals and quantiles also take the arrays of ``predict_interval`` and ``predict_quantiles``.
"""

from ibug.metrics._calibration_curve import calibration_curve
from ibug.metrics._check_score import check_score
from ibug.metrics._coverage import coverage
from ibug.metrics._crps import crps
from ibug.metrics._crps_skill import crps_skill
from ibug.metrics._drift import Drift, DriftTest, drift
from ibug.metrics._energy_score import energy_score
from ibug.metrics._evaluate import evaluate
from ibug.metrics._inputs import Reduce, as_distribution, as_interval, as_points, as_quantiles, as_targets, reduced
from ibug.metrics._interval_score import interval_score
from ibug.metrics._mace import mace
from ibug.metrics._mae import mae
from ibug.metrics._mean_width import mean_width
from ibug.metrics._miscalibration_area import miscalibration_area
from ibug.metrics._nll import nll
from ibug.metrics._pit import pit
from ibug.metrics._rms_calibration_error import rms_calibration_error
from ibug.metrics._rmse import rmse
from ibug.metrics._scorers import DistributionScorer, crps_scorer, interval_scorer, nll_scorer, predict_dist
from ibug.metrics._scores import Scores
from ibug.metrics._scoring import Scoring, resolve_scoring, weighted_scoring
from ibug.metrics._sharpness import sharpness
from ibug.metrics._variogram_score import variogram_score

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
    "weighted_scoring",
]
