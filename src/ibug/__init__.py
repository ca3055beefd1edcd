"""Prediction intervals and whole distributions from any trained gradient-boosted tree regressor.

The method is IBUG: Brophy and Lowd, *Instance-Based Uncertainty Estimation for Gradient-Boosted Regression Trees*,
NeurIPS 2022; "the paper" in these documents.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ibug._installed import VERSION, warn_of_namesake

if TYPE_CHECKING:
    from ibug.calibration import VarianceCalibrator
    from ibug.ensemble import CBURegressor, ProbabilisticEnsemble
    from ibug.neighbors import LeafIndex, Sampling
    from ibug.online import AdaptiveIntervals
    from ibug.persistence import load
    from ibug.regressor import IBUGRegressor

__all__ = [
    "AdaptiveIntervals",
    "CBURegressor",
    "IBUGRegressor",
    "LeafIndex",
    "ProbabilisticEnsemble",
    "Sampling",
    "VarianceCalibrator",
    "__version__",
    "load",
]
__version__ = VERSION

# What is asked for is imported then: scikit-learn and SciPy take seconds, and the command must start at once.
_HOMES = {
    "AdaptiveIntervals": "ibug.online",
    "CBURegressor": "ibug.ensemble",
    "IBUGRegressor": "ibug.regressor",
    "LeafIndex": "ibug.neighbors",
    "ProbabilisticEnsemble": "ibug.ensemble",
    "Sampling": "ibug.neighbors",
    "VarianceCalibrator": "ibug.calibration",
    "load": "ibug.persistence",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and find_spec(f"ibug.{name}") is not None:
        return import_module(f"ibug.{name}")  # ibug.metrics, say
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


warn_of_namesake()
