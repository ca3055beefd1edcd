"""LightGBM models, as its text format."""

from __future__ import annotations

from typing import Any, ClassVar

import lightgbm

from ibug.persistence._models import ModelStore, not_storable, parameters_of
from ibug.persistence._session import Loading, Saving

# What LightGBM's estimators have learned beside their booster. Of later versions' attributes nothing is known here,
# and of earlier ones some are not there.
_LEARNED = (
    "_best_iteration",
    "_best_score",
    "_evals_result",
    "_fitted_with_feature_names",
    "_n_features",
    "_n_features_in",
    "_objective",
    "_other_params",
)


class LightGBMStore(ModelStore):
    """Saves ``Booster`` and ``LGBMRegressor``."""

    classes: ClassVar[dict[str, type]] = {"Booster": lightgbm.Booster, "LGBMRegressor": lightgbm.LGBMRegressor}

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if fitted, the booster's text and what belongs to it."""
        if isinstance(model, lightgbm.Booster):
            return self._booster(model, saving)
        spec: dict[str, Any] = {"parameters": parameters_of(model, saving)}
        if fitted:
            spec |= self._booster(model.booster_, saving)
            learned = {name: value for name, value in vars(model).items() if name in _LEARNED}
            if callable(learned.get("_objective")):
                learned["_objective"] = None  # a function of the user's own: its parameter is warned of
            spec["learned"] = saving.encoder.encode(learned, "model")
        return spec

    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of the same class."""
        if cls is lightgbm.Booster:
            return self._load_booster(spec, loading)
        model = cls(**loading.decoder.decode(spec["parameters"]))
        if "member" in spec:
            learned = loading.decoder.decode(spec["learned"])
            vars(model).update({name: value for name, value in learned.items() if name in _LEARNED})
            model._Booster = self._load_booster(spec, loading)
            model.fitted_ = True
        return model

    def _booster(self, booster: Any, saving: Saving) -> dict[str, Any]:
        try:
            # Without a number, only the trees up to the best iteration would be written.
            text = booster.model_to_string(num_iteration=-1)
        except (TypeError, ValueError) as error:  # categories that JSON does not know
            raise not_storable(booster, f"LightGBM cannot write it as text ({error})") from error
        state = {"best_iteration": booster.best_iteration, "best_score": booster.best_score}
        return {
            "member": saving.add_model(text.encode("utf-8"), ".lightgbm.txt"),
            "booster": saving.encoder.encode(state, "model"),
        }

    def _load_booster(self, spec: dict[str, Any], loading: Loading) -> Any:
        booster = lightgbm.Booster(model_str=loading.model(spec["member"]).decode("utf-8"))
        state = loading.decoder.decode(spec["booster"])
        booster.best_iteration = int(state["best_iteration"])
        booster.best_score = state["best_score"]
        return booster


STORE = LightGBMStore()
