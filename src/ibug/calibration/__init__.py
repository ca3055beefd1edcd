"""Making the predicted spread fit held-out data."""

from ibug.calibration._boxes import BoxCalibrator
from ibug.calibration._conformal import (
    ConformalCalibrator,
    DistributionConformal,
    ScaleConformal,
    conformal_calibrator,
)
from ibug.calibration._likelihood_ratio import LikelihoodRatio
from ibug.calibration._recalibrated import Recalibrated
from ibug.calibration._stored import calibrator_from_state, calibrator_state
from ibug.calibration._variance import VarianceCalibrator, check_calibrate

__all__ = [
    "BoxCalibrator",
    "ConformalCalibrator",
    "DistributionConformal",
    "LikelihoodRatio",
    "Recalibrated",
    "ScaleConformal",
    "VarianceCalibrator",
    "calibrator_from_state",
    "calibrator_state",
    "check_calibrate",
    "conformal_calibrator",
]
