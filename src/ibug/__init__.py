"""Prediction intervals and whole distributions from any trained gradient-boosted tree regressor.

The method is IBUG: Brophy and Lowd, *Instance-Based Uncertainty Estimation for Gradient-Boosted Regression Trees*,
NeurIPS 2022; "the paper" in these documents.
"""

from ibug._installed import VERSION, warn_of_namesake
from ibug.calibration import VarianceCalibrator
from ibug.ensemble import CBURegressor, ProbabilisticEnsemble
from ibug.neighbors import LeafIndex
from ibug.online import AdaptiveIntervals
from ibug.persistence import load
from ibug.regressor import IBUGRegressor

__all__ = [
    "AdaptiveIntervals",
    "CBURegressor",
    "IBUGRegressor",
    "LeafIndex",
    "ProbabilisticEnsemble",
    "VarianceCalibrator",
    "__version__",
    "load",
]
__version__ = VERSION

warn_of_namesake()
