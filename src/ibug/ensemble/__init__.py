"""Other probabilistic regressors, and ensembles."""

from ibug.ensemble._cbu import CBURegressor, check_model, usable_count
from ibug.ensemble._probabilistic import ProbabilisticEnsemble

__all__ = ["CBURegressor", "ProbabilisticEnsemble", "check_model", "usable_count"]
