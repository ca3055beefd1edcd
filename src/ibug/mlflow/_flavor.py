"""MLflow's flavour of ibug: a fitted regressor is saved, logged, loaded, and served."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
import mlflow.artifacts
import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.models import Model, ModelSignature
from mlflow.types.schema import AnyType, ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec

from ibug._frames import FeatureType
from ibug._installed import DISTRIBUTION, VERSION
from ibug._warnings import warn_infinite
from ibug.exceptions import FileFormatError, IBUGWarning, InvalidInputError
from ibug.persistence import inspect, load

_COVERAGE = 0.9
# The columns of the output; with several targets, each target has them, with its name in front.
_OUTPUTS = ("prediction", "lower", "upper")
_FLAVOR = "ibug"
_FILE = "model.ibug"
# How the names of types begin, in pandas, polars and NumPy, whatever their case. MLflow's integers cannot be missing: a
# column with a gap is one of float, which it refuses where it expects long, as it refuses long where it expects double.
_TYPES: dict[str, Any] = {"float": "double", "int": AnyType(), "uint": AnyType(), "bool": "boolean"}


def save_model(
    u: Any,
    path: str | os.PathLike[str],
    *,
    signature: ModelSignature | bool | None = None,
    input_example: Any = None,
    compress: bool = True,
    mlflow_model: Model | None = None,
    pip_requirements: Any = None,
    metadata: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Save a fitted regressor as an MLflow model: a folder with ``model.ibug`` in it and no pickle.

    Parameters
    ----------
    u : IBUGRegressor, CBURegressor or ProbabilisticEnsemble
        Fitted.
    path
        The folder, which must be new or empty.
    signature : mlflow.models.ModelSignature or False, optional
        By default that of `infer_signature`, from the columns of the training rows. ``False``: none, and then no
        `params` either.
    input_example : optional
        A few rows, which MLflow keeps with the model.
    compress
        As in ``u.save``: ``False`` makes a larger file that processes map into memory and share.
    mlflow_model : mlflow.models.Model, optional
        The description that the flavours are added to.
    pip_requirements : optional
        By default ibug and the libraries of the model, in the versions that are installed.
    metadata : dict, optional
        Kept with the model.
    **options
        Passed on to ``mlflow.pyfunc.save_model``: ``code_paths``, ``conda_env`` and so on.
    """
    model = Model() if mlflow_model is None else mlflow_model
    if signature is None or signature is True:
        signature = infer_signature(u)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _FILE
        u.save(file, compress=compress)
        model.add_flavor(_FLAVOR, ibug_version=VERSION, data=f"data/{_FILE}", estimator=type(u).__name__)
        if pip_requirements is None and "conda_env" not in options:
            pip_requirements = _requirements(file)
        mlflow.pyfunc.save_model(
            path=os.fspath(path),
            loader_module="ibug.mlflow",
            data_path=str(file),
            mlflow_model=model,
            signature=signature or None,
            input_example=input_example,
            pip_requirements=pip_requirements,
            metadata=metadata,
            **options,
        )


def log_model(u: Any, name: str = "model", *, registered_model_name: str | None = None, **options: Any) -> Any:
    """Log a fitted regressor to the active run, or to a new one.

    Parameters
    ----------
    u
        The fitted regressor.
    name
        The model's name in the run.
    registered_model_name : str, optional
        Register the model under this name as well.
    **options
        Those of `save_model`, and of ``mlflow.models.Model.log``: ``params``, ``tags``, ``step`` and so on.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With the ``model_uri`` that `load_model` and ``mlflow.pyfunc.load_model`` take.
    """
    module = sys.modules["ibug.mlflow"]  # MLflow calls its save_model
    options |= {"registered_model_name": registered_model_name, "u": u}
    return Model.log(artifact_path=None, name=name, flavor=module, **options)


def load_model(model_uri: str | os.PathLike[str], *, dst_path: str | None = None, **options: Any) -> Any:
    """Load the regressor that `save_model` or `log_model` has written.

    Parameters
    ----------
    model_uri
        A folder, ``"runs:/…/model"``, ``"models:/…"`` or any other address that MLflow knows.
    dst_path : str, optional
        Where to download it to.
    **options
        Those of ``ibug.load``.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=os.fspath(model_uri), dst_path=dst_path))
    flavors = Model.load(str(folder)).flavors
    if _FLAVOR not in flavors:
        raise FileFormatError(
            f"{os.fspath(model_uri)} is no model that ibug.mlflow has saved: its flavours are {sorted(flavors)}."
        )
    return load(folder / flavors[_FLAVOR]["data"], **options)


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
    names = _OUTPUTS if targets is None else [f"{target}_{name}" for target in targets for name in _OUTPUTS]
    parameters = [ParamSpec("coverage", "double", _COVERAGE), ParamSpec("quantiles", "double", [], shape=(-1,))]
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


def _requirements(file: Path) -> list[str]:
    """Return what reading the file needs, pinned to the versions that it was written with."""
    written_by = inspect(file)["written_by"]
    versions = {name: number for name, number in written_by.items() if name not in ("ibug", "python")}
    versions |= {DISTRIBUTION: written_by["ibug"]} | {name: version(name) for name in ("mlflow", "pandas")}
    return [f"{name}=={number}" for name, number in sorted(versions.items())]


class UncertainModel:
    """A saved regressor behind MLflow's ``predict(model_input, params)``."""

    def __init__(self, u: Any) -> None:
        self.u = u

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Return ``prediction``, ``lower``, ``upper`` and a column ``q…`` per quantile, one line per row.

        With several targets, each has such columns, with its name in front: ``price_lower``, say.

        Shapes: model_input (n_rows, n_features).
        """
        given, X = params or {}, self._rows(model_input)
        coverage, joint = float(given.get("coverage", _COVERAGE)), bool(given.get("joint", False))
        levels = np.asarray(given.get("quantiles", ()), np.float64).reshape(-1)
        quantiles: Any = None
        points, found, names = self.u.predict(X), self.u.predict_dist(X), getattr(self.u, "target_names_", None)
        if names is None:
            prefixes, points = [""], points[:, None]
            ends = np.stack(found.interval(coverage), axis=1)[:, None]
            if levels.size:
                quantiles = found.ppf(levels[None, :])[:, None]
        else:
            rule, prefixes = self.u.rule_, [f"{name}_" for name in names]
            ends = rule.ends(found, coverage, joint=joint)
            warn_infinite(ends, coverage, "predict", joint=joint, conformal=rule.conformal)
            if levels.size:
                quantiles = rule.quantiles(found, levels)
        columns: dict[str, Any] = {}
        for j, prefix in enumerate(prefixes):
            named = zip(_OUTPUTS, (points[:, j], ends[:, j, 0], ends[:, j, 1]), strict=True)
            columns |= {f"{prefix}{name}": values for name, values in named}
            columns |= {f"{prefix}q{level:g}": quantiles[:, j, i] for i, level in enumerate(levels)}
        return pd.DataFrame(columns, index=getattr(model_input, "index", None))

    def _rows(self, model_input: Any) -> Any:
        if not hasattr(self.u, "feature_names_in_"):
            return np.asarray(model_input, np.float64)
        if not hasattr(model_input, "columns"):
            return model_input  # the regressor's own error says what is missing
        # CSV and JSON keep neither the order of columns nor their categories.
        X = model_input[list(self.u.feature_names_in_)]
        return X.assign(**{column["name"]: _as_known(X[column["name"]], column) for column in self.u.feature_types_})


def _as_known(values: pd.Series, column: FeatureType) -> pd.Series:
    """Return a column as the model knows it: its categories, or numbers, some of which may be missing."""
    if "categories" in column:
        return _as_categories(values, column)
    if values.dtype.kind in "iufb" or not column["dtype"].lower().startswith(tuple(_TYPES)):
        return values
    try:
        return pd.to_numeric(values, errors="raise").astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Column {column['name']!r} must have numbers, or missing values: {error}.") from error


def _as_categories(values: pd.Series, column: FeatureType) -> pd.Series:
    known = values.isin(column["categories"])
    unseen = values[~known & values.notna()]
    if len(unseen):
        warnings.warn(
            f"Column {column['name']!r} has values that the training rows did not have, {unseen.iloc[0]!r} say; they "
            f"count as missing in {len(unseen)} row(s).",
            IBUGWarning,
            stacklevel=2,
        )
    # As objects first: a column with other categories takes no new values.
    return values.astype(object).where(known, None).astype(pd.CategoricalDtype(column["categories"]))


def _load_pyfunc(path: str) -> UncertainModel:
    """Load what `save_model` has written; MLflow calls this by its name."""
    found = Path(path)
    return UncertainModel(load(found / "model.ibug" if found.is_dir() else found))
