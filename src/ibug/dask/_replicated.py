"""A trained regressor on each worker: for rows to score that do not fit one machine, with an index that does."""

from __future__ import annotations

from os import PathLike
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, WorkerPlugin, default_client, get_worker
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, validate_data

from ibug._estimator import answers_alpha, answers_coverage
from ibug._validation import check_probabilities
from ibug.dask._cluster import graph_of
from ibug.dask._distribution import LazyDistribution
from ibug.dask._rows import Partitions, check_kind, framed, in_partition, is_dask, meta_of, no_answers
from ibug.exceptions import InvalidInputError
from ibug.persistence import load


class ReplicatedRegressor:
    """Score Dask collections with a fitted local regressor of which each worker gets one copy.

    Every method is that of the local regressor, applied to each partition: nothing but rows and results moves, and
    results are equal bit for bit. Those of a Dask DataFrame are Series and
    DataFrames with its index and divisions, those of a Dask Array are Arrays; local rows are scored here.

    Parameters
    ----------
    regressor
        A fitted ``ibug.IBUGRegressor``, ``CBURegressor`` or ``ProbabilisticEnsemble``; or the path of a saved one,
        which all workers can read: then the index is memory-mapped, so that workers of one machine share it.
    client
        The Dask client; unless it is given, the one that is active. Workers that join later, or are started again, get
        their copy, too.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ibug import IBUGRegressor
    >>> from ibug.dask import ReplicatedRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> u = IBUGRegressor(spread="targets", random_state=0).fit(X, y)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     everywhere = ReplicatedRegressor(u)
    ...     everywhere.predict_quantiles(da.from_array(X, (100, -1)), alpha=[0.1, 0.9]).compute().shape
    (442, 2)
    """

    def __init__(self, regressor: Any, client: Client | None = None) -> None:
        self.client = default_client() if client is None else client
        self.regressor = _load(regressor)
        self.name = f"ibug-{uuid4().hex}"
        self.client.register_plugin(_Copy(regressor), name=self.name)

    def close(self) -> None:
        """Take the copies off the workers."""
        self.client.unregister_worker_plugin(self.name)

    def predict(self, X: Any) -> Any:
        """Return the model's own point predictions, one per row."""
        return self._map(X, "predict", {}, None)

    def predict_dist(self, X: Any) -> Any:
        """Return the predicted distributions: a ``LazyDistribution`` for Dask collections, else a local batch."""
        X = self._check(X)
        if not is_dask(X):
            return self.regressor.predict_dist(X)
        rows = Partitions.of(X, 1)
        distributions = [delayed(_distribution)(self.name, j, part) for j, part in enumerate(rows.parts)]
        return LazyDistribution(rows, distributions)

    @answers_coverage
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return the central interval of the given coverage: columns ``lower`` and ``upper``.

        Parameters
        ----------
        X : Dask collection, array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        coverage : float
            The probability that the interval shall hold, between 0 and 1.
        """
        check_probabilities(coverage, "coverage")
        return self._map(X, "predict_interval", {"coverage": coverage}, ["lower", "upper"])

    @answers_alpha
    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Any:
        """Return the quantiles at the probabilities `alpha`, one column each; in frames these are their names.

        Parameters
        ----------
        X : Dask collection, array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        alpha : float or array-like of shape (n_alpha,)
            Probabilities between 0 and 1.
        """
        probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
        return self._map(X, "predict_quantiles", {"alpha": probabilities}, probabilities.tolist())

    def predict_var(self, X: Any) -> Any:
        """Return the variances, one per row."""
        return self._map(X, "predict_var", {}, None)

    def affinity_score(self, X: Any) -> Any:
        """Return the similarity of each row to the training data: its neighbours' mean share of the trees."""
        return self._map(X, "affinity_score", {}, None)

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> Any:
        """Return affinities and row numbers of the training rows behind each prediction.

        Parameters
        ----------
        X : Dask collection, array-like or data frame of shape (n_rows, n_features)
            The rows to predict.
        n_neighbors : int, optional
            How many; ``None`` means ``k_``.
        """
        k = self.regressor.k_ if n_neighbors is None else n_neighbors
        return tuple(
            self._map(X, "kneighbors", {"n_neighbors": k}, list(range(k)), dtype=dtype, part=part)
            for part, dtype in enumerate((np.int32, np.int64))
        )

    def _check(self, X: Any) -> Any:
        X = check_kind(X, "X")
        validate_data(self.regressor, meta_of(X), reset=False, skip_check_array=True)
        return X

    def _map(
        self,
        X: Any,
        method: str,
        arguments: dict[str, Any],
        columns: list[Any] | None,
        *,
        dtype: Any = np.float64,
        part: int | None = None,
    ) -> Any:
        X = self._check(X)
        if not is_dask(X):
            answer = getattr(self.regressor, method)(X, **arguments)
            return answer if part is None else answer[part]
        rows, name = Partitions.of(X, 1), f"ibug-{method}-{uuid4().hex}"
        keys = rows.keys(name, columns)
        task = (self.name, method, arguments, columns, part)
        tasks = {key: (_score, j, X.key, *task) for j, (key, X) in enumerate(zip(keys, rows.parts, strict=True))}
        return rows.gather(graph_of(name, tasks, rows.parts), keys, columns, dtype)


class _Copy(WorkerPlugin):
    """Puts the regressor on a worker when the worker starts."""

    def __init__(self, regressor: Any) -> None:
        self._given = regressor
        self.regressor: Any = None

    def setup(self, worker: Any) -> None:
        self.regressor = _load(self._given)


def _load(regressor: Any) -> Any:
    if hasattr(regressor, "predict_dist"):
        return regressor
    if isinstance(regressor, (str, PathLike)):
        return load(regressor)
    raise InvalidInputError(f"regressor must be a fitted regressor of ibug; got {regressor!r}.")


def _here(name: str) -> Any:
    return get_worker().plugins[name].regressor


def _distribution(name: str, number: int, X: Any) -> Any:
    if _num_samples(X) == 0:
        return None
    with in_partition(number, "X"):
        return _here(name).predict_dist(X)


def _score(
    number: int, X: Any, name: str, method: str, arguments: dict[str, Any], columns: list[Any] | None, part: int | None
) -> Any:
    if _num_samples(X) == 0:
        values = no_answers(columns)
    else:
        with in_partition(number, "X"):
            values = getattr(_here(name), method)(X, **arguments)
            values = values if part is None else values[part]
    return framed(values, X.index, columns) if isinstance(X, pd.DataFrame) else values
