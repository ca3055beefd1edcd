"""CBURegressor as a description for a file, and from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibug.persistence._session import Loading, Saving
from ibug.persistence.estimators._parts import (
    describe_calibration,
    describe_estimator,
    restore_columns,
    restore_estimator,
)


def describe_cbu(regressor: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    """Return the description of a CBURegressor."""
    description = describe_estimator(regressor, regressor.get_params(deep=False), saving, fitted=fitted)
    if fitted:
        learned = {
            **describe_calibration(regressor),
            "virtual_ensembles_count_": regressor.virtual_ensembles_count_,
            "targets": regressor.training_targets_,
        }
        description["learned"] = saving.encoder.encode(learned, "learned")
    return description


def restore_cbu(cls: type, spec: dict[str, Any], loading: Loading) -> tuple[Any, dict[str, Any]]:
    """Return the CBURegressor of a description without its calibration, and what it has learned, if anything."""
    regressor, model = restore_estimator(cls, spec, loading)
    if "learned" not in spec:
        return regressor, {}
    learned = loading.decoder.decode(spec["learned"])
    restore_columns(regressor, learned)
    regressor.estimator_ = model
    regressor.virtual_ensembles_count_ = learned["virtual_ensembles_count_"]
    regressor.training_targets_ = np.asarray(learned["targets"], np.float64)
    return regressor, learned
