"""Checks of what users hand in: rows, targets, weights, options. Made at the edge, so that the rest need not ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_array, check_consistent_length, column_or_1d

from ibug._typing import Floats
from ibug.exceptions import InvalidInputError

_LARGEST_TARGET = 1e153  # squares of larger ones, and soon their sums, are no numbers
_LARGEST_WEIGHT = 1e150  # nor are sums of products of larger ones with targets; the inverse is for the smallest


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
    check_unique_names(X, "X")
    return X


def check_unique_names(X: Any, name: str) -> None:
    """Raise InvalidInputError for a data frame or a table in which several columns have the same name."""
    columns = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ())
    if len(set(columns)) == len(columns):
        return
    repeated = sorted({str(one) for one in columns if list(columns).count(one) > 1})
    raise InvalidInputError(
        f"{name} has several columns of the same name, {repeated}: rename them, or leave all but one out, "
        f"{name}.loc[:, ~{name}.columns.duplicated()] in pandas."
    )


def check_divisible(X: Any) -> None:
    """Refuse a table of pyarrow where scikit-learn is too old to take rows out of it."""
    if hasattr(X, "schema") and hasattr(X, "column_names"):
        try:
            _safe_indexing(X, slice(0, 1))
        except TypeError:
            raise InvalidInputError(
                "This version of scikit-learn cannot take rows out of a table of pyarrow, as newer ones do: give "
                "X.to_pandas(), or install a newer one."
            ) from None


def subsample(X: Any, most: int) -> Any:
    """Return at most this many rows, evenly spaced; all where there are no more."""
    n_rows = _num_samples(X)
    return X if n_rows <= most else _safe_indexing(X, slice(None, None, -(-n_rows // most)))


def shape_of(y: Any) -> tuple[int, ...]:
    """Return the shape of targets in any form; () of what is no array, for others to complain of."""
    shape = getattr(y, "shape", None)
    if shape is not None:
        return tuple(shape)
    try:
        return np.asarray(y).shape
    except ValueError:  # lists of different lengths
        return ()


def check_targets(
    X: Any, y: Any, name: str, *, multioutput: bool = False, names: Sequence[str] | None = None
) -> Floats:
    """Return a copy of the targets as finite floats, (n,), one per row of X; or (n, d), d ≥ 2, if `multioutput`."""
    check_target_names(names, y, name)
    shape = shape_of(y)
    targets = column_or_1d(y, warn=True) if not multioutput or len(shape) != 2 or shape[1] < 2 else np.asarray(y)
    if targets.dtype.kind in "mM":
        raise InvalidInputError(f"{name} must be numbers; got dates or times ({targets.dtype}): choose a unit first.")
    targets = check_array(targets, ensure_2d=False, dtype=np.float64, copy=True, input_name=name)
    check_consistent_length(X, targets)
    size = np.abs(targets)
    if size.max(initial=0.0) > _LARGEST_TARGET:
        row = int(size.argmax()) // (size.size // len(size))
        raise InvalidInputError(
            f"{name} has the target {targets.flat[size.argmax()]:g} in row {row}, counted from 0. Targets beyond "
            f"{_LARGEST_TARGET:g} have squares that are no numbers: remove such rows, or divide all targets by a power "
            "of ten."
        )
    return np.asarray(targets)


def check_weights(weights: Any, n_rows: int, name: str = "sample_weight", *, any_size: bool = False) -> Floats:
    """Return a copy of the weights of rows, (n_rows,): finite, at least zero, and not all zero.

    With `any_size` they may be too large or too small to be added up: only their ratios are used.
    """
    array = np.array(weights, np.float64)
    if array.shape != (n_rows,):
        raise InvalidInputError(f"{name} must have one number for each of the {n_rows} rows; got shape {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        bad = int(np.argmax(~(np.isfinite(array) & (array >= 0))))
        raise InvalidInputError(f"{name} must be finite numbers of at least 0; entry {bad} is {array[bad]:g}.")
    if not array.any():
        raise InvalidInputError(f"{name} must not be all zero: no row would count.")
    if not any_size:
        check_size_of_weights(array, name)
    return array


def as_weights(given: Any, n_rows: int, name: str) -> Floats | None:
    """Return checked weights of rows; None for None."""
    return None if given is None else check_weights(given, n_rows, name)


def check_size_of_weights(weights: Floats, name: str, *, smallest: bool = True) -> None:
    """Raise InvalidInputError for weights whose sums would be infinite or, with `smallest`, lose their digits."""
    largest = float(np.max(weights))
    if largest > _LARGEST_WEIGHT or (smallest and largest < 1 / _LARGEST_WEIGHT):
        raise InvalidInputError(
            f"{name} must have its largest entry between {1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}, or sums of "
            f"weights are no numbers; got {largest:g}. Multiply or divide all weights by the same number."
        )


def check_count(value: Any, least: int, most: int, name: str) -> int:
    """Return an integer from `least` to `most`, the number of training rows."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise InvalidInputError(
            f"{name} must be an integer from {least} to the {most} training rows in the index; got {value!r}."
        )
    return int(value)


def check_at_least_one(value: Any, name: str) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInputError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)


def check_finite(values: ArrayLike, name: str, *, size: int | None = None) -> Floats:
    """Return numbers of shape (n,), all finite, at least one. Shapes: values (n,)."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not array.size or (size is not None and array.size != size):
        expected = "(n,), n of at least 1" if size is None else f"({size},)"
        raise InvalidInputError(f"{name} must have shape {expected}; got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise InvalidInputError(f"{name} contains {np.sum(~np.isfinite(array))} NaN or infinite values.")
    return array


def check_methods(estimator: Any, *methods: str) -> Any:
    """Return the estimator if it has all these methods or attributes."""
    missing = [method for method in methods if not hasattr(estimator, method)]
    if missing:
        raise InvalidInputError(
            f"A fitted estimator with {' and '.join(methods)} is expected (IBUGRegressor, say); this "
            f"{type(estimator).__name__} has no {' and no '.join(missing)}."
        )
    return estimator


def check_flags(**flags: Any) -> None:
    """Raise InvalidInputError for an option that is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidInputError(f"{name} must be True or False; got {value!r}.")


def check_feature_names(expected: list[str] | None, given: list[str] | None, columns: Any) -> None:
    """Compare the columns' names with the model's: some models take them in a wrong order without a word."""
    if expected is None or given is None or given == expected:
        return
    order = "in another order" if sorted(map(str, columns)) == sorted(expected) else "under other names"
    raise InvalidInputError(
        f"The model was trained on these columns {order}. It expects {expected}, X has {[str(n) for n in columns]}."
    )


def check_target_names(expected: Sequence[str] | None, y: Any, name: str) -> None:
    """Raise InvalidInputError where several targets have the estimator's names in another order, or other names.

    Targets without names go by their position: arrays, and frames whose columns are only numbered. So do all where the
    estimator has default names, ``target_0`` and so on. Whether there are as many targets is for others to ask.

    Shapes: y (n_rows, n_targets).
    """
    columns = getattr(y, "columns", None)
    if expected is None or columns is None or len(columns) != len(expected):
        return
    known, given = list(expected), [str(one) for one in columns]
    if given == known or are_default_names(known) or are_default_names(given):
        return
    swapped = sorted(given) == sorted(known)
    if not swapped and (_are_numbers(known, "", "column_") or _are_numbers(given, "", "column_")):
        return
    how, also = ("in another order", "") if swapped else ("under other names", ", rename the columns before")
    raise InvalidInputError(
        f"{name} has the targets {how}: its columns are {given}, and the training targets are {known}. Give them in "
        f"this order, {name}[{known}]{also}; or without names, {name}.to_numpy(), if this is their order."
    )


def are_default_names(names: Sequence[str]) -> bool:
    """Return whether these are what targets without names are called: target_0, target_1 and so on."""
    return _are_numbers(names, "target_")


def _are_numbers(names: Sequence[str], *prefixes: str) -> bool:
    """Return whether these are no names but numbers in their order, behind one of the prefixes."""
    return any(list(names) == [f"{prefix}{j}" for j in range(len(names))] for prefix in prefixes)


def check_probabilities(values: Any, name: str) -> Floats:
    """Return one probability, (), or several, (m,), as floats strictly between 0 and 1."""
    if type(values) is float and 0 < values < 1:  # the usual case, at once: a row alone is to be fast
        return np.asarray(values)
    try:
        given = np.asarray(values)
        array = np.empty(0) if given.dtype.kind in "US" else given.astype(np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim > 1:
        raise InvalidInputError(f"{name} must be one number, or several in a list; got {values!r}.")
    if not array.size or not ((array > 0) & (array < 1)).all():
        raise InvalidInputError(f"{name} must be between 0 and 1, both excluded; got {values!r}.")
    return array


def check_probability(value: Any, name: str) -> float:
    """Return one number strictly between 0 and 1."""
    probability = check_probabilities(value, name)
    if probability.ndim:
        raise InvalidInputError(f"{name} must be one number; got {value!r}.")
    return float(probability)


def require(condition: Any, problem: str) -> None:
    """Raise InvalidInputError with the problem unless the condition holds."""
    if not condition:
        raise InvalidInputError(problem)
