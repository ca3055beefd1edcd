"""Models that LightGBM or XGBoost train on the cluster, and the local models that come out of it."""

from __future__ import annotations

from typing import Any

from distributed import Client
from sklearn.frozen import FrozenEstimator

from ibug.exceptions import UnsupportedModelError

_DASK_ESTIMATORS = {
    ("lightgbm", "DaskLGBMRegressor"),
    ("xgboost", "DaskXGBRegressor"),
    ("xgboost", "DaskXGBRFRegressor"),
}


def is_dask_estimator(model: Any) -> bool:
    """Tell the estimators that are trained on a cluster, without importing their libraries."""
    return any((cls.__module__.partition(".")[0], cls.__name__) in _DASK_ESTIMATORS for cls in type(model).__mro__)


def require_trainable(model: Any) -> None:
    """Refuse what cannot be trained on a cluster."""
    if not is_dask_estimator(model):
        name = "no estimator" if model is None else f"a {type(model).__name__}"
        raise UnsupportedModelError(
            f"Got {name}, which cannot be trained on a Dask cluster. Give lightgbm.DaskLGBMRegressor or "
            "xgboost.dask.DaskXGBRegressor, or a model that is trained already, with prefit=True."
        )


def trained(model: Any, client: Client, X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
    """Train a fresh copy on the cluster, and return the local model."""
    # Made from its parameters: scikit-learn's clone would copy the client, too.
    fresh = type(model)(**model.get_params(deep=False))
    fresh.client = client
    fresh.fit(X, y, **fit_params)
    return local_model(fresh)


def local_model(model: Any) -> Any:
    """Return the local counterpart of a trained Dask estimator; other models as they are."""
    if isinstance(model, FrozenEstimator):
        return FrozenEstimator(local_model(model.estimator))
    if not is_dask_estimator(model):
        return model
    if hasattr(model, "to_local"):
        return model.to_local()
    import xgboost

    parameters = model.get_params(deep=False)
    cls = xgboost.XGBRFRegressor if "RF" in type(model).__name__ else xgboost.XGBRegressor
    local = cls(**parameters)
    local.load_model(model.get_booster().save_raw(raw_format="ubj"))
    return local
