"""CatBoost models, as its binary format cbm."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import catboost

from ibug.persistence._models import ModelStore, parameters_of
from ibug.persistence._session import Loading, Saving


class CatBoostStore(ModelStore):
    """Saves ``CatBoostRegressor`` and ``CatBoost``."""

    classes: ClassVar[dict[str, type]] = {
        "CatBoost": catboost.CatBoost,
        "CatBoostRegressor": catboost.CatBoostRegressor,
    }

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if fitted, the model."""
        spec: dict[str, Any] = {"parameters": parameters_of(model, saving)}
        if fitted:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.cbm"
                model.save_model(str(path), format="cbm")
                spec["member"] = saving.add_model(path.read_bytes(), ".catboost.cbm")
        return spec

    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of the same class."""
        parameters = loading.decoder.decode(spec["parameters"])
        # Plain CatBoost takes its parameters as one dictionary.
        model = cls(parameters) if cls is catboost.CatBoost else cls(**parameters)
        if "member" in spec:
            model.load_model(blob=loading.model(spec["member"]))
        return model


STORE = CatBoostStore()
