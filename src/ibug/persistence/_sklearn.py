"""scikit-learn models through skops, and what wraps another library's model."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline

from ibug.persistence._format import FormatProblemError
from ibug.persistence._models import ModelStore, load_model, not_storable, save_model
from ibug.persistence._session import Loading, Saving
from ibug.persistence._sklearn_trees import check_trees
from ibug.persistence._skops import dump, parse

_SEVERAL = (MultiOutputRegressor, RegressorChain)
_WRAPPERS = (Pipeline, TransformedTargetRegressor, FrozenEstimator, *_SEVERAL)


class SklearnStore(ModelStore):
    """Saves forests and gradient boosting, and what is around any model: a pipeline, several targets and so on.

    What wraps a model of another library is saved without it, and the model in its own native format.
    """

    classes: ClassVar[dict[str, type]] = {
        cls.__name__: cls
        for cls in (
            ExtraTreesRegressor,
            GradientBoostingRegressor,
            HistGradientBoostingRegressor,
            RandomForestRegressor,
            *_WRAPPERS,
        )
    }

    def describe(self, model: Any, saving: Saving, *, fitted: bool) -> dict[str, Any]:
        """Return the member that skops made, and the description of an inner model of another library."""
        if isinstance(model, FrozenEstimator):
            return {"inner": save_model(model.estimator, saving)}
        if _is_sklearn_throughout(model):
            return {"member": dump(model if fitted else clone(model), saving)}
        shell = copy.copy(model)
        spec: dict[str, Any] = {}
        if isinstance(model, Pipeline):
            spec["inner"] = save_model(model.steps[-1][1], saving, fitted=fitted)
            shell.steps = [*model.steps[:-1], (model.steps[-1][0], "passthrough")]
        elif isinstance(model, TransformedTargetRegressor):
            spec["template"] = save_model(model.regressor, saving, fitted=False)
            if fitted:
                spec["inner"] = save_model(model.regressor_, saving)
                del shell.regressor_
            shell.regressor = None
        elif isinstance(model, _SEVERAL):
            spec["template"] = save_model(_template(model), saving, fitted=False)
            if fitted:
                spec["members"] = [save_model(member, saving) for member in model.estimators_]
                del shell.estimators_
            _set_template(shell, None)
        else:  # a library's estimator around another one's model is none of the classes
            raise not_storable(model, "it holds a model of another library")
        return {**spec, "member": dump(shell if fitted else clone(shell), saving)}

    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model, put together again."""
        if cls is FrozenEstimator:
            return FrozenEstimator(load_model(spec["inner"], loading))
        model = parse(spec["member"], loading)
        self._check_class(model, cls)
        if "template" in spec and cls in _SEVERAL:
            _set_template(model, load_model(spec["template"], loading))
            if "members" in spec:
                model.estimators_ = [load_model(member, loading) for member in spec["members"]]
        elif "template" in spec:
            model.regressor = load_model(spec["template"], loading)
        if "inner" in spec:
            inner = load_model(spec["inner"], loading)
            if cls is Pipeline:
                model.steps[-1] = (model.steps[-1][0], inner)
            else:
                model.regressor_ = inner
        check_trees(model)
        return model

    def _check_class(self, model: Any, cls: type) -> None:
        if type(model) is not cls:
            raise FormatProblemError(f"a {cls.__name__} was announced, and a {type(model).__name__} found")


def _is_sklearn_throughout(model: Any) -> bool:
    while isinstance(model, _WRAPPERS):
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif isinstance(model, TransformedTargetRegressor):
            model = getattr(model, "regressor_", model.regressor)
        elif isinstance(model, _SEVERAL):
            model = _template(model)
        else:
            model = model.estimator
    libraries = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    return not libraries & {"lightgbm", "xgboost", "catboost"}


def _template(model: Any) -> Any:
    """Return the estimator that is trained for each of several targets; a chain had another name for it."""
    found = getattr(model, "estimator", None)
    return found if hasattr(found, "fit") else model.base_estimator


def _set_template(model: Any, template: Any) -> None:
    has_own_name = "estimator" in model.get_params(deep=False)
    setattr(model, "estimator" if has_own_name else "base_estimator", template)


STORE = SklearnStore()
