"""Models in their libraries' native formats: the boosters' here, scikit-learn's and what wraps models in `_sklearn`."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from ibug.exceptions import MissingDependencyError, NotStorableError
from ibug.leaves import library_of
from ibug.persistence._container import FormatProblemError
from ibug.persistence._files import Loading, Saving


class ModelStore(ABC):
    """How the models of one library are saved and loaded. The library is imported when one of them is."""

    library: ClassVar[str]
    classes: ClassVar[tuple[str, ...]]  # names of the library's own classes

    def class_of(self, name: str) -> Any:
        """Return the class of this name."""
        return getattr(import_module(self.library), name)

    @abstractmethod
    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return what `restore` needs; trees become a member, if the model is to be saved as fitted."""

    @abstractmethod
    def restore(self, cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of this class."""


class _BoosterStore(ModelStore):
    """A library whose estimators hold a native booster, and have parameters and a few learned attributes besides."""

    learned: ClassVar[tuple[str, ...]]  # the names of these attributes

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if fitted, the booster and what was learned apart from it."""
        if not hasattr(model, "get_params"):
            return self._describe_booster(model, saving)
        spec: dict[str, Any] = {"parameters": saving.encoder.encode_parameters(model.get_params(), "model")}
        if fitted:
            spec |= self._describe_booster(model._Booster, saving)
            learned = {name: value for name, value in vars(model).items() if name in self.learned}
            # A user's own objective is a function: it is a parameter, too, which is warned of.
            learned = {name: None if callable(value) else value for name, value in learned.items()}
            spec["learned"] = saving.encoder.encode(learned, "model")
        return spec

    def restore(self, cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of this class."""
        if not hasattr(cls, "get_params"):
            return self._restore_booster(spec, loading)
        model = cls(**loading.decoder.decode(spec["parameters"]))
        if "member" in spec:
            learned = loading.decoder.decode(spec["learned"])
            vars(model).update({name: value for name, value in learned.items() if name in self.learned})
            # An estimator's own way to load a booster would change its parameters.
            model._Booster = self._restore_booster(spec, loading)
        return model

    @abstractmethod
    def _describe_booster(self, booster: Any, saving: Saving) -> dict[str, Any]:
        """Return what `_restore_booster` needs; the booster becomes a member."""

    @abstractmethod
    def _restore_booster(self, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the booster."""


class _LightGBMStore(_BoosterStore):
    """As LightGBM's text format."""

    library = "lightgbm"
    classes = ("Booster", "LGBMRegressor")
    # Of later versions' attributes nothing is known here, and of earlier ones some are not there.
    learned = (
        "_best_iteration",
        "_best_score",
        "_evals_result",
        "_fitted_with_feature_names",
        "_n_features",
        "_n_features_in",
        "_objective",
        "_other_params",
    )

    def restore(self, cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of this class, as fitted if it has a booster."""
        model = super().restore(cls, spec, loading)
        if "learned" in spec:
            model.fitted_ = True
        return model

    def _describe_booster(self, booster: Any, saving: Saving) -> dict[str, Any]:
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

    def _restore_booster(self, spec: dict[str, Any], loading: Loading) -> Any:
        booster = self.class_of("Booster")(model_str=loading.model(spec["member"]).decode("utf-8"))
        state = loading.decoder.decode(spec["booster"])
        booster.best_iteration, booster.best_score = int(state["best_iteration"]), state["best_score"]
        return booster


class _XGBoostStore(_BoosterStore):
    """As UBJSON."""

    library = "xgboost"
    classes = ("Booster", "XGBRegressor", "XGBRFRegressor")
    learned = ("evals_result_",)

    def _describe_booster(self, booster: Any, saving: Saving) -> dict[str, Any]:
        return {"member": saving.add_model(booster.save_raw("ubj"), ".xgboost.ubj")}

    def _restore_booster(self, spec: dict[str, Any], loading: Loading) -> Any:
        booster = self.class_of("Booster")()
        booster.load_model(bytearray(loading.model(spec["member"])))
        return booster


class _CatBoostStore(ModelStore):
    """As its binary format cbm."""

    library = "catboost"
    classes = ("CatBoost", "CatBoostRegressor")

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return parameters and, if fitted, the model."""
        spec: dict[str, Any] = {"parameters": saving.encoder.encode_parameters(model.get_params(), "model")}
        if fitted:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.cbm"
                model.save_model(str(path), format="cbm")
                spec["member"] = saving.add_model(path.read_bytes(), ".catboost.cbm")
        return spec

    def restore(self, cls: Any, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of this class."""
        parameters = loading.decoder.decode(spec["parameters"])
        # Plain CatBoost takes its parameters as one dictionary.
        model = cls(parameters) if cls.__name__ == "CatBoost" else cls(**parameters)
        if "member" in spec:
            model.load_model(blob=loading.model(spec["member"]))
        return model


def save_model(model: Any, saving: Saving, *, fitted: bool = True) -> dict[str, Any] | None:
    """Return the description of a model, or None for None; of an untrained copy if not `fitted`."""
    if model is None:
        return None
    store = _stores().get(library_of(model) or "")
    if store is None:
        raise not_storable(model, "its library is not known")
    name = type(model).__name__
    if name not in store.classes or type(model) is not store.class_of(name):
        raise not_storable(model, f"its class is none of {sorted(store.classes)}")
    saving.libraries.add(store.library)
    return {"library": store.library, "class": name, **store.describe(model, saving, fitted=fitted)}


def load_model(spec: Any, loading: Loading) -> Any:
    """Return the model of a description, or None for None."""
    if spec is None:
        return None
    library, name = spec["library"], spec["class"]
    if library not in _stores():
        raise FormatProblemError(f"a model of the library {library!r:.100} is not known to this version of ibug")
    store = _stores()[library]
    if name not in store.classes:
        raise FormatProblemError(f"a model of the class {name!r:.100} is not known to this version of ibug")
    try:
        cls = store.class_of(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"The file holds a model of {library}, which cannot be imported ({error}). Install it: pip install "
            f"{library}."
        ) from error
    return store.restore(cls, spec, loading)


def _stores() -> dict[str, ModelStore]:
    """Return the stores by library."""
    from ibug.persistence._sklearn import SklearnStore  # which saves and loads the models that it wraps through here

    stores: tuple[ModelStore, ...] = (_LightGBMStore(), _XGBoostStore(), _CatBoostStore(), SklearnStore())
    return {store.library: store for store in stores}


def not_storable(model: Any, reason: str) -> NotStorableError:
    """Make the error for a model that cannot be saved."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    return NotStorableError(
        f"This {name} cannot be saved by ibug: {reason}. Pickle and joblib take it, for those who trust the file."
    )
