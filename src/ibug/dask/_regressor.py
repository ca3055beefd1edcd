"""IBUGRegressor on a Dask cluster, with the index in shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client, default_client
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ibug._inputs import check_count, check_probabilities
from ibug.affinity import chunk_size
from ibug.dask._fitting import ClusterFitter
from ibug.dask._graph import SearchGraph
from ibug.dask._law import LazyDistribution, framed, index_of
from ibug.dask._partitions import Key, Partitions, check_kind, meta_of
from ibug.dask._rule import answer, law_of
from ibug.dask._training import local_model, require_trainable, trained
from ibug.exceptions import InvalidInputError
from ibug.leaves import reader_type

_NO_CLONES = (
    "Cross-fitting trains clones of a local estimator on local rows; on a cluster it is not done. Leave cv out and "
    "pass X_val and y_val, or let validation_fraction hold rows out."
)


class IBUGRegressor(ClusterFitter):
    """``ibug.IBUGRegressor`` for training rows that are on a Dask cluster.

    Parameters, learned attributes and results are those of the local estimator: given the same model and the same
    validation rows, predictions are equal bit for bit, however the rows are partitioned. Each partition of the training
    rows becomes a shard of the index on the worker where it is; a query goes to all shards, and their answers are
    merged. Only what is said here differs.

    `fit` takes Dask DataFrames and Arrays, X and y with the same partitions, or local data, which are cut into one part
    per worker. The estimator is one that is trained already (``prefit=True``), or ``lightgbm.DaskLGBMRegressor`` or
    ``xgboost.dask.DaskXGBRegressor``, trained on the cluster; ``estimator_`` is then its local model.

    No clones are trained: `cv` must be None, and residuals are those of validation rows. Where `fit` is given no
    validation rows and trains the model, a random `validation_fraction` of each partition is held out.

    Predictions of a Dask DataFrame are lazy Series or DataFrames with its index, partitions and divisions; those of a
    Dask Array are lazy Arrays with its chunks of rows; those of a pandas frame or NumPy array are NumPy arrays, at
    once.

    The ``client`` attribute is the Dask client to work with; unless it is set, the one that is active.

    Attributes
    ----------
    index_
        Only its size: ``n_rows`` and ``n_trees``.
    residuals_ : None
        Residuals are with the shards.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ibug.dask import IBUGRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     rows, targets = da.from_array(X[:300], (100, -1)), da.from_array(y[:300], 100)
    ...     u = IBUGRegressor(model, prefit=True).fit(rows, targets, X_val=X[300:400], y_val=y[300:400])
    ...     u.predict_interval(da.from_array(X[400:], (20, -1)), coverage=0.9).compute().shape
    (42, 2)
    """

    _client: Client | None = None

    @property
    def client(self) -> Client:
        """The Dask client that is worked with."""
        if self._client is not None:
            return self._client
        try:
            return default_client()
        except ValueError as error:
            raise InvalidInputError(
                "There is no Dask client: connect to a cluster first, client = distributed.Client(address), or start "
                "one here, distributed.Client()."
            ) from error

    @client.setter
    def client(self, client: Client | None) -> None:
        self._client = client

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        **fit_params: Any,
    ) -> IBUGRegressor:
        """Make each partition a shard, choose k and calibrate; train the model before that unless `prefit` is set.

        Parameters
        ----------
        X, y
            Training rows and targets: Dask DataFrame or Array with Series or Array, or local data. They are read three
            times; persist them if that is slow. Lost shards are made again from them.
        sample_weight
            Passed on to the estimator's `fit`: a collection with the same partitions.
        X_val, y_val
            Rows that the model has not been trained on, to choose k and to calibrate; also Dask collections or local.
        **fit_params
            Passed on to the estimator's `fit`.
        """
        client = self.client
        self._check_options()
        if self.cv is not None:
            raise InvalidInputError(_NO_CLONES)
        prefit = self.prefit or isinstance(self.estimator, FrozenEstimator)
        if prefit:
            model = local_model(self.estimator)
            reader_type(model)
        else:
            require_trainable(self.estimator)
        rng = check_random_state(self.random_state)
        X, y, rows = self._examine(client, X, y, "X and y", reset=True)
        validation = None
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise InvalidInputError(f"X_val and y_val belong together: {missing} is missing.")
        if X_val is not None:
            validation = self._examine(client, X_val, y_val, "X_val and y_val", reset=False)[2]
        fit_params = fit_params if sample_weight is None else {**fit_params, "sample_weight": sample_weight}
        if prefit:
            given: Any = validation  # it is only asked whether there are any
            self._check_prefit(fit_params, given)
            self._fit_trained(client, model, rows, validation, rng)
        elif validation is not None or not self._needs_validation:
            self._fit_trained(client, trained(self.estimator, client, X, y, fit_params), rows, validation, rng)
        else:
            self._fit_held_out(client, self.estimator, X, y, fit_params, rng)
        return self

    def predict(self, X: Any) -> Any:
        """Return the model's own point predictions, unchanged, one per row."""
        rows = self._rows(X)
        graph = SearchGraph(self._source, rows, n_jobs=self.n_jobs, by_library=True)
        return self._gathered(graph, graph.points(), None, self._prediction_type)

    def predict_dist(self, X: Any) -> Any:
        """Return the predicted laws: a ``LazyDistribution`` for Dask collections, else a local batch."""
        rows = self._rows(X)
        graph = self._graph(rows)
        rule = graph.literal("rule", self._rule)
        found = graph.found(self._rule._needs, self._shards, self._residual_shards)
        laws = graph.each("law", lambda j, one: (law_of, rule, one, "predict_dist"), found)
        lazy = LazyDistribution(rows, graph.delayed(laws), _indices(rows))
        return lazy.compute() if rows.are_local else lazy

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return the central interval of the given coverage: columns ``lower`` and ``upper``."""
        if np.ndim(coverage) != 0:
            raise InvalidInputError(
                f"coverage must be one number, not {coverage!r}; several are for predict_quantiles."
            )
        check_probabilities(coverage, "coverage")
        return self._answer(X, "predict_interval", {"coverage": coverage}, ["lower", "upper"])

    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Any:
        """Return the quantiles at the probabilities `alpha`, one column each; in frames these are their names."""
        probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
        return self._answer(X, "predict_quantiles", {"alpha": probabilities}, probabilities.tolist())

    def predict_var(self, X: Any) -> Any:
        """Return the calibrated variances, one per row."""
        return self._answer(X, "predict_var", {}, None)

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> Any:
        """Find the training rows behind each prediction.

        Returns
        -------
        affinities, indices
            Both with n_neighbors columns (``None`` means ``k_``). Indices are row numbers in all of the X that was
            given to `fit`, counted through its partitions.
        """
        check_is_fitted(self)
        k = self.k_ if n_neighbors is None else check_count(n_neighbors, 1, self.index_.n_rows, "n_neighbors")
        rows = self._rows(X)
        graph = self._graph(rows)
        found = graph.found({"targets": k}, self._shards)
        rule = graph.literal("rule", self._rule)
        both = graph.each("kneighbors", lambda j, one: (answer, rule, one, "kneighbors", {"n_neighbors": k}), found)
        columns = list(range(k))
        return tuple(
            self._gathered(graph, both, columns, dtype, name, part)
            for part, (name, dtype) in enumerate({"affinities": np.int32, "indices": np.int64}.items())
        )

    def affinity_score(self, X: Any) -> Any:
        """Return how familiar each row is: the mean affinity of its neighbours as a share of the trees."""
        check_is_fitted(self)
        return self._answer(X, "affinity_score", {}, None, {"targets": self.k_})

    def leaf_density(self, X: Any, *, per: str = "row") -> Any:
        """Return the share of the training rows that are in the same leaf, on average (paper, section C.5).

        ``per="row"`` gives one number per row, lazily; ``per="tree"`` one per tree, as a NumPy array, at once.
        """
        if per not in ("row", "tree"):
            raise InvalidInputError(f'per must be "row" or "tree"; got {per!r}.')
        rows = self._rows(X)
        graph = self._graph(rows)
        sizes = graph.leaf_sizes(self._shards)
        if per == "row":
            shares = graph.each("density", lambda j, size: (_density, size, self.index_.n_rows), sizes)
            return self._gathered(graph, shares, None, np.float64)
        sums = graph.each("by-tree", lambda j, size: (_by_tree, size), sizes)
        counts = self.client.gather(self.client.compute(graph.delayed(sums)))
        n_rows = sum(n for n, _ in counts)
        return np.add.reduce([count for _, count in counts]) / (n_rows * self.index_.n_rows)

    def select_distribution(self, X_val: Any, y_val: Any, families: Any = "tune") -> IBUGRegressor:
        """Choose family, k and calibration again on other validation rows, without training or indexing again."""
        check_is_fitted(self)
        if X_val is None or y_val is None:
            raise InvalidInputError("select_distribution needs X_val and y_val.")
        validation = self._examine(self.client, X_val, y_val, "X_val and y_val", reset=False)[2]
        rng = check_random_state(self.random_state)
        self._learn_rule(self.client, None, self._rule._facts, validation, families, rng)
        return self

    def uncalibrated(self) -> IBUGRegressor:
        """Return a copy that predicts what the neighbours say as it is, to see what calibration is worth."""
        check_is_fitted(self)
        plain = copy(self)
        plain._take(self._rule.uncalibrated())
        return plain

    def save(
        self, path: str | PathLike[str], *, compress: bool = True, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Save the fitted regressor as a folder, which ``ibug.dask.load`` reads: on a cluster of any size, or locally.

        Each worker writes its shards, so that all must see the folder under this name; ``model.ibug`` has the rest, and
        tells which shards belong to it. Nothing is pickled.

        Parameters
        ----------
        path
            The folder; it is made if it is not there.
        compress, metadata
            As in ``ibug.IBUGRegressor.save``: ``compress=False`` lets shards be mapped into memory.
        """
        from ibug.dask._saving import save  # which knows this class

        check_is_fitted(self)
        save(self, path, compress=compress, metadata=metadata)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_rule")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_client"}

    def _rows(self, X: Any) -> Partitions:
        check_is_fitted(self)
        X = check_kind(X, "X")
        validate_data(self, meta_of(X), reset=False, skip_check_array=True)
        rows = Partitions.of(X, chunk_size(self.index_.n_trees + 4 * self.k_))
        if not len(rows):
            raise InvalidInputError("Found array with 0 sample(s); at least one row is needed.")
        return rows

    def _answer(
        self,
        X: Any,
        method: str,
        arguments: dict[str, Any],
        columns: Sequence[Any] | None,
        needs: dict[str, int] | None = None,
    ) -> Any:
        """Return what one of the local estimator's methods says, with one number per row or several columns."""
        rows = self._rows(X)
        graph = self._graph(rows)
        rule = graph.literal("rule", self._rule)
        found = graph.found(needs or self._rule._needs, self._shards, self._residual_shards)
        width = None if columns is None else len(columns)
        keys = graph.each("answer", lambda j, one: (_answer, rule, one, method, arguments, width), found)
        return self._gathered(graph, keys, columns, np.float64)

    def _gathered(
        self,
        graph: SearchGraph,
        keys: Sequence[Key],
        columns: Sequence[Any] | None,
        dtype: Any,
        name: str = "result",
        part: int | None = None,
    ) -> Any:
        """Put the partitions' arrays together in the manner of the rows that were asked for."""
        rows = graph.queries
        if rows.are_frames:
            last = graph.each(name, lambda j, X, one: (_framed, one, part, X.key, columns), rows.parts, keys)
        else:
            flat = columns is None or rows.are_local
            last = graph.each(name, lambda j, one: (_part, one, part), keys, tail=() if flat else (0,))
        return rows.gather(graph.highlevel(graph.name(name)), last, columns, dtype)


def _indices(rows: Partitions) -> list[Any] | None:
    return [delayed(index_of)(part) for part in rows.parts] if rows.are_frames else None


def _answer(rule: Any, found: Any, method: str, arguments: dict[str, Any], width: int | None) -> Any:
    if not len(found):
        return np.empty(0 if width is None else (0, width))
    return answer(rule, found, method, arguments)


def _part(value: Any, part: int | None) -> Any:
    return value if part is None else value[part]


def _framed(value: Any, part: int | None, X: Any, columns: Any) -> Any:
    return framed(_part(value, part), X.index, columns)


def _density(sizes: Any, n_rows: int) -> Any:
    return sizes.mean(axis=1) / n_rows


def _by_tree(sizes: Any) -> tuple[int, Any]:
    return len(sizes), sizes.sum(axis=0)
