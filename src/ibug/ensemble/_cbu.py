"""CatBoost with uncertainty, with the same contract as IBUGRegressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import _check_method_params, _check_sample_weight, _num_samples

from ibug._estimator import ProbabilisticRegressorMixin, all_or_nothing, view
from ibug._installed import how_to_install
from ibug._parallel import check_n_jobs
from ibug._progress import Progress
from ibug._typing import Floats, Rows
from ibug._validation import check_feature_names, check_flags
from ibug.calibration import (
    Calibration,
    ConformalCalibrator,
    check_calibrate,
    check_without_validation,
    conformal_calibrator,
)
from ibug.distributions import Distribution, Normal
from ibug.exceptions import InvalidInputError, MissingDependencyError, UnsupportedModelError
from ibug.leaves import catboost_training, require_fitted
from ibug.metrics import Scoring, resolve_scoring
from ibug.training import fresh, split, with_sample_weight

# The smallest variance, for targets of unit variance: that of a model can be too small for a floating point number.
_TINY_VARIANCE = 1e-15


class CBURegressor(ProbabilisticRegressorMixin, RegressorMixin, BaseEstimator):
    """CatBoost with uncertainty (CBU): a CatBoost model that predicts mean and variance, calibrated on validation rows.

    The model is trained for the normal likelihood (loss ``RMSEWithUncertainty``) with stochastic gradient
    Langevin boosting (``posterior_sampling``). Its truncations, from half of the trees to all of them, are the *virtual
    ensemble* (Malinin, Prokhorenkova and Ustimenko, *Uncertainty in Gradient Boosting via Ensembles*, ICLR 2021). The
    mean is the model's own prediction; the variance is the mean of the ensemble's variances (uncertainty of the data)
    plus the variance of its means (of knowledge), calibrated as in the paper, section 3.2. It is the method that the
    paper compares IBUG with (section 5.1).

    Parameters
    ----------
    estimator : CatBoostRegressor, default=None
        It is copied, given ``loss_function="RMSEWithUncertainty"`` and, unless it says otherwise,
        ``posterior_sampling=True``, and fitted; with `prefit` it must have been trained with that loss. ``None`` means
        CatBoost's defaults.
    virtual_ensembles_count : int or None, default=10
        The number of truncations, at most half of the trees. ``None``: the variance is that of the whole model.
    scoring : {"crps", "nll"} or function (y, distribution) -> float, default="crps"
        The score that calibrates; lower is better.
    calibrate : bool, "grid" or "continuous", default=True
        Calibrate the variance on validation rows: γσ² + δ. ``True`` means the paper's grid.
    conformal : {None, "scale", "distribution"} or ConformalCalibrator, default=None
        Guarantee the coverage of intervals, as in `IBUGRegressor`.
    validation_fraction : float in (0, 1), default=0.2
        The share of the rows that is held out to calibrate, where `fit` is given no validation rows.
    refit : bool, default=True
        After that, fit the estimator anew on all rows, as the paper does, or keep the one that has not seen the
        held-out rows.
    prefit : bool, default=False
        The estimator is trained already: use it as it is. A ``FrozenEstimator`` counts as trained.
    n_jobs : int or None, default=None
        Threads for prediction, and for training where the estimator has no ``thread_count``, in joblib's convention;
        but ``None`` leaves the number to CatBoost.
    random_state : int, RandomState or None, default=None
        For the split, and for the default estimator.
    verbose : int, default=0
        With 1, training shows on standard error that it is done.

    Attributes
    ----------
    estimator_ : CatBoostRegressor
        The fitted model whose predictions these are.
    virtual_ensembles_count_ : int
        The number of virtual ensembles that the model has trees for; 0 where the variance is that of the whole model.
    gamma_, delta_ : float
        The calibration: variance ← γ · variance + δ.
    conformal_ : ConformalCalibrator or None
        The fitted conformal calibrator.
    calibration_ : Calibration
        All three of them.
    training_targets_ : ndarray of shape (n_train,)
        The targets of the training rows.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        Their names, where X had names.
    feature_types_ : list of dict
        For each column of X its ``name``, its ``dtype`` and, where it has some, its ``categories``.

    Examples
    --------
    >>> from catboost import CatBoostRegressor
    >>> from ibug import CBURegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CatBoostRegressor(iterations=100, verbose=0, allow_writing_files=False)
    >>> u = CBURegressor(model, random_state=0).fit(X[:400], y[:400])
    >>> u.predict_interval(X[400:402], coverage=0.9).shape
    (2, 2)
    """

    # Learned; the others are views of it.
    calibration_: Calibration
    gamma_ = view("calibration_", "gamma")
    delta_ = view("calibration_", "delta")
    conformal_ = view("calibration_", "conformal")

    def __init__(
        self,
        estimator: Any = None,
        *,
        virtual_ensembles_count: int | None = 10,
        scoring: str | Scoring = "crps",
        calibrate: bool | str = True,
        conformal: str | ConformalCalibrator | None = None,
        validation_fraction: float = 0.2,
        refit: bool = True,
        prefit: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.virtual_ensembles_count = virtual_ensembles_count
        self.scoring = scoring
        self.calibrate = calibrate
        self.conformal = conformal
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.prefit = prefit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        **fit_params: Any,
    ) -> CBURegressor:
        """Train the model unless `prefit` is set, and calibrate.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The training rows.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Passed on to the estimator's `fit`. The calibration is not weighted.
        X_val, y_val : optional
            Rows that the model has not been trained on, to calibrate. Without them, and without `prefit`, a part of X
            is held out for it; given them, the estimator is trained on X alone.
        **fit_params
            Passed on to the estimator's `fit`: evaluation sets, categorical columns and so on. Arrays with one entry
            per row of X are divided along with X.
        """
        resolve_scoring(self.scoring)
        check_flags(refit=self.refit, prefit=self.prefit)
        check_calibrate(self.calibrate)
        check_count(self.virtual_ensembles_count)
        conformal_calibrator(self.conformal)
        random_state = check_random_state(self.random_state)
        prefit = self.prefit or isinstance(self.estimator, FrozenEstimator)
        model = None if self.estimator is None and not prefit else check_model(self.estimator, prefit=prefit)
        seed = random_state.randint(2**31 - 1) if model is None else 0
        X, y = self._check_training_rows(X, y)
        if X.shape[1] == 0:
            raise InvalidInputError(
                f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
            )
        validation = self._check_validation_rows(X_val, y_val)
        fit_params = with_sample_weight(model, fit_params, as_weights_of_rows(sample_weight, X))
        self.training_targets_ = y
        if prefit:
            if fit_params:
                raise InvalidInputError(
                    f"With prefit=True the estimator is not trained, so {sorted(fit_params)} would have no effect: "
                    "leave them out, or set prefit=False."
                )
            if validation is None:
                check_without_validation(self.calibrate, self.conformal)
            self._take(model)
        else:
            model = untrained(model, self.n_jobs, seed)
            if validation is None and (self.calibrate or self.conformal is not None):
                self._fit_with_split(model, X, y, fit_params, random_state)
                return self
            self._take(self._trained(model, X, y, fit_params))
        self._learn_calibration(validation, random_state)
        return self

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted distributions, ``mean var std median pdf logpdf cdf sf ppf interval rvs crps``."""
        uncalibrated = self._uncalibrated(self._check_rows(X))
        return self.calibration_.apply(uncalibrated)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the model's own point predictions, unchanged, of shape (n_rows,)."""
        X = self._check_rows(X)
        return mean_and_variance(self.estimator_, X, 0, self.n_jobs)[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibration_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    def _fit_with_split(
        self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any], rng: np.random.RandomState
    ) -> None:
        """Calibrate on a part that is held out, then train on everything (paper, section 5.1)."""
        train, held_out = split(len(y), self.validation_fraction, rng)
        part = _check_method_params(X, fit_params, indices=train)
        self._take(self._trained(model, _safe_indexing(X, train), y[train], part))
        self._learn_calibration((_safe_indexing(X, held_out), y[held_out]), rng)
        if self.refit:
            self._take(self._trained(model, X, y, fit_params))

    def _trained(self, model: Any, X: Any, y: Floats, fit_params: dict[str, Any]) -> Any:
        with Progress(f"training CatBoost on {_num_samples(X)} rows", 1, enabled=bool(self.verbose)):
            return fresh(model).fit(as_catboost_rows(X), y, **fit_params)

    def _take(self, model: Any) -> None:
        columns = getattr(self, "feature_names_in_", None)
        given = None if columns is None else [str(column) for column in columns]
        check_feature_names(catboost_training(model)[1], given, columns)
        self.estimator_ = model
        self.virtual_ensembles_count_ = usable_count(model, self.virtual_ensembles_count)

    def _uncalibrated(self, X: Any) -> Normal:
        mean, variance = mean_and_variance(self.estimator_, X, self.virtual_ensembles_count_, self.n_jobs)
        unit = float(np.var(self.training_targets_)) or 1.0
        return Normal(mean, np.sqrt(np.maximum(variance, _TINY_VARIANCE * unit)))

    def _learn_calibration(self, validation: Rows | None, random_state: np.random.RandomState) -> None:
        asked: dict[str, Any] = {"scoring": self.scoring, "calibrate": self.calibrate, "conformal": self.conformal}
        self.calibration_ = Calibration.learn(self._uncalibrated, validation, random_state, **asked)


LOSS = "RMSEWithUncertainty"
_DEFAULT_LOSS = "RMSE"  # what CatBoost fills in where nothing is said


def library() -> Any:
    """Return the module ``catboost``, which is imported when it is needed."""
    try:
        import catboost
    except ImportError as error:
        raise MissingDependencyError(
            f"CBURegressor needs CatBoost, which cannot be imported. Install it: {how_to_install('catboost')}."
        ) from error
    return catboost


def check_model(model: Any, *, prefit: bool) -> Any:
    """Return a model that can predict means and variances, once it is trained; raise if there is no way to."""
    catboost = library()
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    others = (catboost.CatBoostClassifier, catboost.CatBoostRanker)
    if not isinstance(model, catboost.CatBoost) or isinstance(model, others):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UnsupportedModelError(
            f"CBURegressor is CatBoost with uncertainty: it needs a CatBoostRegressor; got {name}. IBUGRegressor takes "
            "models of other libraries."
        )
    if prefit:
        _check_trained(model)
    elif _asked_loss(model) not in (LOSS, _DEFAULT_LOSS):
        raise UnsupportedModelError(
            f"CBURegressor trains with the loss {LOSS!r}; this {type(model).__name__} asks for {_asked_loss(model)!r}. "
            "Leave loss_function out, or use IBUGRegressor, which takes any loss."
        )
    return model


def _check_trained(model: Any) -> None:
    require_fitted(model, model.is_fitted())
    loss, _ = catboost_training(model)
    if loss != LOSS:
        raise UnsupportedModelError(
            f"This {type(model).__name__} was trained with the loss {loss!r}, and predicts no variance. Train it with "
            f"loss_function={LOSS!r} and posterior_sampling=True, or use IBUGRegressor, which takes it as it is."
        )


def _asked_loss(model: Any) -> Any:
    parameters = model.get_params()
    # CatBoostRegressor lists its default loss even where the alias is set.
    return parameters.get("objective", parameters.get("loss_function", _DEFAULT_LOSS))


def untrained(model: Any, n_jobs: int | None, seed: int) -> Any:
    """Return an untrained copy that has the loss and the posterior sampling of CBU, or a new one for None."""
    if model is None:
        model = library().CatBoostRegressor(verbose=0, allow_writing_files=False, random_seed=seed)
    copy = fresh(model)
    asked = copy.get_params()
    settings: dict[str, Any] = {"posterior_sampling": True}
    check_n_jobs(n_jobs)
    if n_jobs is not None:
        settings["thread_count"] = effective_n_jobs(n_jobs)
    missing = {name: value for name, value in settings.items() if name not in asked}
    return copy.set_params(**missing, **{"objective" if "objective" in asked else "loss_function": LOSS})


def as_catboost_rows(X: Any) -> Any:
    """Return rows as CatBoost reads them: it knows sparse matrices, not sparse arrays, with 32-bit indices."""
    if not issparse(X):
        return X
    matrix = csr_matrix(X)
    if matrix.nnz > np.iinfo(np.int32).max:
        raise InvalidInputError(f"CatBoost reads sparse rows with up to 2^31 - 1 values; got {matrix.nnz}.")
    parts = matrix.data, matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int32, copy=False)
    return csr_matrix(parts, matrix.shape)


def as_weights_of_rows(sample_weight: Any, X: Any) -> Floats | None:
    """Return the weights of the rows, (n_rows,), where there are any."""
    if sample_weight is None:
        return None
    weights = np.asarray(_check_sample_weight(sample_weight, X), np.float64)
    if not np.any(weights):
        raise InvalidInputError("All sample weights are zero: one at least must be above.")
    return weights


def usable_count(model: Any, count: int | None) -> int:
    """Return how many virtual ensembles a trained model can have: the first half of the trees is in all of them."""
    return 0 if count is None else min(count, model.tree_count_ // 2)


def mean_and_variance(model: Any, X: Any, count: int, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Return the model's predictions and their variances, (n_rows,) each."""
    threads = -1 if n_jobs is None else effective_n_jobs(n_jobs)
    X = as_catboost_rows(X)
    own = np.asarray(model.predict(X, prediction_type=LOSS, thread_count=threads), np.float64)
    mean, variance = own[:, 0], own[:, 1]
    if count:
        parts = model.virtual_ensembles_predict(
            X, prediction_type="TotalUncertainty", virtual_ensembles_count=count, thread_count=threads
        )
        _, knowledge, data = np.asarray(parts, np.float64).T
        variance = knowledge + data
    return mean, variance


def check_count(count: Any) -> None:
    """Raise InvalidInputError for an impossible number of virtual ensembles."""
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InvalidInputError(
            f"virtual_ensembles_count must be an integer of at least 1, or None for the model's own variance; got "
            f"{count!r}."
        )
