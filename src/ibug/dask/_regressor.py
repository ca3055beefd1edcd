"""IBUGRegressor on a Dask cluster, with the index in shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from dask.delayed import Delayed
from distributed import Client, default_client
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ibug._estimator import all_or_nothing, answers_alpha, answers_coverage, view
from ibug._frames import FeatureType, feature_types, quantile_names
from ibug._options import Options
from ibug._read_only import keeps_read_only
from ibug._typing import Floats
from ibug._validation import check_count, check_probabilities, check_unique_names
from ibug.dask._cluster import keep_shards
from ibug.dask._distribution import LazyDistribution
from ibug.dask._index import SearchGraph, ShardedIndex, itself
from ibug.dask._rows import Key, Partitions, as_collections, check_kind, framed, meta_of, no_answers
from ibug.dask._strategies import (
    ClusterWork,
    check_cluster_options,
    check_fit_options,
    distribution_of,
    fit_on_cluster,
    learn_on_cluster,
    local_model,
    require_trainable,
)
from ibug.dask._totals import here, label_frame, totals_on_cluster
from ibug.exceptions import InvalidInputError
from ibug.leaves import reader_type
from ibug.neighbors import Batch, chunk_size
from ibug.regressor import IBUGRegressor as LocalRegressor
from ibug.rule import Rule
from ibug.totals import Dependence, TotalDistribution, column_names, label_columns, learn_dependence, normal_scores


@keeps_read_only
class IBUGRegressor(RegressorMixin, BaseEstimator):
    """``ibug.IBUGRegressor`` for training rows that are on a Dask cluster.

    Results are those of the local estimator with ``residuals="none"`` and ``search="exact"``: given the
    same model and validation rows, predictions are equal bit for bit, however the rows are partitioned. Each partition
    of the training rows becomes a shard of the index on the worker where it is; a query goes to all shards, and their
    answers are merged. What differs:

    - `fit` takes Dask DataFrames and Arrays, X and y with the same partitions, or local data, which are cut into one
      part per worker. The estimator is trained already (``prefit=True``), or it is ``lightgbm.DaskLGBMRegressor`` or
      ``xgboost.dask.DaskXGBRegressor``, trained on the cluster; ``estimator_`` is then its local model.
    - No clones are trained, nor is the model asked for residuals: they are those of validation rows. Without such rows,
      a random share of each partition is held out where the model is trained here: a fifth, unless `cv` is another.
    - The `tree_order` of `sampling` is not ``"gain"``.
    - ``search="auto"`` is exact. A number of cells is that of each shard, if shards have cells (20,000 rows).
    - Predictions of a Dask DataFrame are lazy Series or DataFrames with its index, partitions and divisions; those of a
      Dask Array are lazy Arrays with its chunks of rows; those of local rows are NumPy arrays, at once.
    - The ``client`` attribute is the Dask client to work with; unless it is set, the one that is active.

    Attributes
    ----------
    residuals_ : None
        Residuals are with the shards: those of validation rows, if any.
    source_, rule_, shards_ : ShardedIndex, Rule, ShardSet
        Where neighbours come from, what is made of them, and the index on the cluster. ``source_.index`` has only its
        size, ``n_rows`` and ``n_trees``; ``source_.residual_kind`` and ``source_.residual_reason`` say which residuals
        there are, and why training rows have none.

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

    # Learned; all that follows are views of these two.
    source_: ShardedIndex
    rule_: Rule
    dependence_: Dependence | None = None
    feature_types_: list[FeatureType]
    estimator_ = view("source_", "model")
    shards_ = view("source_", "shards")
    residuals_ = view("source_", "residuals")
    k_ = view("rule_", "k")
    spread_ = view("rule_", "spread_name")
    distribution_ = view("rule_", "distribution_name")
    stack_ = view("rule_", "experts")
    search_ = view("source_", "search_plan")
    conformal_ = view("rule_", "conformal")
    affinity_threshold_ = view("rule_", "affinity_threshold")
    tuning_ = view("rule_", "tuning")
    support_ = view("rule_", "bounds")

    # The same parameters as those of the local estimator, by definition.
    __init__ = LocalRegressor.__init__

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

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        blocks_val: Any = None,
        **fit_params: Any,
    ) -> IBUGRegressor:
        """Make each partition a shard, choose k and calibrate; train the model before that unless `prefit` is set.

        Parameters
        ----------
        X, y
            Training rows and targets. They are read several times; persist them if that is slow. Lost shards are made
            again from them.
        sample_weight
            Passed on to the estimator's `fit`: a collection with the same partitions.
        X_val, y_val
            Validation rows, which the model has not been trained on; also Dask collections or local.
        blocks_val
            Which validation rows belong together, for totals: a column of X_val, several, or labels of the rows.
        **fit_params
            Passed on to the estimator's `fit`.
        """
        options, client = Options.of(self.get_params(deep=False)), self.client
        check_fit_options(options)
        if "sample_weight_val" in fit_params:
            raise _no_weights("sample_weight_val")
        if options.prefit:
            options = replace(options, residuals="none")
            estimator = local_model(self.estimator)
            reader_type(estimator)
        else:
            estimator = require_trainable(self.estimator)
        X, y = self._collections(X, y, "X and y", reset=True)
        columns, rng = getattr(self, "feature_names_in_", None), check_random_state(self.random_state)
        work = ClusterWork(client, columns, options, rng)
        rows, validation = work.examine(X, y, "X and y"), None
        if (X_val is None) != (y_val is None):
            missing = "X_val" if X_val is None else "y_val"
            raise InvalidInputError(f"X_val and y_val belong together: {missing} is missing.")
        if X_val is not None:
            given = self._collections(X_val, y_val, "X_val and y_val", reset=False)
            validation = work.examine(*given, "X_val and y_val")
        fit_params = fit_params if sample_weight is None else {**fit_params, "sample_weight": sample_weight}
        if blocks_val is not None and X_val is None:
            raise InvalidInputError("blocks_val are blocks of validation rows: pass X_val and y_val, too.")
        self.source_, self.rule_ = fit_on_cluster(work, estimator, X, y, rows, validation, fit_params)
        self.dependence_ = self._dependence(X_val, y_val, blocks_val)
        return self

    def predict(self, X: Any) -> Any:
        """Return the model's own point predictions, unchanged, one per row."""
        graph = self._graph(X)
        return _gathered(graph, graph.points(), None, self.source_.prediction_type)

    def predict_dist(self, X: Any) -> Any:
        """Return the predicted distributions: a ``LazyDistribution`` for Dask collections, else a local batch."""
        rows, parts = self._distributions(X)
        lazy = LazyDistribution(rows, parts)
        return lazy.compute() if rows.are_local else lazy

    def total_dist(self, X: Any, by: Any = None, *, weights: Any = None, blocks: Any = None) -> TotalDistribution:
        """Return the distributions of sums of rows, one for each group, at once.

        Each partition adds up its rows on the cluster; what comes back does not grow with their number.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows to predict and to add up.
        by, weights, blocks
            As in ``ibug.IBUGRegressor.total_dist``; labels are columns of X, arrays, or Dask Arrays or Series.
        """
        rows, parts = self._distributions(X)
        return totals_on_cluster(self.rule_, self.dependence_, X, rows.parts, parts, by, weights, blocks)

    @answers_coverage
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Return the central interval of the given coverage: columns ``lower`` and ``upper``.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows to predict. The answer is of the same kind: frames for frames, with the same index, so that there
            is no ``output`` to choose.
        coverage : float
            The probability that the interval shall hold, between 0 and 1. On a cluster it is one number.
        """
        if np.ndim(coverage) != 0:
            raise InvalidInputError(
                f"On a cluster coverage is one number; got {coverage!r}. Several intervals are quantiles: "
                "predict_quantiles(X, alpha=[0.05, 0.25, 0.75, 0.95]) has those of 90 % and of 50 %."
            )
        check_probabilities(coverage, "coverage")
        return self._answer(X, _interval_of, ["lower", "upper"], coverage)

    @answers_alpha
    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Any:
        """Return the quantiles at the probabilities `alpha`, one column each; in frames ``q0.05`` and so on.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows to predict. The answer is of the same kind.
        alpha : float or array-like of shape (n_alpha,)
            Probabilities between 0 and 1.
        """
        probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
        return self._answer(X, _quantiles_of, quantile_names(probabilities), probabilities)

    def predict_var(self, X: Any) -> Any:
        """Return the variances of the distributions, one per row.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows to predict. The answer is of the same kind.
        """
        return self._answer(X, Rule.predicted_variance, None)

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> Any:
        """Find the training rows behind each prediction.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows to predict. The answers are of the same kind.
        n_neighbors : int, optional
            How many training rows; ``None`` means ``k_``.

        Returns
        -------
        affinities, indices
            Both with n_neighbors columns, in frames ``affinity_1``, … and ``neighbor_1``, … Indices are row numbers in
            all of the X that was given to `fit`, counted through its partitions.
        """
        check_is_fitted(self)
        k = self.k_ if n_neighbors is None else check_count(n_neighbors, 1, self.source_.index.n_rows, "n_neighbors")
        graph = self._graph(X)
        batches = graph.batches({"targets": k})

        def columns_of(function: Callable[..., Any], name: str, column: str, dtype: Any) -> Any:
            keys = graph.each(name, lambda j, batch: (function, batch, k), batches)
            return _gathered(graph, keys, [f"{column}_{i}" for i in range(1, k + 1)], dtype, name)

        return (
            columns_of(_affinities_of, "affinities", "affinity", np.int32),
            columns_of(_rows_of, "indices", "neighbor", np.int64),
        )

    def affinity_score(self, X: Any) -> Any:
        """Return the similarity of each row to the training data: its neighbours' mean share of the trees."""
        check_is_fitted(self)
        return self._answer(X, _affinity_score_of, None, self.source_.n_trees, needs={"targets": self.k_})

    def leaf_density(self, X: Any, *, per: str = "row") -> Any:
        """Return the share of the training rows in the same leaf: for each row, lazily, or for each tree, at once.

        Parameters
        ----------
        X : Dask collection, or local rows
            The rows.
        per : {"row", "tree"}, default="row"
            The mean over the trees for each row, or the mean over the rows for each tree.
        """
        if per not in ("row", "tree"):
            raise InvalidInputError(f'per must be "row" or "tree"; got {per!r}.')
        graph = self._graph(X)
        sizes = graph.leaf_sizes()
        if per == "row":
            shares = graph.each("density", lambda j, size: (_density_of, size, self.source_.index.n_rows), sizes)
            return _gathered(graph, shares, None, np.float64)
        sums = graph.each("by-tree", lambda j, size: (_density_by_tree, size), sizes)
        counts = self.client.gather(self.client.compute(graph.delayed(sums)))
        n_rows = sum(n for n, _ in counts)
        return np.add.reduce([count for _, count in counts]) / (n_rows * self.source_.index.n_rows)

    @all_or_nothing
    def recalibrate(
        self, X: Any, y: Any, sample_weight: Any = None, *, distribution: Any = None, blocks: Any = None
    ) -> IBUGRegressor:
        """Let newer labelled rows choose and calibrate again, as the validation rows of `fit` did.

        Model, shards and training targets stay: nothing is trained.

        Parameters
        ----------
        X, y
            Rows that the model has not been trained on, and their targets; Dask collections or local.
        sample_weight
            None: on a cluster all rows have the same weight.
        distribution
            Another `distribution` to learn; ``None``: that of the parameter.
        blocks
            Which rows belong together, for totals, see `fit`. ``None``: what is known of blocks stays.
        """
        if sample_weight is not None:
            raise _no_weights("sample_weight")
        check_is_fitted(self)
        self.source_.check_held()
        if X is None or y is None:
            raise InvalidInputError("recalibrate needs rows and their targets, X and y.")
        parameters = self.get_params(deep=False) | ({} if distribution is None else {"distribution": distribution})
        options = Options.of(parameters)
        check_cluster_options(options)
        work = ClusterWork(self.client, None, options, check_random_state(self.random_state))
        validation = work.examine(*self._collections(X, y, "X_val and y_val", reset=False), "X_val and y_val")
        target = work.summary(self.source_.targets, self.source_.all_targets())
        self.source_, self.rule_ = learn_on_cluster(work, self.source_, validation, target)
        if blocks is not None:
            self.dependence_ = self._dependence(X, y, blocks)
        return self

    def update(self, X: Any, y: Any, *, keep: int | None = None) -> IBUGRegressor:
        """Refuse: an index that is divided into shards does not take new rows.

        Parameters
        ----------
        X, y, keep
            As in ``ibug.IBUGRegressor.update``.

        Raises
        ------
        InvalidInputError
            Always, with what to do.
        """
        raise InvalidInputError(
            "An index that is divided into shards takes no new rows. Fit again with prefit=True on the old and the new "
            "rows together: the model is not trained, only indexed. recalibrate takes new rows to calibrate on."
        )

    def save(
        self, path: str | PathLike[str], *, compress: bool = True, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Save the fitted regressor as a folder, which ``ibug.dask.load`` reads: on a cluster of any size, or locally.

        Each worker writes its shards, so that all must see the folder under this name. Nothing is pickled.

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
        return "rule_" in self.__dict__

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_client"}

    def _distributions(self, X: Any) -> tuple[Partitions, list[Delayed]]:
        """Return the partitions of rows, and the distributions of each."""
        graph = self._graph(X)
        rule, batches = graph.literal("rule", self.rule_), graph.batches(self.rule_.needs)
        parts = graph.each("distribution", lambda j, batch: (distribution_of, rule, batch), batches)
        return graph.queries, graph.delayed(parts)

    def _dependence(self, X: Any, y: Any, blocks: Any) -> Dependence | None:
        """Return what rows of a block have in common, from validation rows; their distributions come here."""
        if blocks is None:
            return None
        rows, parts = self._distributions(X)
        distribution = LazyDistribution(rows, parts).compute()
        labels = label_columns(here(blocks), label_frame(X, len(distribution), blocks), "blocks")
        scores = normal_scores(np.asarray(here(y), np.float64).ravel(), distribution)
        return learn_dependence([scores], labels, column_names(blocks))

    def _collections(self, X: Any, y: Any, name: str, *, reset: bool) -> tuple[Any, Any]:
        """Return rows and targets as Dask collections; check their columns, or take these as they are."""
        keep_shards(self.client)
        X, y = as_collections(X, y, self.client, name)
        check_unique_names(meta_of(X), "X")
        validate_data(self, meta_of(X), reset=reset, skip_check_array=True)
        if reset:
            self.feature_types_ = feature_types(meta_of(X))
        return X, y

    def _graph(self, X: Any) -> SearchGraph:
        """Return the graph of a search for the rows X, checked."""
        check_is_fitted(self)
        X = check_kind(X, "X")
        validate_data(self, meta_of(X), reset=False, skip_check_array=True)
        rows = Partitions.of(X, chunk_size(self.source_.n_trees + 4 * self.k_))
        if not len(rows):
            raise InvalidInputError("Found array with 0 sample(s); at least one row is needed.")
        return self.source_.search(rows, n_jobs=self.n_jobs)

    def _answer(
        self,
        X: Any,
        function: Callable[..., Any],
        columns: Sequence[Any] | None,
        *arguments: Any,
        needs: dict[str, int] | None = None,
    ) -> Any:
        """Return what a function of rule and batch says, with one number per row or several columns."""
        graph = self._graph(X)
        rule = graph.literal("rule", self.rule_)
        batches = graph.batches(needs or self.rule_.needs)
        keys = graph.each("answer", lambda j, batch: (_answer_of, function, rule, batch, columns, *arguments), batches)
        return _gathered(graph, keys, columns, np.float64)


def _no_weights(name: str) -> InvalidInputError:
    return InvalidInputError(
        f"On a cluster all validation rows have the same weight: leave {name} out. ibug.IBUGRegressor, on one machine, "
        "weighs them."
    )


def _gathered(
    graph: SearchGraph, keys: Sequence[Key], columns: Sequence[Any] | None, dtype: Any, name: str = "answer"
) -> Any:
    """Return the partitions' arrays as one collection, or as one array for local rows."""
    rows, name = graph.queries, f"all-{name}"
    last = rows.keys(graph.name(name), columns)
    for key, values, X in zip(last, keys, rows.parts, strict=True):
        graph.set(key, (_framed, values, X.key, columns) if rows.are_frames else (itself, values))
    return rows.gather(graph.highlevel(graph.name(name)), last, columns, dtype)


def _framed(values: Any, X: Any, columns: Any) -> Any:
    return framed(values, X.index, columns)


# What workers do with the neighbours that were found for one partition of rows


def _answer_of(function: Callable[..., Any], rule: Rule, batch: Batch, columns: Any, *arguments: Any) -> Any:
    """Return what a function says of one partition: one number per row, or one for each column."""
    return function(rule, batch, *arguments) if batch.n_rows else no_answers(columns)


def _interval_of(rule: Rule, batch: Batch, coverage: float) -> Floats:
    """Return the central intervals, (n_rows, 2)."""
    return rule.ends(rule.distribution(batch), coverage)


def _quantiles_of(rule: Rule, batch: Batch, probabilities: Floats) -> Floats:
    """Return the quantiles, (n_rows, n_probabilities)."""
    return rule.quantiles(rule.distribution(batch), probabilities)


def _affinity_score_of(rule: Rule, batch: Batch, n_trees: int) -> Floats:
    """Return the mean affinity of the rule's neighbours as a share of the trees, (n_rows,)."""
    return np.asarray(batch.affinities[:, : rule.k].mean(axis=1) / n_trees)


def _affinities_of(batch: Batch, k: int) -> Any:
    """Return the affinities, (n_rows, k)."""
    return batch.affinities[:, :k]


def _rows_of(batch: Batch, k: int) -> Any:
    """Return the numbers of the training rows, (n_rows, k)."""
    return batch.rows[:, :k]


def _density_of(sizes: Any, n_rows: int) -> Floats:
    """Return the mean share of the training rows in the same leaf, (n_rows,)."""
    return np.asarray(sizes.mean(axis=1) / n_rows)


def _density_by_tree(sizes: Any) -> tuple[int, Any]:
    """Return the number of rows, and the training rows in their leaves added up for each tree, (n_trees,)."""
    return len(sizes), sizes.sum(axis=0)
