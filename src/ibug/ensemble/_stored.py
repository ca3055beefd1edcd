"""What the regressors of this folder share when they are saved: columns and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibug.calibration import calibrator_from_state, calibrator_state
from ibug.stored import describe_columns, require, restore_columns


def describe_calibration(regressor: Any) -> dict[str, Any]:
    """Return the features and the calibration as plain values."""
    return {
        **describe_columns(regressor),
        "gamma_": regressor.gamma_,
        "delta_": regressor.delta_,
        "conformal": calibrator_state(regressor.conformal_),
    }


def restore_calibration(regressor: Any, learned: Mapping[str, Any]) -> None:
    """Set what `describe_calibration` has told."""
    restore_columns(regressor, learned)
    for name in ("gamma_", "delta_"):
        require(isinstance(learned[name], (int, float)), f"its {name} is no number")
        setattr(regressor, name, learned[name])
    regressor.conformal_ = calibrator_from_state(learned["conformal"])
