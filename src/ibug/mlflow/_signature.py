"""The signature of a saved model: its inputs, outputs and parameters, in MLflow's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlflow.models import ModelSignature
from mlflow.types.schema import AnyType, ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec

from ibug._columns import FeatureType

COVERAGE = 0.9
#: The columns of what is predicted; of several targets for each, with its name in front.
OUTPUTS = ("prediction", "lower", "upper")
# How the names of types begin, in pandas, polars and NumPy, whatever their case. MLflow's integers cannot be missing: a
# column with a gap is one of float, which it refuses where it expects long, as it refuses long where it expects double.
_TYPES: dict[str, Any] = {"float": "double", "int": AnyType(), "uint": AnyType(), "bool": "boolean"}


def infer_signature(u: Any) -> ModelSignature:
    """Return the signature of a fitted regressor: its columns with their types, its outputs and its parameters.

    Columns are those of the training rows. Numbers with a fraction are double, so that MLflow accepts narrower ones.
    Integers and categories are of any type, so that values may be missing; what is no number is refused when it is
    predicted. Arrays without names are a tensor of double.

    Parameters
    ----------
    u : IBUGRegressor, CBURegressor or ProbabilisticEnsemble
        Fitted.
    """
    targets = getattr(u, "target_names_", None)
    names = OUTPUTS if targets is None else [f"{target}_{name}" for target in targets for name in OUTPUTS]
    parameters = [ParamSpec("coverage", "double", COVERAGE), ParamSpec("quantiles", "double", [], shape=(-1,))]
    if targets is not None:
        parameters.append(ParamSpec("joint", "boolean", False))
    outputs = Schema([ColSpec("double", name) for name in names])
    return ModelSignature(inputs=_inputs(u), outputs=outputs, params=ParamSchema(parameters))


def _inputs(u: Any) -> Schema:
    if not hasattr(u, "feature_names_in_"):
        return Schema([TensorSpec(np.dtype(np.float64), (-1, u.n_features_in_))])
    return Schema([ColSpec(_column_type(column), column["name"]) for column in u.feature_types_])


def _column_type(column: FeatureType) -> Any:
    # MLflow has no type for categories, and refuses them where it expects text; any type lets them pass.
    if "categories" in column:
        return AnyType()
    name = column["dtype"].lower()
    return next((found for start, found in _TYPES.items() if name.startswith(start)), "string")
