"""Probabilistic regressors besides IBUG, and ensembles of them."""

from ibug.ensemble._cbu import CBURegressor, check_model, usable_count
from ibug.ensemble._probabilistic import ProbabilisticEnsemble

__all__ = ["CBURegressor", "ProbabilisticEnsemble", "check_model", "usable_count"]
