"""Shapley values of the shap package: rows to compare with, rows made of cells of both, and shap's explainers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ibug._installed import how_to_install
from ibug._typing import Floats, Integers
from ibug._validation import as_rows, check_at_least_one
from ibug.exceptions import InvalidInputError, MissingDependencyError
from ibug.leaves import is_pandas

# With fewer rows of its own, X says little of what is usual.
_LEAST_OWN_ROWS = 20

Take = Callable[[Any, Integers], Any]
Make = Callable[[list[Any]], Any]


def background_of(
    estimator: Any, X: Any, background: Any, choose: str, n_background: int, random_state: int
) -> tuple[Any, Integers]:
    """Return rows in the form of X, and which of them each row of X is compared with, (n_rows, n_background)."""
    if choose not in ("random", "nearest"):
        raise InvalidInputError(f'choose must be "random" or "nearest"; got {choose!r}.')
    check_at_least_one(n_background, "n_background")
    if background is None:
        if choose == "nearest":
            raise InvalidInputError('choose="nearest" compares with training rows: pass background=X_train.')
        if _num_samples(X) < _LEAST_OWN_ROWS:
            raise InvalidInputError(
                f"A width is compared with that of other rows, and {_num_samples(X)} rows are too few: pass "
                f"background=X_train. The estimator does not keep the training rows. From {_LEAST_OWN_ROWS} rows on X "
                "can be its own background."
            )
        background = X
    rows = as_rows(background)
    if rows.shape[1] != X.shape[1]:
        raise InvalidInputError(f"background must have the {X.shape[1]} columns of X; it has {rows.shape[1]}.")
    if choose == "nearest":
        return _nearest(estimator, X, rows, n_background)
    n = _num_samples(rows)
    chosen = np.sort(np.random.default_rng(random_state).choice(n, min(n_background, n), replace=False))
    every = np.broadcast_to(np.arange(len(chosen)), (_num_samples(X), len(chosen)))
    return _safe_indexing(rows, chosen), every


def _nearest(estimator: Any, X: Any, rows: Any, n_background: int) -> tuple[Any, Integers]:
    if not hasattr(estimator, "kneighbors"):
        raise InvalidInputError(f'choose="nearest" is for neighbours, and {type(estimator).__name__} has none.')
    n_train = len(estimator.training_targets_)
    if _num_samples(rows) != n_train:
        raise InvalidInputError(
            f'With choose="nearest" the background must be the {n_train} training rows, in the order of fit; it has '
            f"{_num_samples(rows)}."
        )
    found = estimator.kneighbors(X, min(n_background, estimator.source_.index.n_rows))[1]
    occurring, places = np.unique(found, return_inverse=True)
    return _safe_indexing(rows, occurring), places.reshape(found.shape)


class CellTable:
    """Rows to explain and below them those that they are compared with, of which new rows are made cell by cell.

    Parameters
    ----------
    columns : list of array or series
        The columns, each with the type that the model takes.
    arrays : list of ndarray
        The same as arrays.
    take : function of a column and numbers of rows
        Returns the column's values in these rows.
    make : function of columns
        Returns rows in the form of X.
    """

    def __init__(self, columns: Sequence[Any], arrays: Sequence[NDArray[Any]], take: Take, make: Make) -> None:
        self.arrays = [np.asarray(array) for array in arrays]
        #: Whole numbers that are equal where values of a column are, (n_rows, n_features).
        self.codes = np.stack([_codes(array) for array in self.arrays], axis=1)
        self._columns, self._take, self._make = columns, take, make

    def take(self, rows: Integers) -> Any:
        """Return rows in the form of X, each cell from a row of its own. Shapes: rows (n_new_rows, n_features)."""
        return self._make([self._take(column, rows[:, j]) for j, column in enumerate(self._columns)])


def cell_table(X: Any, background: Any) -> CellTable:
    """Join the rows of X and those of the background."""
    if issparse(X) or issparse(background):
        raise InvalidInputError("explain_width takes no sparse matrix: the model must take arrays; pass X.toarray().")
    if is_pandas(X) and is_pandas(background):
        return _cell_table_of_pandas(X, background)
    if hasattr(X, "vstack") and hasattr(background, "vstack"):  # polars
        series = X.vstack(background).get_columns()
        return CellTable(
            series, [_as_array(column) for column in series], lambda column, rows: column.gather(rows), type(X)
        )
    if hasattr(X, "columns") or hasattr(background, "columns"):
        raise InvalidInputError(
            f"X and background must be of the same kind; got {type(X).__name__} and {type(background).__name__}."
        )
    columns = list(np.concatenate([np.asarray(X), np.asarray(background)]).T)
    return CellTable(columns, columns, lambda column, rows: column[rows], lambda parts: np.stack(parts, axis=1))


def _cell_table_of_pandas(X: Any, background: Any) -> CellTable:
    import pandas as pd

    for name, own, other in zip(X.columns, X.dtypes, background.dtypes, strict=True):
        if isinstance(own, pd.CategoricalDtype) and own != other:
            raise InvalidInputError(
                f"The column {name!r} has other categories in the background than in X. Give both the "
                "type that the column had in training."
            )
    table = pd.concat([X, background], ignore_index=True)
    columns = [table.iloc[:, j].array for j in range(table.shape[1])]

    def make(parts: list[Any]) -> Any:
        return pd.DataFrame(dict(enumerate(parts))).set_axis(X.columns, axis=1)

    return CellTable(columns, columns, lambda column, rows: column.take(rows), make)


def _as_array(series: Any) -> NDArray[Any]:
    """Return a series of polars as an array: of numbers, or of objects."""
    numbers = np.asarray(series.to_numpy())
    return numbers if numbers.dtype.kind in "biuf" else np.asarray(series.to_list(), object)


def _codes(column: NDArray[Any]) -> Integers:
    """Return whole numbers that are equal where values are; NaN equals NaN."""
    comparable = column if column.dtype.kind in "biufmMUS" else np.array([repr(value) for value in column])
    return np.unique(comparable, return_inverse=True)[1].astype(np.int64).reshape(-1)


def shap_package() -> Any:
    """Return ``shap``, or say how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it changes colour maps in a way that matplotlib deprecates
            import shap
    except ImportError as error:
        raise MissingDependencyError(
            "Shapley values of the width need the shap package, which cannot be imported "
            f"({error}). Install it: {how_to_install('explain')}. It brings numba and llvmlite."
        ) from error
    return shap


def shapley_values(
    function: Callable[[Any], Floats], row: Floats, others: Floats, n_evaluations: int, seed: int
) -> tuple[Floats, float]:
    """Return the Shapley values of one row, and the mean of the function over the others.

    Shapes: row (n_features,); others (n_background, n_features).
    """
    shap = shap_package()
    masker = shap.maskers.Independent(others, max_samples=len(others))
    n_sets = 2 ** len(row)  # of features: the values are exact if all are evaluated
    with _own_random_numbers():
        if n_sets <= n_evaluations:
            explainer = shap.ExactExplainer(function, masker)
        else:  # means over random orders of the features, each run through forwards and backwards
            explainer = shap.PermutationExplainer(function, masker, seed=seed)
        found = explainer(row[None], max_evals=min(n_sets, n_evaluations), silent=True)
    return np.asarray(found.values[0], np.float64), float(np.ravel(found.base_values)[0])


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Put NumPy's global generator back, from which shap draws."""
    state = np.random.get_state()  # noqa: NPY002 - the one that shap seeds
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002 - likewise
