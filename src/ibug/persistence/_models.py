"""Tree models in their libraries' native formats: which library, and what wraps the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, ClassVar

from ibug.exceptions import MissingDependencyError, NotStorableError
from ibug.persistence._format import FormatProblemError
from ibug.persistence._parameters import encode_parameters
from ibug.persistence._session import Loading, Saving

# By the name of the library that defines the model's class, so that no library is imported unless it is needed.
# To add one, write a module with `STORE: ModelStore` and enter it here. scikit-learn is last: the boosters' estimators
# are scikit-learn's, too.
_MODULES = {
    "lightgbm": "ibug.persistence._lightgbm",
    "xgboost": "ibug.persistence._xgboost",
    "catboost": "ibug.persistence._catboost",
    "sklearn": "ibug.persistence._sklearn",
}
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where the name to install is another


class ModelStore(ABC):
    """How the models of one library are saved and loaded."""

    #: The classes that can be, by name.
    classes: ClassVar[dict[str, type]]

    def save(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return the description of a model; its trees become a member, if it is to be saved as fitted."""
        name = next((name for name, cls in self.classes.items() if type(model) is cls), None)
        if name is None:
            raise not_storable(model, f"its class is none of {sorted(self.classes)}")
        return {"class": name, **self.describe(model, saving, fitted=fitted)}

    def load(self, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model of a description."""
        name = spec["class"]
        if name not in self.classes:
            raise FormatProblemError(f"a model of the class {name!r:.100} is not known to this version of ibug")
        return self.restore(self.classes[name], spec, loading)

    @abstractmethod
    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return what `restore` needs."""

    @abstractmethod
    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model."""


def save_model(model: Any, saving: Saving, *, fitted: bool = True) -> dict[str, Any] | None:
    """Return the description of a model, as JSON.

    Parameters
    ----------
    model
        A model of a supported library, or None.
    saving
        Takes its members.
    fitted
        Save what it has learned, too; else the description is of an untrained copy.
    """
    if model is None:
        return None
    libraries = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    for library, module in _MODULES.items():
        if library in libraries:
            saving.need(library)
            store: ModelStore = import_module(module).STORE
            return {"library": library, **store.save(model, saving, fitted=fitted)}
    raise not_storable(model, "its library is not known")


def load_model(spec: Any, loading: Loading) -> Any:
    """Return the model of a description, or None for None.

    Parameters
    ----------
    spec : dict or None
        What `save_model` has returned.
    loading : Loading
        The file that is being read.
    """
    if spec is None:
        return None
    library = spec["library"]
    if library not in _MODULES:
        raise FormatProblemError(f"a model of the library {library!r:.100} is not known to this version of ibug")
    try:
        store: ModelStore = import_module(_MODULES[library]).STORE
    except ImportError as error:
        raise missing(library, error) from error
    return store.load(spec, loading)


def not_storable(model: Any, reason: str) -> NotStorableError:
    """Make the error for a model that cannot be saved."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    return NotStorableError(
        f"This {name} cannot be saved by ibug: {reason}. Pickle and joblib take it, for those who trust the file."
    )


def missing(library: str, error: ImportError) -> MissingDependencyError:
    """Make the error for a library that is not installed."""
    return MissingDependencyError(
        f"The file holds a model of {library}, which cannot be imported ({error}). Install it: pip install "
        f"{_DISTRIBUTIONS.get(library, library)}."
    )


def parameters_of(model: Any, saving: Saving) -> dict[str, Any]:
    """Return the parameters of a scikit-learn style estimator as JSON."""
    return encode_parameters(model.get_params(), saving.encoder, "model")
