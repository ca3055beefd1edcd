"""XGBoost models, as UBJSON."""

from __future__ import annotations

from typing import Any, ClassVar

import xgboost

from ibug.persistence._models import ModelStore, parameters_of
from ibug.persistence._session import Loading, Saving


class XGBoostStore(ModelStore):
    """Saves ``Booster``, ``XGBRegressor`` and ``XGBRFRegressor``."""

    classes: ClassVar[dict[str, type]] = {
        "Booster": xgboost.Booster,
        "XGBRegressor": xgboost.XGBRegressor,
        "XGBRFRegressor": xgboost.XGBRFRegressor,
    }

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if fitted, the booster."""
        if isinstance(model, xgboost.Booster):
            return self._booster(model, saving)
        spec: dict[str, Any] = {"parameters": parameters_of(model, saving)}
        if fitted:
            spec |= self._booster(model.get_booster(), saving)
            if hasattr(model, "evals_result_"):
                spec["evals_result"] = saving.encoder.encode(model.evals_result_, "model")
        return spec

    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of the same class."""
        if cls is xgboost.Booster:
            return self._load_booster(spec, loading)
        model = cls(**loading.decoder.decode(spec["parameters"]))
        if "member" in spec:
            # `load_model` of the estimator would overwrite parameters with what XGBoost made of them.
            model._Booster = self._load_booster(spec, loading)
            if "evals_result" in spec:
                model.evals_result_ = loading.decoder.decode(spec["evals_result"])
        return model

    def _booster(self, booster: Any, saving: Saving) -> dict[str, Any]:
        return {"member": saving.add_model(booster.save_raw("ubj"), ".xgboost.ubj")}

    def _load_booster(self, spec: dict[str, Any], loading: Loading) -> Any:
        booster = xgboost.Booster()
        booster.load_model(bytearray(loading.model(spec["member"])))
        return booster


STORE = XGBoostStore()
