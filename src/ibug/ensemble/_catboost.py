"""CatBoost with uncertainty: the models that can be used, and what they predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_matrix, issparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _check_sample_weight

from ibug._threads import check_n_jobs
from ibug._typing import Floats
from ibug.exceptions import InvalidInputError, MissingDependencyError, UnsupportedModelError
from ibug.leaves import catboost_training, require_fitted
from ibug.training import fresh

LOSS = "RMSEWithUncertainty"
_DEFAULT_LOSS = "RMSE"  # what CatBoost fills in where nothing is said


def library() -> Any:
    """Return the module ``catboost``, which is imported when it is needed."""
    try:
        import catboost
    except ImportError as error:
        raise MissingDependencyError(
            'CBURegressor needs CatBoost, which cannot be imported. Install it: pip install "ibug-learn[catboost]".'
        ) from error
    return catboost


def check_model(model: Any, *, prefit: bool) -> Any:
    """Return a model that can predict means and variances, once it is trained; raise if there is no way to."""
    catboost = library()
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    others = (catboost.CatBoostClassifier, catboost.CatBoostRanker)
    if not isinstance(model, catboost.CatBoost) or isinstance(model, others):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UnsupportedModelError(
            f"CBURegressor is CatBoost with uncertainty: it needs a CatBoostRegressor; got {name}. IBUGRegressor takes "
            "models of other libraries."
        )
    if prefit:
        _check_trained(model)
    elif _asked_loss(model) not in (LOSS, _DEFAULT_LOSS):
        raise UnsupportedModelError(
            f"CBURegressor trains with the loss {LOSS!r}; this {type(model).__name__} asks for {_asked_loss(model)!r}. "
            "Leave loss_function out, or use IBUGRegressor, which takes any loss."
        )
    return model


def _check_trained(model: Any) -> None:
    require_fitted(model, model.is_fitted())
    loss, _ = catboost_training(model)
    if loss != LOSS:
        raise UnsupportedModelError(
            f"This {type(model).__name__} was trained with the loss {loss!r}, and predicts no variance. Train it with "
            f"loss_function={LOSS!r} and posterior_sampling=True, or use IBUGRegressor, which takes it as it is."
        )


def _asked_loss(model: Any) -> Any:
    parameters = model.get_params()
    # Beside the alias, CatBoostRegressor says its default loss, too.
    return parameters.get("objective", parameters.get("loss_function", _DEFAULT_LOSS))


def untrained(model: Any, n_jobs: int | None, seed: int) -> Any:
    """Return an untrained copy that has the loss and the posterior sampling of CBU, or a new one for None."""
    if model is None:
        model = library().CatBoostRegressor(verbose=0, allow_writing_files=False, random_seed=seed)
    copy = fresh(model)
    asked = copy.get_params()
    settings: dict[str, Any] = {"posterior_sampling": True}
    check_n_jobs(n_jobs)
    if n_jobs is not None:
        settings["thread_count"] = effective_n_jobs(n_jobs)
    missing = {name: value for name, value in settings.items() if name not in asked}
    return copy.set_params(**missing, **{"objective" if "objective" in asked else "loss_function": LOSS})


def as_catboost_rows(X: Any) -> Any:
    """Return rows as CatBoost reads them: it knows sparse matrices, not sparse arrays, with 32-bit indices."""
    if not issparse(X):
        return X
    matrix = csr_matrix(X)
    if matrix.nnz > np.iinfo(np.int32).max:
        raise InvalidInputError(f"CatBoost reads sparse rows with up to 2^31 - 1 values; got {matrix.nnz}.")
    parts = matrix.data, matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int32, copy=False)
    return csr_matrix(parts, matrix.shape)


def as_weights_of_rows(sample_weight: Any, X: Any) -> Floats | None:
    """Return the weights of the rows, (n_rows,), where there are any."""
    if sample_weight is None:
        return None
    weights = np.asarray(_check_sample_weight(sample_weight, X), np.float64)
    if not np.any(weights):
        raise InvalidInputError("All sample weights are zero: one at least must be above.")
    return weights


def usable_count(model: Any, count: int | None) -> int:
    """Return how many virtual ensembles a trained model can have: the first half of the trees is in all of them."""
    return 0 if count is None else min(count, model.tree_count_ // 2)


def mean_and_variance(model: Any, X: Any, count: int, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Return the model's predictions and their variances, (n_rows,) each."""
    threads = -1 if n_jobs is None else effective_n_jobs(n_jobs)
    X = as_catboost_rows(X)
    own = np.asarray(model.predict(X, prediction_type=LOSS, thread_count=threads), np.float64)
    mean, variance = own[:, 0], own[:, 1]
    if count:
        parts = model.virtual_ensembles_predict(
            X, prediction_type="TotalUncertainty", virtual_ensembles_count=count, thread_count=threads
        )
        _, knowledge, data = np.asarray(parts, np.float64).T
        variance = knowledge + data
    return mean, variance


def check_count(count: Any) -> None:
    """Raise InvalidInputError for an impossible number of virtual ensembles."""
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InvalidInputError(
            f"virtual_ensembles_count must be an integer of at least 1, or None for the model's own variance; got "
            f"{count!r}."
        )
