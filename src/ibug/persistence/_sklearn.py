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
from sklearn.pipeline import Pipeline

from ibug.persistence._format import FormatProblemError
from ibug.persistence._models import ModelStore, load_model, not_storable, save_model
from ibug.persistence._session import Loading, Saving
from ibug.persistence._sklearn_trees import check_trees
from ibug.persistence._skops import dump, parse

_WRAPPERS = (Pipeline, TransformedTargetRegressor, FrozenEstimator)


class SklearnStore(ModelStore):
    """Saves forests and gradient boosting, and a pipeline, transformed target or frozen estimator around any model.

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
        else:  # a library's estimator around another one's model is none of the classes
            raise not_storable(model, "it holds a model of another library")
        return {**spec, "member": dump(shell if fitted else clone(shell), saving)}

    def restore(self, cls: type, spec: dict[str, Any], loading: Loading) -> Any:
        """Return the model, put together again."""
        if cls is FrozenEstimator:
            return FrozenEstimator(load_model(spec["inner"], loading))
        model = parse(spec["member"], loading)
        self._check_class(model, cls)
        if "template" in spec:
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
        else:
            model = model.estimator
    libraries = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    return not libraries & {"lightgbm", "xgboost", "catboost"}


STORE = SklearnStore()
