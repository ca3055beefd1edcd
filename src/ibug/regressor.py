"""The estimator that wires the pipeline: model → leaves → neighbours → variance → law → calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from ibug._inputs import check_count, fresh, with_sample_weight
from ibug._prediction import ProbabilisticRegressorMixin
from ibug.calibration import ConformalCalibrator
from ibug.distributions import Distribution
from ibug.exceptions import InvalidInputError
from ibug.fitting import ModelFitter
from ibug.learning import Floats
from ibug.leaves import reader_type
from ibug.metrics import Scoring
from ibug.persistence import storable
from ibug.stored import StoredRegressor
from ibug.targets import TargetFacts


class IBUGRegressor(ProbabilisticRegressorMixin, StoredRegressor, ModelFitter, BaseEstimator):
    """Turn a gradient-boosted tree regressor into a probabilistic one.

    The mean of each prediction is the model's own. Its variance comes from the training rows that share most leaves
    with the predicted row: from their targets (paper, Algorithms 1 to 3), or from the errors that honest predictions of
    them made, calibrated on validation data.

    Parameters
    ----------
    estimator : supported regressor or Booster, default=None
        ``None`` means scikit-learn's ``HistGradientBoostingRegressor``. It is cloned and fitted unless `prefit` is set.
    k : int or "tune"
        The number of neighbours. ``"tune"`` chooses among the paper's candidates, 3 to 701, on validation rows.
    distribution : str, subclass of Distribution, or "tune"
        The family of the laws (``ibug.distributions.families()``), fitted to what each row's neighbours say: their
        targets, or the prediction plus their residuals.
        ``"tune"`` chooses it, together with k, on validation rows.
    location : {"model", "neighbors"}
        ``"model"``: the family changes the shape only, the mean stays the model's prediction and the variance the
        calibrated one. ``"neighbors"``: the plain maximum likelihood fit to what the neighbours say.
    support : pair of float, optional
        Bounds of the target, ``(0, inf)`` say: laws are truncated to them, so that no quantile or sample is outside.
    spread : {"auto", "targets", "residuals"}
        What the variance is made of. ``"targets"``: the variance of the k nearest rows' targets, as in the paper.
        ``"residuals"``: the mean square of their honest residuals, which is smaller where the mean moves among the
        neighbours. ``"auto"``: a combination of spreads at several numbers of neighbours, fitted on validation rows
        with a penalty; where the paper's rule scores better on these, the better of targets and residuals. Without
        validation rows it is the paper's rule. Residuals come from clones of the estimator (see `cv`); with `prefit`
        and no `cv` nothing is trained: then ``"auto"`` combines spreads of targets, and ``"residuals"`` takes those of
        the validation rows.
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        The score that chooses spread and k and calibrates; lower is better.
    calibrate : bool, "grid" or "continuous"
        Calibrate the variance on validation rows: γσ² + δ. ``True``: on the paper's grid for targets, continuously for
        residuals; a combination is a calibration of its own, so that ``False`` leaves it out.
    conformal : {None, "scale", "distribution"} or ConformalCalibrator
        Make the coverage of intervals sure. ``"scale"`` changes their width (normalised split conformal),
        ``"distribution"`` each side by itself, so that quantiles of every level are calibrated. From 200 validation
        rows on, a random half chooses k and calibrates, and the other half is for this; below, all rows serve both, and
        the guarantee is an approximation. It is one, too, where `refit` trains the model anew afterwards, and where
        out-of-fold predictions take the place of validation rows.
    tree_fraction : float in (0, 1]
        The share of the trees that count for affinities. Point predictions always use all trees.
    tree_order : {"first", "last", "random"}
        Which trees these are.
    row_fraction : float in (0, 1]
        The share of the training rows, drawn at random, that can be neighbours.
    validation_fraction : float in (0, 1)
        The share of the rows that is held out to choose k and to calibrate, where `fit` is given no validation rows
        and does not cross-fit.
    cv : int, splitter, list of splits or None
        The folds in which clones of the estimator are trained, so that each training row is predicted by one that has
        not seen it. These give the honest residuals, and, where `fit` is given no validation rows, they are what is
        tuned on. ``None``: five random folds if `spread` needs them and the estimator is trained here, which takes
        about five times as long as training it once; no clones otherwise. Given explicitly, clones of a `prefit`
        estimator are trained, too.
    refit : bool
        After that, fit the estimator anew on all rows, as the paper does, or keep the one that has not seen the
        held-out rows. ``False`` always holds out a part.
    prefit : bool
        The estimator is trained already: use it as it is. A ``FrozenEstimator`` counts as trained.
    n_jobs : int or None
        Threads for the search, and clones that are trained at a time, in joblib's convention; where the estimator uses
        all cores by itself, leave it. Results do not depend on it.
    random_state : int, RandomState or None
        For the split or the folds, and for random trees and rows.
    verbose : int
        With 1, long work shows its progress on standard error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model whose predictions these are.
    k_ : int
        The number of neighbours: those whose targets or residuals the variance, or the shape of the law, is made of.
        For a combination of spreads and a normal law it is the middle one of its numbers, which `kneighbors` shows.
    spread_ : str
        What the variance is made of: ``"targets"``, ``"residuals"`` or ``"combination"``.
    residuals_ : ndarray or None
        Honest residuals: those of all training rows, in the order of X, where clones were trained; those of the
        validation rows that were tuned on where ``spread="residuals"`` had no clones; ``None`` where there are none.
    min_variance_ : float
        The floor ρ of the variance before calibration.
    gamma_, delta_ : float
        The calibration: variance ← γ · variance + δ; 1 and 0 for a combination with normal laws. For another family,
        both hold the factor that is best for its laws.
    conformal_ : ConformalCalibrator or None
        The fitted conformal calibrator.
    affinity_threshold_ : float
        The `affinity_score` that all but 1 % of the validation rows exceed; NaN without validation rows.
    distribution_ : str
        The name of the family.
    tuning_ : dict of ndarray
        The candidates as columns ``spread``, ``distribution``, ``k``, ``score`` (before calibration), ``calibrated``
        (the score after it, of the best candidate of each spread; NaN for the others) and ``reason`` (why a family
        could not be scored), ready for a DataFrame; empty columns where nothing was tuned.
    index_ : LeafIndex
        The training rows' leaves.
    walk_ : str
        How leaves are found: by ibug's compiled walk over the trees, where it has been found to agree with the model's
        library, or else by the library's own functions, and why.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Their names, where X had names.
    feature_types_ : list of dict
        For each column of X its ``name``, its ``dtype`` and, where it has some, its ``categories``.

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
        spread: str = "auto",
        scoring: str | Scoring = "crps",
        calibrate: bool | str = True,
        conformal: str | ConformalCalibrator | None = None,
        tree_fraction: float = 1.0,
        tree_order: str = "first",
        row_fraction: float = 1.0,
        validation_fraction: float = 0.2,
        cv: Any = None,
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
        self.spread = spread
        self.scoring = scoring
        self.calibrate = calibrate
        self.conformal = conformal
        self.tree_fraction = tree_fraction
        self.tree_order = tree_order
        self.row_fraction = row_fraction
        self.validation_fraction = validation_fraction
        self.cv = cv
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
            Passed on to the estimator's `fit`, and to that of its clones. Neighbours are not weighted.
        X_val, y_val : optional
            Rows that the model has not been trained on, to choose k and to calibrate. Without them, and without
            `prefit`, rows of X serve: each with a clone that has not seen it, or a part that is held out (see `spread`
            and `cv`). Given them, the estimator is trained on X alone.
        **fit_params
            Passed on to the estimator's `fit`: evaluation sets, categorical columns and so on. Arrays with one entry
            per row of X are divided along with X.
        """
        self._check_options()
        prefit = self.prefit or isinstance(self.estimator, FrozenEstimator)
        random_state = check_random_state(self.random_state)
        model = self.estimator
        if model is None:
            model = HistGradientBoostingRegressor(random_state=random_state.randint(2**31 - 1))
        reader_type(model)  # an unsupported model shall fail before anything is trained
        if not prefit:
            fresh(model)  # and so shall one that cannot be trained
        X, y = self._check_training_rows(X, y)
        validation = self._check_validation_rows(X_val, y_val)
        self._check_k(len(y))
        self._check_posterior(TargetFacts.of(y))
        fit_params = with_sample_weight(model, fit_params, sample_weight)
        if prefit:
            self._check_prefit(fit_params, validation)
            self._fit_prefit(model, X, y, validation, fit_params, random_state)
        elif validation is not None or not self._needs_validation:
            self._fit_given_validation(model, X, y, validation, fit_params, random_state)
        elif self._cross_fits:
            self._fit_cross_fitted(model, X, y, fit_params, random_state)
        else:
            self._fit_with_split(model, X, y, fit_params, random_state)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own point predictions, unchanged, of shape (n_rows,)."""
        X = self._check_rows(X)
        return self._search.reader.predict(X)

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted laws: a batch with ``mean var std pdf logpdf cdf ppf interval rvs crps``."""
        law = self._law(self._check_rows(X))
        return law if self.conformal_ is None else self.conformal_.transform(law)

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
        for where, *found in self._search.chunks(X, k, n_jobs=self.n_jobs, verbose=bool(self.verbose)):
            affinities[where], indices[where] = found
        return affinities, indices

    def predict_with_neighbors(
        self, X: Any, n_neighbors: int | None = None
    ) -> tuple[Distribution, NDArray[np.int32], NDArray[np.int64]]:
        """Return what `predict_dist` and `kneighbors` return, by one search.

        Parameters
        ----------
        X
            The rows to predict.
        n_neighbors
            The number of neighbours to return; ``None`` means ``k_``.

        Returns
        -------
        distribution : Distribution
            The predicted distributions, one per row.
        affinities, indices : ndarray of shape (n_rows, n_neighbors)
            As in `kneighbors`.
        """
        X = self._check_rows(X)
        k = self.k_ if n_neighbors is None else check_count(n_neighbors, 1, self.index_.n_rows, "n_neighbors")
        law, (affinities, indices) = self._law_and_neighbors(X, k)
        return law if self.conformal_ is None else self.conformal_.transform(law), affinities, indices

    @property
    def training_targets_(self) -> Floats:
        """The targets of the training rows, (n_train,), in the order of X."""
        return self._targets

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
        self._learn_from(validation, families, check_random_state(self.random_state))
        return self

    def affinity_score(self, X: Any) -> Floats:
        """Return how familiar each row is, (n_rows,): the mean affinity of its neighbours as a share of the trees.

        Near 1 the neighbours share almost every leaf with the row; a low score tells of a row unlike the training data.
        Below ``affinity_threshold_``, which is learned on validation rows, such a row is out of the ordinary.
        """
        X = self._check_rows(X)
        scores = np.empty(_num_samples(X))
        for where, affinities, _ in self._search.chunks(X, self.k_, n_jobs=self.n_jobs, verbose=bool(self.verbose)):
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
        by_row, by_tree = np.empty(_num_samples(X)), np.zeros(self.index_.n_trees, np.int64)
        for where, leaves in self._search.leaf_chunks(X, n_jobs=self.n_jobs):
            sizes = self.index_.leaf_sizes(leaves)
            by_row[where] = sizes.mean(axis=1) / self.index_.n_rows
            by_tree += sizes.sum(axis=0)
        return by_row if per == "row" else by_tree / (len(by_row) * self.index_.n_rows)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_search") and hasattr(self, "k_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        model = HistGradientBoostingRegressor() if self.estimator is None else self.estimator
        if hasattr(model, "__sklearn_tags__"):  # a native Booster has none
            tags.input_tags = get_tags(model).input_tags
        return tags


storable(IBUGRegressor)
