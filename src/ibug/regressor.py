"""The estimator that wires the pipeline: model → leaves → neighbours → variance → law → calibration."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, validate_data

from ibug._inputs import as_rows, check_count, check_probabilities, check_targets, fresh, split, with_sample_weight
from ibug.affinity import check_sampling, sample_size
from ibug.calibration import ConformalCalibrator, conformal_calibrator
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError, NotCalibratedWarning
from ibug.learning import Floats, NeighborLearner, Rows
from ibug.leaves import is_pandas, reader_type
from ibug.metrics import Scoring, resolve_scoring
from ibug.posterior import LOCATIONS, check_support, prepare


class IBUGRegressor(RegressorMixin, NeighborLearner, BaseEstimator):
    """Turn a gradient-boosted tree regressor into a probabilistic one.

    The mean of each prediction is the model's own. Its variance is that of the targets of the k training rows that
    share most leaves with the predicted row, calibrated on validation data (paper, Algorithms 1 to 3).

    Parameters
    ----------
    estimator : supported regressor or Booster, default=None
        ``None`` means scikit-learn's ``HistGradientBoostingRegressor``. It is cloned and fitted unless `prefit` is set.
    k : int or "tune"
        The number of neighbours. ``"tune"`` chooses among the paper's candidates, 3 to 701, on validation rows.
    distribution : str, subclass of Distribution, or "tune"
        The family of the laws (``ibug.distributions.families()``), fitted to the neighbours' targets of each row.
        ``"tune"`` chooses it, together with k, on validation rows.
    location : {"model", "neighbors"}
        ``"model"``: the family changes the shape only, the mean stays the model's prediction and the variance the
        calibrated one. ``"neighbors"``: the plain maximum likelihood fit to the neighbours' targets.
    support : pair of float, optional
        Bounds of the target, ``(0, inf)`` say: laws are truncated to them, so that no quantile or sample is outside.
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        The score that chooses k and calibrates; lower is better.
    calibrate : bool
        Calibrate the variance on validation rows: γσ² + δ.
    conformal : {None, "scale", "distribution"} or ConformalCalibrator
        Make the coverage of intervals sure. ``"scale"`` changes their width (normalised split conformal),
        ``"distribution"`` each side by itself, so that quantiles of every level are calibrated. From 200 validation
        rows on, a random half chooses k and calibrates, and the other half is for this; below, all rows serve both, and
        the guarantee is an approximation. It is one, too, where `refit` trains the model anew afterwards.
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
    conformal_ : ConformalCalibrator or None
        The fitted conformal calibrator.
    affinity_threshold_ : float
        The `affinity_score` that all but 1 % of the validation rows exceed; NaN without validation rows.
    distribution_ : str
        The name of the family.
    tuning_ : dict of ndarray
        The candidates as columns ``distribution``, ``k``, ``score`` and ``reason`` (why a family could not be scored),
        ready for a DataFrame; empty columns where nothing was tuned.
    index_ : LeafIndex
        The training rows' leaves.
    walk_ : str
        How leaves are found: by ibug's compiled walk over the trees, where it has been found to agree with the model's
        library, or else by the library's own functions, and why.
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
        distribution: str | type[Distribution] = "normal",
        location: str = "model",
        support: tuple[float, float] | None = None,
        scoring: str | Scoring = "crps",
        calibrate: bool = True,
        conformal: str | ConformalCalibrator | None = None,
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
        self.distribution = distribution
        self.location = location
        self.support = support
        self.scoring = scoring
        self.calibrate = calibrate
        self.conformal = conformal
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
        for name in ("calibrate", "refit", "prefit"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InvalidInputError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        conformal_calibrator(self.conformal)
        check_sampling(self.tree_fraction, self.tree_order, self.row_fraction)
        prefit = self.prefit or isinstance(self.estimator, FrozenEstimator)
        random_state = check_random_state(self.random_state)
        model = self.estimator
        if model is None:
            model = HistGradientBoostingRegressor(random_state=random_state.randint(2**31 - 1))
        reader_type(model)  # an unsupported model shall fail before it is trained
        X, y = self._check_training_rows(X, y)
        validation = self._check_validation_rows(X_val, y_val)
        self._check_k(len(y))
        self._check_posterior(y)
        fit_params = with_sample_weight(model, fit_params, sample_weight)
        if prefit:
            if fit_params:
                raise InvalidInputError(
                    f"With prefit=True the estimator is not trained, so {sorted(fit_params)} would have no effect: "
                    "leave them out, or set prefit=False."
                )
            self._require_validation_or_k(validation)
            self._index(model, X, random_state)
            self._learn(X, y, validation, score, random_state)
        elif validation is not None or not self._needs_validation:
            self._index(fresh(model).fit(X, y, **fit_params), X, random_state)
            self._learn(X, y, validation, score, random_state)
        else:
            self._fit_with_split(model, X, y, fit_params, score, random_state)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own point predictions, unchanged, of shape (n_rows,)."""
        X = self._check_rows(X)
        return self._search.reader.predict(X)

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted laws: a batch with ``mean var std pdf logpdf cdf ppf interval rvs crps``."""
        law = self._law(self._check_rows(X))
        return law if self.conformal_ is None else self.conformal_.transform(law)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the central interval of the given coverage, of shape (n_rows, 2): lower and upper ends."""
        if np.ndim(coverage) != 0:
            raise InvalidInputError(
                f"coverage must be one number, not {coverage!r}; several are for predict_quantiles."
            )
        check_probabilities(coverage, "coverage")
        return np.stack(self.predict_dist(X).interval(coverage), axis=1)

    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Return the quantiles at the probabilities `alpha`, of shape (n_rows, n_alpha)."""
        probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
        return self.predict_dist(X).ppf(probabilities[None, :])

    def predict_var(self, X: Any) -> Floats:
        """Return the calibrated variances, of shape (n_rows,)."""
        X = self._check_rows(X)
        keeps_variance = self._posterior.location == "model" and self._posterior.support is None
        return self._variance(X) if keeps_variance and self.conformal_ is None else self.predict_dist(X).var()

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
        k = self.k_ if n_neighbors is None else check_count(n_neighbors, 1, self.index_.n_rows, "n_neighbors")
        affinities = np.empty((_num_samples(X), k), np.int32)
        indices = np.empty((_num_samples(X), k), np.int64)
        for where, affinities[where], indices[where] in self._chunks(X, k):  # noqa: B007 - the loop fills the arrays
            pass
        return affinities, indices

    def select_distribution(self, X_val: Any, y_val: ArrayLike, families: Any = "tune") -> IBUGRegressor:
        """Choose family, k and calibration again on other validation rows, without training or indexing again.

        Parameters
        ----------
        X_val, y_val
            Rows that the model has not been trained on.
        families
            ``"tune"`` for all families, or those to choose from, by name or class.
        """
        check_is_fitted(self)
        validation = self._check_validation_rows(X_val, y_val)
        if validation is None:
            raise InvalidInputError("select_distribution needs X_val and y_val.")
        self._learn_from(validation, families, resolve_scoring(self.scoring), check_random_state(self.random_state))
        return self

    def affinity_score(self, X: Any) -> Floats:
        """Return how familiar each row is, (n_rows,): the mean affinity of its neighbours as a share of the trees.

        Near 1 the neighbours share almost every leaf with the row; a low score tells of a row unlike the training data.
        Below ``affinity_threshold_``, which is learned on validation rows, such a row is out of the ordinary.
        """
        X = self._check_rows(X)
        scores = np.empty(_num_samples(X))
        for where, affinities, _ in self._chunks(X, self.k_):
            scores[where] = affinities.mean(axis=1) / self.index_.n_trees
        return scores

    def leaf_density(self, X: Any, *, per: str = "row") -> Floats:
        """Return the share of the training rows that are in the same leaf, on average (paper, section C.5).

        Parameters
        ----------
        X
            The rows.
        per : {"row", "tree"}
            The mean over the trees for each row, of shape (n_rows,), or the mean over the rows for each tree, of shape
            (n_trees,).
        """
        if per not in ("row", "tree"):
            raise InvalidInputError(f'per must be "row" or "tree"; got {per!r}.')
        X = self._check_rows(X)
        by_row, by_tree = np.empty(_num_samples(X)), np.zeros(self.index_.n_trees)
        for where, leaves in self._search.leaf_chunks(X, n_jobs=self.n_jobs):
            share = self.index_.leaf_sizes(leaves) / self.index_.n_rows
            by_row[where] = share.mean(axis=1)
            by_tree += share.sum(axis=0)
        return by_row if per == "row" else by_tree / len(by_row)

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
        chosen = self._chooses_family or self.k == "tune"
        return bool(chosen or self.calibrate or self.conformal is not None)

    @property
    def _chooses_family(self) -> bool:
        return isinstance(self.distribution, (list, tuple)) or self.distribution == "tune"

    def _fit_with_split(
        self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], score: Scoring, rng: np.random.RandomState
    ) -> None:
        """Tune on a part that is held out, then train on everything (paper, section 5.1)."""
        train, held_out = split(len(y), self.validation_fraction, rng)
        X_train, y_train = _safe_indexing(X, train), y[train]
        fitted = fresh(model).fit(X_train, y_train, **_check_method_params(X, fit_params, indices=train))
        self._index(fitted, X_train, rng)
        self._learn(X_train, y_train, (_safe_indexing(X, held_out), y[held_out]), score, rng)
        if self.refit:
            self._index(fresh(model).fit(X, y, **fit_params), X, rng)
            self._targets = y
            if self.k != "tune":
                self.k_ = int(self.k)

    def _check_training_rows(self, X: Any, y: Any) -> Rows:
        if y is None:
            raise InvalidInputError(f"This {type(self).__name__} requires y to be passed, but the target y is None.")
        X = as_rows(X)
        validate_data(self, X, skip_check_array=True)
        return X, check_targets(X, y, "y")

    def _check_validation_rows(self, X_val: Any, y_val: Any) -> Rows | None:
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            missing = "X_val" if X_val is None else "y_val"
            raise InvalidInputError(f"X_val and y_val belong together: {missing} is missing.")
        X_val = as_rows(X_val)
        validate_data(self, X_val, reset=False, skip_check_array=True)
        return X_val, check_targets(X_val, y_val, "y_val")

    def _check_rows(self, X: Any) -> Any:
        if self._is_plain(X):  # nothing to complain of: a single row should not pay for finding that out in detail
            return X
        check_is_fitted(self)
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if _num_samples(X) == 0:
            raise InvalidInputError("Found array with 0 sample(s); at least one row is needed.")
        return X

    def _is_plain(self, X: Any) -> bool:
        """Tell at once whether X is an array or a pandas frame just as it should be."""
        if not self.__sklearn_is_fitted__():
            return False
        names = getattr(self, "feature_names_in_", None)
        if type(X) is np.ndarray:
            return names is None and X.ndim == 2 and X.shape[1] == self.n_features_in_ and len(X) > 0
        return names is not None and is_pandas(X) and len(X) > 0 and X.columns.tolist() == names.tolist()

    def _check_k(self, n_rows: int) -> None:
        """Check k against the rows that will be in the index at the end; one neighbour alone has no variance."""
        if self.k != "tune":
            most = sample_size(n_rows, self.row_fraction, "row_fraction")
            check_count(self.k, min(2, most), most, 'k, unless it is "tune",')

    def _check_posterior(self, y: Floats) -> None:
        if self.location not in LOCATIONS:
            raise InvalidInputError(f"location must be one of {LOCATIONS}; got {self.location!r}.")
        prepare(self.distribution, y, self.location, check_support(self.support, y))

    def _require_validation_or_k(self, validation: Rows | None) -> None:
        if validation is not None:
            return
        if self.k == "tune":
            raise InvalidInputError(
                'k="tune" needs rows that the trained model has not seen. Either pass them, '
                "fit(X_train, y_train, X_val=X_val, y_val=y_val), or fix the number of neighbours, "
                "IBUGRegressor(model, prefit=True, k=100)."
            )
        if self._chooses_family:
            raise InvalidInputError(
                f"distribution={self.distribution!r} needs rows that the trained model has not seen: pass X_val and "
                "y_val, or name one family."
            )
        if self.conformal is not None:
            raise InvalidInputError(
                f"conformal={self.conformal!r} needs rows that the trained model has not seen: pass X_val and y_val."
            )
        if self.calibrate:
            warnings.warn(
                "There are no validation rows, so the variance is not calibrated. Pass X_val and y_val to fit, or "
                "set calibrate=False to say that this is meant.",
                NotCalibratedWarning,
                stacklevel=3,
            )
