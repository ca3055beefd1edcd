"""Making the predicted spread fit held-out data."""

from ibug.calibration._variance import VarianceCalibrator

__all__ = ["VarianceCalibrator"]
