"""What a conformal calibrator takes from rows: their groups, and likelihood ratios."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_features, _num_samples

from ibug._typing import Floats, LeavesOf
from ibug.calibration._likelihood_ratio import LikelihoodRatio
from ibug.exceptions import InvalidInputError


def groups_of(groups: Any, X: Any) -> NDArray[Any]:
    """Return labels of rows, (n,), or which groups each row is in, (n, n_groups) of bool."""
    found = groups(X) if callable(groups) else _column(groups, X)
    labels = np.asarray(found)
    n = _num_samples(X)
    if labels.ndim == 2 and labels.dtype == bool and len(labels) == n and labels.shape[1]:
        return labels
    if labels.shape != (n,):
        raise InvalidInputError(
            f"groups must give one label for each of the {n} rows, or a matrix of True and False with a column for "
            f"each group; got {labels.dtype} of shape {labels.shape}."
        )
    return labels


def ratios_of(ratio: Any, X: Any, leaves: LeavesOf | None) -> Floats:
    """Return the likelihood ratios of rows, (n,)."""
    if isinstance(ratio, LikelihoodRatio):
        if leaves is None:
            raise InvalidInputError(
                "A likelihood ratio that was estimated from leaves belongs to one trained model. Train and fit first, "
                "then u.set_params(conformal=ScaleConformal(ratio=u.likelihood_ratio(X_val, X_new))) and "
                "u.recalibrate(X_val, y_val)."
            )
        return ratio.of_chunks(leaves(X))
    values = np.asarray(ratio(X), np.float64)
    if values.shape != (_num_samples(X),) or not np.all(np.isfinite(values) & (values >= 0)):
        raise InvalidInputError(
            f"ratio must return a finite number of at least 0 for each of the {_num_samples(X)} rows; got "
            f"{values.dtype} of shape {values.shape}."
        )
    return values


def check_sources(groups: Any, ratio: Any) -> None:
    """Raise InvalidInputError for parameters that cannot be groups or a ratio."""
    named = isinstance(groups, (str, int, np.integer)) and not isinstance(groups, bool)
    if groups is not None and not named and not callable(groups):
        raise InvalidInputError(
            f"groups must be the name or the number of a column, or a function of X; got {type(groups).__name__}. "
            "Labels that X does not have: lambda X: labels.loc[X.index], say."
        )
    if ratio is not None and not callable(ratio) and not isinstance(ratio, LikelihoodRatio):
        raise InvalidInputError(
            "ratio must be a function of X that returns likelihood ratios, or what u.likelihood_ratio(X_val, X_new) "
            f"returns; got {ratio!r:.100}."
        )


def _column(name: Any, X: Any) -> Any:
    known = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    if isinstance(name, str) and (known is None or name not in known):
        has = "X has no column names" if known is None else f"X has the columns {known[:10]}"
        raise InvalidInputError(f"The groups are in the column {name!r}, which is not there: {has}.")
    if isinstance(name, str):
        return X[name]
    n_columns = _num_features(X)
    if not 0 <= name < n_columns:
        raise InvalidInputError(
            f"The groups are in column number {name}, which is not there: X has {n_columns} columns, 0 to "
            f"{n_columns - 1}."
        )
    return _safe_indexing(X, int(name), axis=1)
