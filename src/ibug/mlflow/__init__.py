"""The bridge to MLflow: a flavour on ibug's own file format, without pickle (extra ``mlflow``)."""

from ibug._installed import how_to_install
from ibug.exceptions import MissingDependencyError

try:
    import mlflow  # noqa: F401 - to see that it is there
except ImportError as error:
    raise MissingDependencyError(
        f"ibug.mlflow needs MLflow, which cannot be imported ({error}). Install it: {how_to_install('mlflow')}."
    ) from error

from ibug.mlflow._flavor import (
    _load_pyfunc,  # noqa: F401 - MLflow calls it by its name
    infer_signature,
    load_model,
    log_model,
    save_model,
)

__all__ = ["infer_signature", "load_model", "log_model", "save_model"]
