"""The estimators of ibug as descriptions for a file: the one place that takes them apart and puts them together."""

from ibug.persistence.estimators._cbu import describe_cbu, restore_cbu
from ibug.persistence.estimators._ensemble import describe_ensemble, restore_ensemble
from ibug.persistence.estimators._ibug import check_features, check_needs, describe_ibug, restore_ibug
from ibug.persistence.estimators._parts import (
    describe_columns,
    describe_estimator,
    restore_calibration,
    restore_columns,
    restore_estimator,
)

__all__ = [
    "check_features",
    "check_needs",
    "describe_cbu",
    "describe_columns",
    "describe_ensemble",
    "describe_estimator",
    "describe_ibug",
    "restore_calibration",
    "restore_cbu",
    "restore_columns",
    "restore_ensemble",
    "restore_estimator",
    "restore_ibug",
]
