"""The estimator that wires the pipeline: model → leaves → neighbours → variance → law → calibration."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ibug.affinity import AffinitySearch
from ibug.calibration import VarianceCalibrator
from ibug.distributions import Distribution, Normal
from ibug.exceptions import InvalidInputError, NotCalibratedWarning, UnsupportedModelError
from ibug.leaves import read_leaves_of, reader_type
from ibug.metrics import Scoring, resolve_scoring
from ibug.spread import variance
from ibug.tuning import candidates_up_to, smallest_nonzero, tune_k

Floats = NDArray[np.float64]

# So many training rows tell the smallest variance where there are no validation rows.
_ROWS_FOR_MIN_VARIANCE = 1000


class IBUGRegressor(RegressorMixin, BaseEstimator):
    """Turn a gradient-boosted tree regressor into a probabilistic one.

    The mean of each prediction is the model's own. Its variance is that of the targets of the k training rows that
    share most leaves with the predicted row, calibrated on validation data (paper, Algorithms 1 to 3).

    Parameters
    ----------
    estimator : supported regressor or Booster, default=None
        ``None`` means scikit-learn's ``HistGradientBoostingRegressor``. It is cloned and fitted unless `prefit` is set.
    k : int or "tune"
        The number of neighbours. ``"tune"`` chooses among the paper's candidates, 3 to 701, on validation rows.
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        The score that chooses k and calibrates; lower is better.
    calibrate : bool
        Calibrate the variance on validation rows: γσ² + δ.
    tree_fraction : float in (0, 1]
        The share of the trees that count for affinities. Point predictions always use all trees.
    tree_order : {"first", "last", "random"}
        Which trees these are.
    row_fraction : float in (0, 1]
        The share of the training rows, drawn at random, that can be neighbours.
    validation_fraction : float in (0, 1)
        The share of the rows that is held out to choose k and to calibrate, where `fit` is given no validation rows.
    refit : bool
        After that, fit the estimator anew on all rows, as the paper does, or keep the one that has not seen the
        held-out rows.
    prefit : bool
        The estimator is trained already: use it as it is. A ``FrozenEstimator`` counts as trained.
    n_jobs : int or None
        Threads for the search, in joblib's convention. Results do not depend on it.
    random_state : int, RandomState or None
        For the split and for random trees and rows.
    verbose : int
        With 1, long work shows its progress on standard error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model whose predictions these are.
    k_ : int
        The number of neighbours.
    min_variance_ : float
        The floor ρ of the variance before calibration.
    gamma_, delta_ : float
        The calibration: variance ← γ · variance + δ.
    tuning_ : dict of ndarray
        The candidates as columns ``k`` and ``score``, ready for a DataFrame; empty columns where nothing was tuned.
    index_ : LeafIndex
        The training rows' leaves.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Their names, where X had names.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])  # trained already
    >>> u = IBUGRegressor(model, prefit=True).fit(X[:300], y[:300], X_val=X[300:400], y_val=y[300:400])
    >>> u.predict_interval(X[400:402], coverage=0.9).shape
    (2, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        k: int | str = "tune",
        scoring: str | Scoring = "crps",
        calibrate: bool = True,
        tree_fraction: float = 1.0,
        tree_order: str = "first",
        row_fraction: float = 1.0,
        validation_fraction: float = 0.2,
        refit: bool = True,
        prefit: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.scoring = scoring
        self.calibrate = calibrate
        self.tree_fraction = tree_fraction
        self.tree_order = tree_order
        self.row_fraction = row_fraction
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.prefit = prefit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        **fit_params: Any,
    ) -> IBUGRegressor:
        """Index the training rows, choose k and calibrate; train the model before that unless `prefit` is set.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The training rows. With `prefit`, those that the model was trained on.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Passed on to the estimator's `fit`. Neighbours are not weighted.
        X_val, y_val : optional
            Rows that the model has not been trained on, to choose k and to calibrate. Without them, and without
            `prefit`, a part of X is held out for it; given them, the estimator is trained on X alone.
        **fit_params
            Passed on to the estimator's `fit`: evaluation sets, categorical columns and so on. Arrays with one entry
            per row of X are divided along with X.
        """
        score = resolve_scoring(self.scoring)
        prefit = self.prefit or isinstance(self.estimator, FrozenEstimator)
        random_state = check_random_state(self.random_state)
        model = self.estimator
        if model is None:
            model = HistGradientBoostingRegressor(random_state=random_state.randint(2**31 - 1))
        reader_type(model)  # an unsupported model shall fail before it is trained
        X, y = self._check_training_rows(X, y)
        validation = self._check_validation_rows(X_val, y_val)
        fit_params = _with_sample_weight(model, fit_params, sample_weight)
        if prefit:
            if fit_params:
                raise InvalidInputError(
                    f"With prefit=True the estimator is not trained, so {sorted(fit_params)} would have no effect: "
                    "leave them out, or set prefit=False."
                )
            self._require_validation_or_k(validation)
            self._index(model, X, random_state)
            self._learn(X, y, validation, score)
        elif validation is not None or not self._needs_validation:
            self._index(_clone(model).fit(X, y, **fit_params), X, random_state)
            self._learn(X, y, validation, score)
        else:
            self._fit_with_split(model, X, y, fit_params, score, random_state)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own point predictions, unchanged, of shape (n_rows,)."""
        X = self._check_rows(X)
        return self._search.reader.predict(X)

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted laws: a batch with ``mean var std pdf logpdf cdf ppf interval rvs crps``."""
        X = self._check_rows(X)
        return Normal(np.asarray(self._search.reader.predict(X), np.float64), np.sqrt(self._variance(X)))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the central interval of the given coverage, of shape (n_rows, 2): lower and upper ends."""
        _check_probabilities(coverage, "coverage")
        return np.stack(self.predict_dist(X).interval(coverage), axis=1)

    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Return the quantiles at the probabilities `alpha`, of shape (n_rows, n_alpha)."""
        probabilities = np.atleast_1d(_check_probabilities(alpha, "alpha"))
        return self.predict_dist(X).ppf(probabilities[None, :])

    def predict_var(self, X: Any) -> Floats:
        """Return the calibrated variances, of shape (n_rows,)."""
        return self._variance(self._check_rows(X))

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Find the training rows behind each prediction.

        Parameters
        ----------
        X
            The rows to predict.
        n_neighbors
            How many; ``None`` means ``k_``.

        Returns
        -------
        affinities : ndarray of shape (n_rows, n_neighbors)
            The number of trees in which the training row is in the same leaf, descending.
        indices : ndarray of shape (n_rows, n_neighbors)
            Row numbers in the X that was given to `fit`; of equal affinities the smaller number comes first.
        """
        X = self._check_rows(X)
        k = self.k_ if n_neighbors is None else n_neighbors
        parts = list(self._search.chunks(X, k, n_jobs=self.n_jobs, verbose=bool(self.verbose)))
        return np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_search") and hasattr(self, "k_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        model = HistGradientBoostingRegressor() if self.estimator is None else self.estimator
        if hasattr(model, "__sklearn_tags__"):  # a native Booster has none
            tags.input_tags = get_tags(model).input_tags
        return tags

    @property
    def _needs_validation(self) -> bool:
        return bool(self.k == "tune" or self.calibrate)

    def _fit_with_split(
        self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], score: Scoring, rng: np.random.RandomState
    ) -> None:
        """Tune on a part that is held out, then train on everything (paper, section 5.1)."""
        train, held_out = _split(len(y), self.validation_fraction, rng)
        X_train, y_train = _safe_indexing(X, train), y[train]
        fitted = _clone(model).fit(X_train, y_train, **_check_method_params(X, fit_params, indices=train))
        self._index(fitted, X_train, rng)
        self._learn(X_train, y_train, (_safe_indexing(X, held_out), y[held_out]), score)
        if self.refit:
            self._index(_clone(model).fit(X, y, **fit_params), X, rng)
            self._targets = y

    def _index(self, model: Any, X: Any, random_state: np.random.RandomState) -> None:
        self.estimator_ = model
        self._search = AffinitySearch.build(
            read_leaves_of(model),
            X,
            tree_fraction=self.tree_fraction,
            tree_order=self.tree_order,
            row_fraction=self.row_fraction,
            random_state=random_state,
            verbose=bool(self.verbose),
        )
        self.index_ = self._search.index

    def _learn(self, X: Any, y: Floats, validation: tuple[Any, Floats] | None, score: Scoring) -> None:
        """Choose k, then the floor of the variance, then the calibration, in the paper's order."""
        self._targets = y
        candidates = candidates_up_to(self.index_.n_rows) if self.k == "tune" else (self._check_k(),)
        self.gamma_, self.delta_ = 1.0, 0.0
        if validation is None:
            every = slice(None, None, -(-len(y) // _ROWS_FOR_MIN_VARIANCE))
            self.k_ = candidates[0]
            self.min_variance_ = smallest_nonzero(variance(self._neighbor_targets(_safe_indexing(X, every), self.k_)))
            self.tuning_ = {"k": np.array([], np.int64), "score": np.array([])}
            return
        X_val, y_val = validation
        mean = np.asarray(self._search.reader.predict(X_val), np.float64)
        tuning = tune_k(mean, self._neighbor_targets(X_val, max(candidates)), y_val, candidates, score)
        self.k_, self.min_variance_ = tuning.k, tuning.min_variance
        self.tuning_ = {"k": np.array(tuning.candidates), "score": tuning.scores}
        if self.calibrate:
            calibrator = VarianceCalibrator(scoring=self.scoring).fit(mean, tuning.variance, y_val)
            self.gamma_, self.delta_ = calibrator.gamma_, calibrator.delta_

    def _neighbor_targets(self, X: Any, k: int) -> Floats:
        """Return the targets of the k nearest training rows, (n_rows, k), nearest first."""
        chunks = self._search.chunks(X, k, n_jobs=self.n_jobs, verbose=bool(self.verbose))
        return np.concatenate([self._targets[rows] for _, _, rows in chunks])

    def _variance(self, X: Any) -> Floats:
        raw = np.empty(_num_samples(X))
        for where, _, rows in self._search.chunks(X, self.k_, n_jobs=self.n_jobs, verbose=bool(self.verbose)):
            raw[where] = variance(self._targets[rows])
        return self.gamma_ * np.maximum(raw, self.min_variance_) + self.delta_

    def _check_training_rows(self, X: Any, y: Any) -> tuple[Any, Floats]:
        if y is None:
            raise InvalidInputError(f"This {type(self).__name__} requires y to be passed, but the target y is None.")
        X = _as_rows(X)
        validate_data(self, X, skip_check_array=True)
        return X, _check_targets(X, y, "y")

    def _check_validation_rows(self, X_val: Any, y_val: Any) -> tuple[Any, Floats] | None:
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise InvalidInputError(f"X_val and y_val belong together: {missing} is missing.")
        X_val = _as_rows(X_val)
        validate_data(self, X_val, reset=False, skip_check_array=True)
        return X_val, _check_targets(X_val, y_val, "y_val")

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        X = _as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if _num_samples(X) == 0:
            raise InvalidInputError("Found array with 0 sample(s); at least one row is needed.")
        return X

    def _check_k(self) -> int:
        n_rows = self.index_.n_rows
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or not 1 <= self.k <= n_rows:
            raise InvalidInputError(
                f'k must be "tune" or an integer from 1 to the {n_rows} training rows in the index; got {self.k!r}.'
            )
        return int(self.k)

    def _require_validation_or_k(self, validation: tuple[Any, Floats] | None) -> None:
        if validation is not None:
            return
        if self.k == "tune":
            raise InvalidInputError(
                'k="tune" needs rows that the trained model has not seen. Either pass them, '
                "fit(X_train, y_train, X_val=X_val, y_val=y_val), or fix the number of neighbours, "
                "IBUGRegressor(model, prefit=True, k=100)."
            )
        if self.calibrate:
            warnings.warn(
                "There are no validation rows, so the variance is not calibrated. Pass X_val and y_val to fit, or "
                "set calibrate=False to say that this is meant.",
                NotCalibratedWarning,
                stacklevel=3,
            )


def _as_rows(X: Any) -> Any:
    """Leave arrays and data frames as they are, for the model to read; make lists an array, sparse formats CSR."""
    if issparse(X) or not hasattr(X, "shape"):
        return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if len(X.shape) != 2:
        raise InvalidInputError(
            f"Expected rows of shape (n_rows, n_features), got an array of shape {X.shape}. Reshape your data: "
            "X.reshape(1, -1) if it is one row, X.reshape(-1, 1) if it is one feature."
        )
    return X


def _check_targets(X: Any, y: Any, name: str) -> Floats:
    targets = column_or_1d(y, warn=True)
    targets = check_array(targets, ensure_2d=False, dtype=np.float64, input_name=name)
    check_consistent_length(X, targets)
    return np.asarray(targets)


def _check_probabilities(value: ArrayLike, name: str) -> Floats:
    array = np.asarray(value, np.float64)
    if array.size == 0 or not np.all((array > 0) & (array < 1)):
        raise InvalidInputError(f"{name} must be between 0 and 1, both excluded; got {value!r}.")
    return array


def _split(n_rows: int, fraction: Any, rng: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if isinstance(fraction, bool) or not isinstance(fraction, (float, np.floating)) or not 0 < fraction < 1:
        raise InvalidInputError(
            f"validation_fraction must be a number between 0 and 1, both excluded; got {fraction!r}."
        )
    if n_rows < 3:
        raise InvalidInputError(
            f"Got n_samples={n_rows}: at least 3 rows are needed to train on some and to hold out others."
        )
    train, held_out = train_test_split(np.arange(n_rows), test_size=fraction, random_state=rng)
    return np.sort(train), np.sort(held_out)


def _clone(model: Any) -> Any:
    try:
        return clone(model)
    except (TypeError, RuntimeError) as error:
        raise UnsupportedModelError(
            f"scikit-learn cannot clone this {type(model).__name__}, so ibug cannot train it. Train it yourself and "
            "pass it with prefit=True, or use the library's scikit-learn estimator (CatBoostRegressor, say)."
        ) from error


def _with_sample_weight(model: Any, fit_params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
    if sample_weight is None:
        return fit_params
    name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    return {**fit_params, name: sample_weight}
