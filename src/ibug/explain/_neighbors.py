"""What the neighbours say by themselves, and how full the leaves are that they are found by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ibug._typing import Floats
from ibug._validation import as_rows
from ibug.exceptions import InvalidInputError


def plain_neighbors(estimator: Any) -> Any:
    """Return a copy that predicts what the neighbours say as it is, to see what calibration is worth.

    It shares model and index with the estimator, has γ = 1, δ = 0, no stack and no conformal calibration. A combination
    of spreads is a calibration, too: in its place comes the paper's rule, with the k that scores best uncalibrated.

    Parameters
    ----------
    estimator : IBUGRegressor
        A fitted regressor, on one machine or of ``ibug.dask``.
    """
    check_is_fitted(estimator)
    plain = type(estimator)(**estimator.get_params(deep=False))
    vars(plain).update(vars(estimator))
    plain.rule_ = estimator.rule_.uncalibrated()  # assigned, so that its arrays become read-only
    return plain


def leaf_density(estimator: Any, X: Any, *, per: str = "row") -> Floats:
    """Return the share of the training rows that are in the same leaf, on average (paper, section C.5).

    Parameters
    ----------
    estimator : IBUGRegressor
        A fitted regressor.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows.
    per : {"row", "tree"}, default="row"
        The mean over the trees for each row, (n_rows,), or the mean over the rows for each tree, (n_trees,).
    """
    if per not in ("row", "tree"):
        raise InvalidInputError(f'per must be "row" or "tree"; got {per!r}.')
    check_is_fitted(estimator)
    X = as_rows(X)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    by_row, by_tree = estimator.source_.leaf_density(X, n_jobs=estimator.n_jobs)
    return np.asarray(by_row if per == "row" else by_tree)
