"""Save, log and load a fitted regressor as an MLflow model."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
import mlflow.artifacts
import mlflow.pyfunc
from mlflow.models import Model, ModelSignature

from ibug._installed import DISTRIBUTION, VERSION
from ibug.exceptions import FileFormatError
from ibug.mlflow._signature import infer_signature
from ibug.persistence import inspect, load

FLAVOR = "ibug"
_FILE = "model.ibug"


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
        A few rows, which MLflow keeps beside the model.
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
        model.add_flavor(FLAVOR, ibug_version=VERSION, data=f"data/{_FILE}", estimator=type(u).__name__)
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
    if FLAVOR not in flavors:
        raise FileFormatError(
            f"{os.fspath(model_uri)} is no model that ibug.mlflow has saved: its flavours are {sorted(flavors)}."
        )
    return load(folder / flavors[FLAVOR]["data"], **options)


def _requirements(file: Path) -> list[str]:
    """Return what reading the file needs, pinned to the versions that it was written with."""
    written_by = inspect(file)["written_by"]
    versions = {name: number for name, number in written_by.items() if name not in ("ibug", "python")}
    versions |= {DISTRIBUTION: written_by["ibug"]} | {name: version(name) for name in ("mlflow", "pandas")}
    return [f"{name}=={number}" for name, number in sorted(versions.items())]
