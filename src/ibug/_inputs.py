"""What users hand in: rows, targets, options. Checked at the edge, so that the rest need not ask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ibug.exceptions import InvalidInputError, UnsupportedModelError

Floats = NDArray[np.float64]


def as_rows(X: Any) -> Any:
    """Leave arrays and data frames as they are, for the model to read; make lists an array, sparse formats CSR."""
    if not any(hasattr(X, name) for name in ("shape", "__len__", "__array__")):
        raise InvalidInputError(
            f"X must be an array, a data frame or a list of rows; got {type(X).__name__}. Pass what it was made from."
        )
    if issparse(X) or not hasattr(X, "shape"):
        return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if len(X.shape) != 2:
        raise InvalidInputError(
            f"Expected rows of shape (n_rows, n_features), got shape {X.shape}. Reshape your data: one row of a frame "
            "is X.iloc[[0]], of an array X.reshape(1, -1); one feature is X.reshape(-1, 1)."
        )
    return X


def check_targets(X: Any, y: Any, name: str) -> Floats:
    """Return the targets as finite floats of shape (n,), one per row of X."""
    targets = column_or_1d(y, warn=True)
    if targets.dtype.kind in "mM":
        raise InvalidInputError(f"{name} must be numbers; got dates or times ({targets.dtype}): choose a unit first.")
    targets = check_array(targets, ensure_2d=False, dtype=np.float64, input_name=name)
    check_consistent_length(X, targets)
    return np.asarray(targets)


def check_count(value: Any, least: int, most: int, name: str) -> int:
    """Return an integer from `least` to `most`, the number of training rows."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise InvalidInputError(
            f"{name} must be an integer from {least} to the {most} training rows in the index; got {value!r}."
        )
    return int(value)


def check_probabilities(value: ArrayLike, name: str) -> Floats:
    """Return probabilities strictly between 0 and 1."""
    array = np.asarray(value, np.float64)
    if array.size == 0 or not np.all((array > 0) & (array < 1)):
        raise InvalidInputError(f"{name} must be between 0 and 1, both excluded; got {value!r}.")
    return array


def check_fraction(fraction: Any) -> None:
    """Raise InvalidInputError for an impossible share of held-out rows."""
    if isinstance(fraction, bool) or not isinstance(fraction, (float, np.floating)) or not 0 < fraction < 1:
        raise InvalidInputError(
            f"validation_fraction must be a number between 0 and 1, both excluded; got {fraction!r}."
        )


def split(n_rows: int, fraction: Any, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide row numbers into those to train on and those to hold out, each ascending."""
    check_fraction(fraction)
    if n_rows < 3:
        raise InvalidInputError(
            f"Got n_samples={n_rows}: at least 3 rows are needed to train on some and to hold out others."
        )
    train, held_out = train_test_split(np.arange(n_rows), test_size=fraction, random_state=rng)
    return np.sort(train), np.sort(held_out)


def fresh(model: Any) -> Any:
    """Return an unfitted copy of a model."""
    try:
        return clone(model)
    except (TypeError, RuntimeError) as error:
        # CatBoost's estimators change some of their parameters, which scikit-learn's clone does not take; they can copy
        # themselves.
        if hasattr(model, "fit") and hasattr(model, "copy"):
            return model.copy()
        raise UnsupportedModelError(
            f"ibug cannot train this {type(model).__name__}. If it is trained already, set prefit=True; else use the "
            "library's scikit-learn estimator (LGBMRegressor, XGBRegressor, say)."
        ) from error


def with_sample_weight(model: Any, fit_params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
    """Add the weights to the parameters of `fit`, under the name by which the model takes them."""
    if sample_weight is None:
        return fit_params
    steps = []
    while isinstance(model, Pipeline):
        steps.append(model.steps[-1][0])
        model = model.steps[-1][1]
    return {**fit_params, "__".join([*steps, "sample_weight"]): sample_weight}
