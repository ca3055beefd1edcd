"""Making the predicted spread fit held-out data."""

from ibug.calibration._calibration import (
    Calibration,
    check_without_validation,
    halves,
    rows_for_conformal,
    variance_calibrator,
)
from ibug.calibration._conformal import (
    BoxCalibrator,
    ConformalCalibrator,
    DistributionConformal,
    ScaleConformal,
    calibrator_from_state,
    calibrator_state,
    conformal_calibrator,
)
from ibug.calibration._likelihood_ratio import LikelihoodRatio
from ibug.calibration._recalibrated import Recalibrated
from ibug.calibration._variance import VarianceCalibrator, check_calibrate

__all__ = [
    "BoxCalibrator",
    "Calibration",
    "ConformalCalibrator",
    "DistributionConformal",
    "LikelihoodRatio",
    "Recalibrated",
    "ScaleConformal",
    "VarianceCalibrator",
    "calibrator_from_state",
    "calibrator_state",
    "check_calibrate",
    "check_without_validation",
    "conformal_calibrator",
    "halves",
    "rows_for_conformal",
    "variance_calibrator",
]
