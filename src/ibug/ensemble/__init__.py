"""Probabilistic regressors beside IBUG, and several of them together."""

from ibug.ensemble._calibration import Calibration
from ibug.ensemble._catboost import check_model, usable_count
from ibug.ensemble._cbu import CBURegressor
from ibug.ensemble._probabilistic import ProbabilisticEnsemble

__all__ = ["CBURegressor", "Calibration", "ProbabilisticEnsemble", "check_model", "usable_count"]
