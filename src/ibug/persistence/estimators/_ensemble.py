"""ProbabilisticEnsemble as a description for a file, and from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ibug._inputs import require
from ibug.persistence._files import load_regressor, save_regressor
from ibug.persistence._parameters import encode_parameters
from ibug.persistence._session import Loading, Saving
from ibug.persistence.estimators._parts import (
    describe_calibration,
    describe_parameters,
    restore_columns,
    restore_parameters,
)


def describe_ensemble(ensemble: Any, saving: Saving, fitted: bool) -> dict[str, Any]:
    """Return the description of a ProbabilisticEnsemble with all its members."""
    parameters = describe_parameters(ensemble.get_params(deep=False))
    given = parameters.pop("estimators")
    description: dict[str, Any] = {"parameters": encode_parameters(parameters, saving.encoder, "parameters")}
    if not fitted:
        return {**description, "estimators": [_unfitted(pair, saving) for pair in given]}
    description["members"] = [
        [name, save_regressor(member, saving)] for name, member in ensemble.named_estimators_.items()
    ]
    # A member that was given already fitted is stored already; the number tells which one it is.
    places = {id(member): place for place, member in enumerate(ensemble.estimators_)}
    description["estimators"] = [
        [pair[0], places[id(pair[1])]] if id(pair[1]) in places else _unfitted(pair, saving) for pair in given
    ]
    learned = {
        **describe_calibration(ensemble),
        "weights": ensemble.weights_,
        "targets": ensemble.training_targets_,
    }
    return {**description, "learned": saving.encoder.encode(learned, "learned")}


def restore_ensemble(cls: type, spec: dict[str, Any], loading: Loading) -> tuple[Any, dict[str, Any]]:
    """Return the ensemble of a description without its calibration, and what it has learned, if anything."""
    named = [(str(name), load_regressor(member, loading)) for name, member in spec.get("members", [])]
    given: list[tuple[str, Any]] = []
    for name, member in spec["estimators"]:
        if isinstance(member, int):
            require(0 <= member < len(named), "it names a member that it does not have")
            given.append((str(name), named[member][1]))
        else:
            given.append((str(name), member if member == "drop" else load_regressor(member, loading)))
    ensemble = cls(given, **restore_parameters(loading.decoder.decode(spec["parameters"])))
    if "learned" not in spec:
        return ensemble, {}
    learned = loading.decoder.decode(spec["learned"])
    restore_columns(ensemble, learned)
    ensemble.estimators_ = [member for _, member in named]
    ensemble.named_estimators_ = Bunch(**dict(named))
    ensemble.training_targets_ = np.asarray(learned["targets"], np.float64)
    ensemble.weights_ = np.asarray(learned["weights"], np.float64)
    require(ensemble.weights_.shape == (len(named),) and named, "it has not as many weights as members")
    return ensemble, learned


def _unfitted(pair: tuple[str, Any], saving: Saving) -> list[Any]:
    name, member = pair
    dropped = isinstance(member, str) and member == "drop"
    return [name, member if dropped else save_regressor(member, saving, fitted=False)]
