"""What the files of all regressors share: the model, parameters, columns and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from ibug._inputs import require
from ibug.calibration import ConformalCalibrator, calibrator_from_state, calibrator_state
from ibug.persistence._models import load_model, save_model
from ibug.persistence._parameters import encode_parameters
from ibug.persistence._session import Loading, Saving


def describe_estimator(regressor: Any, parameters: dict[str, Any], saving: Saving, *, fitted: bool) -> dict[str, Any]:
    """Return the parameters of a regressor around a model, and the model if it is fitted."""
    estimator = parameters.pop("estimator")
    description: dict[str, Any] = {}
    if fitted:
        before = len(saving.model_digests)
        description["model"] = save_model(regressor.estimator_, saving)
        description["learned_with"] = sorted(saving.model_digests[before:])
    if not fitted or estimator is not regressor.estimator_:  # else it was trained before, and is stored already
        description["estimator"] = save_model(estimator, saving, fitted=regressor.prefit)
    encoded = encode_parameters(describe_parameters(parameters), saving.encoder, "parameters")
    return {"parameters": encoded, **description}


def restore_estimator(cls: type, spec: dict[str, Any], loading: Loading) -> tuple[Any, Any]:
    """Return a regressor with its parameters, and its model if it was fitted, else None."""
    model, unchanged = None, False
    if "model" in spec:
        before = len(loading.model_digests)
        model = load_model(spec["model"], loading)
        unchanged = sorted(loading.model_digests[before:]) == spec["learned_with"]
    estimator = load_model(spec["estimator"], loading) if "estimator" in spec else model
    regressor = cls(estimator=estimator, **restore_parameters(loading.decoder.decode(spec["parameters"])))
    if model is not None:
        require(unchanged, "its model does not match its index: it is not the one that the rest was learned with")
    return regressor, model


def describe_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with a conformal calibrator as plain values."""
    conformal = parameters["conformal"]
    if isinstance(conformal, ConformalCalibrator):
        parameters["conformal"] = {"calibrator": calibrator_state(clone(conformal))}
    return parameters


def restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as the constructor takes them."""
    if isinstance(parameters["conformal"], dict):
        parameters["conformal"] = calibrator_from_state(parameters["conformal"]["calibrator"])
    return parameters


def describe_columns(regressor: Any) -> dict[str, Any]:
    """Return number, names and types of the features."""
    return {
        "n_features_in_": regressor.n_features_in_,
        "feature_names_in_": getattr(regressor, "feature_names_in_", None),
        "feature_types_": regressor.feature_types_,
    }


def restore_columns(regressor: Any, learned: Mapping[str, Any]) -> None:
    """Set number, names and types of the features."""
    n, names = learned["n_features_in_"], learned["feature_names_in_"]
    require(isinstance(n, int) and n > 0, "the number of its features is impossible")
    regressor.n_features_in_ = n
    if names is not None:
        names = np.asarray(names, object)
        known = names.shape == (n,) and all(isinstance(name, str) for name in names)
        require(known, "its features' names are impossible")
        regressor.feature_names_in_ = names
    types = learned["feature_types_"]
    require(isinstance(types, list) and len(types) == n, "its features' types are impossible")
    regressor.feature_types_ = types


def describe_calibration(regressor: Any) -> dict[str, Any]:
    """Return the features and the calibration as plain values."""
    return {
        **describe_columns(regressor),
        "gamma_": regressor.gamma_,
        "delta_": regressor.delta_,
        "conformal": calibrator_state(regressor.conformal_),
    }


def restore_calibration(learned: Mapping[str, Any]) -> tuple[float, float, ConformalCalibrator | None]:
    """Return γ, δ and the conformal calibrator that were described."""
    for name in ("gamma_", "delta_"):
        require(isinstance(learned[name], (int, float)), f"its {name} is no number")
    return learned["gamma_"], learned["delta_"], calibrator_from_state(learned["conformal"])
