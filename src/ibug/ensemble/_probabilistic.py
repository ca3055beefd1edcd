"""Several probabilistic regressors as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from ibug._estimator import ProbabilisticRegressorMixin, all_or_nothing, view
from ibug._progress import Progress
from ibug._typing import Floats, Rows
from ibug._validation import check_flags
from ibug.calibration import (
    Calibration,
    ConformalCalibrator,
    check_calibrate,
    check_without_validation,
    conformal_calibrator,
)
from ibug.distributions import Distribution, LocationScale, Mixture, normalized_weights
from ibug.exceptions import InvalidInputError
from ibug.metrics import Scoring, predict_dist, resolve_scoring
from ibug.training import fresh, split, with_sample_weight


class ProbabilisticEnsemble(ProbabilisticRegressorMixin, RegressorMixin, _BaseComposition):
    """Combine probabilistic regressors: IBUG and CBU, say, which the paper found better together (section 5.2).

    Parameters
    ----------
    estimators : list of (str, regressor)
        Names and members: anything with ``fit``, ``predict`` and a ``predict_dist`` that returns a batched
        ``ibug.distributions.Distribution``. They are copied and fitted unless `prefit` is set. A member may be set to
        ``"drop"``.
    combine : {"average", "mixture"}, default="average"
        ``"average"``: the mean of the members' means and of their standard deviations, as the paper's IBUG+CBU. All
        members must predict one family: an `IBUGRegressor` needs ``distribution="normal"``. ``"mixture"``: the mixture
        of their distributions, which is wider where they disagree, and takes members of any family, and stacks.
    weights : list of float, default=None
        One for each member, above zero; they are divided by their sum. ``None`` means equal ones.
    scoring : {"crps", "nll"} or function (y, distribution) -> float, default="crps"
        The score that calibrates; lower is better.
    calibrate : bool, "grid" or "continuous", default=False
        Calibrate the variance of the ensemble once more, after that of the members: γσ² + δ. The paper does not. For
        ``combine="average"`` only; a mixture can be calibrated by `conformal`.
    conformal : {None, "scale", "distribution"} or ConformalCalibrator, default=None
        Guarantee the coverage of the ensemble's intervals, as in `IBUGRegressor`.
    validation_fraction : float in (0, 1), default=0.2
        The share of the rows that is held out to calibrate the ensemble, where `fit` is given no validation rows.
        Members hold out rows by their own parameters.
    refit : bool, default=True
        After that, fit the members anew on all rows, or keep those that have not seen the held-out rows.
    prefit : bool, default=False
        The members are fitted already: use them as they are.
    random_state : int, RandomState or None, default=None
        For the split. Unless it is None, members that have a ``random_state`` of None get one seed for all, so that
        those that hold out rows hold out the same ones.
    verbose : int, default=0
        With 1, `fit` shows on standard error which members are done.

    Attributes
    ----------
    estimators_ : list of regressors
        The fitted members, without dropped ones.
    named_estimators_ : Bunch
        The same by name.
    weights_ : ndarray of shape (n_members,)
        Their weights, which sum to 1.
    gamma_, delta_ : float
        The calibration of the ensemble: variance ← γ · variance + δ.
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
    >>> from ibug import CBURegressor, IBUGRegressor, ProbabilisticEnsemble
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CatBoostRegressor(iterations=50, verbose=0, allow_writing_files=False)
    >>> ibug, cbu = IBUGRegressor(model, distribution="normal"), CBURegressor(model)
    >>> u = ProbabilisticEnsemble([("ibug", ibug), ("cbu", cbu)], random_state=0)
    >>> u.fit(X[:400], y[:400]).predict_interval(X[400:402], coverage=0.9).shape
    (2, 2)
    """

    # Learned; the others are views of it.
    calibration_: Calibration
    gamma_ = view("calibration_", "gamma")
    delta_ = view("calibration_", "delta")
    conformal_ = view("calibration_", "conformal")

    def __init__(
        self,
        estimators: Members,
        *,
        combine: str = "average",
        weights: ArrayLike | None = None,
        scoring: str | Scoring = "crps",
        calibrate: bool | str = False,
        conformal: str | ConformalCalibrator | None = None,
        validation_fraction: float = 0.2,
        refit: bool = True,
        prefit: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.combine = combine
        self.weights = weights
        self.scoring = scoring
        self.calibrate = calibrate
        self.conformal = conformal
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.prefit = prefit
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
    ) -> ProbabilisticEnsemble:
        """Fit the members on the same rows, and calibrate the ensemble if that is asked for.

        With validation rows, each member is fitted on X and calibrated on them, and so is the ensemble. Without them
        each member is given X alone, and holds out a part as its own parameters say. To calibrate the ensemble, too, it
        needs rows that no member has seen: then one part is held out for all, the members are fitted without it and
        given it as validation rows, the ensemble is calibrated on it, and with `refit` the members are fitted anew.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            The training rows. With `prefit`, only the number and the names of their features count.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Passed on to the members' `fit`.
        X_val, y_val : optional
            Rows that no member has been trained on. Passed on to the members whose `fit` takes them.
        """
        self._check_parameters()
        random_state = check_random_state(self.random_state)
        members = self._members(random_state)
        X, y = self._check_training_rows(X, y)
        validation = self._check_validation_rows(X_val, y_val)
        self.training_targets_ = y
        if self.prefit:
            if sample_weight is not None:
                raise InvalidInputError("With prefit=True no member is trained, so sample_weight would have no effect.")
            if validation is None:
                check_without_validation(self.calibrate, self.conformal)
            self._take(members)
            self._learn_calibration(validation, random_state)
        elif validation is not None or not (self.calibrate or self.conformal is not None):
            self._take(self._fitted(members, X, y, sample_weight, validation))
            self._learn_calibration(validation, random_state)
        else:
            self._fit_with_split(members, X, y, sample_weight, random_state)
        self.predict_dist(_safe_indexing(X, slice(0, 1)))  # members that cannot be combined shall fail here
        return self

    def predict_dist(self, X: Any) -> Distribution:
        """Return the predicted distributions, ``mean var std median pdf logpdf cdf sf ppf interval rvs crps``."""
        uncalibrated = self._uncalibrated(self._check_rows(X))
        return self.calibration_.apply(uncalibrated)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the weighted mean of the members' point predictions, of shape (n_rows,)."""
        X = self._check_rows(X)
        points = [np.asarray(member.predict(X), np.float64) for member in self.estimators_]
        return np.asarray(self.weights_ @ np.stack(points))

    @property
    def named_estimators(self) -> Bunch:
        """The members by name, as they were given."""
        return Bunch(**dict(self.estimators))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` the members by their names and the members' parameters, too."""
        parameters: dict[str, Any] = self._get_params("estimators", deep=deep)
        return parameters

    def set_params(self, **params: Any) -> ProbabilisticEnsemble:
        """Set parameters, members by their names, and members' parameters: ``set_params(ibug__k=50, cbu="drop")``."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibration_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            inputs = [get_tags(member).input_tags for _, member in self.estimators if not is_dropped(member)]
        except (TypeError, ValueError, AttributeError):  # `fit` says what is wrong
            return tags
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inputs)
        tags.input_tags.sparse = all(tag.sparse for tag in inputs)
        return tags

    def _check_parameters(self) -> None:
        resolve_scoring(self.scoring)
        resolve_combination(self.combine)
        check_flags(refit=self.refit, prefit=self.prefit)
        check_calibrate(self.calibrate)
        conformal_calibrator(self.conformal)
        if self.calibrate and self.combine == "mixture":
            raise InvalidInputError(
                'calibrate=True is for combine="average": a mixture has no one variance to set. Use '
                'conformal="distribution", or calibrate=False.'
            )

    def _members(self, random_state: np.random.RandomState) -> Members:
        """Return the members that are not dropped: as they are with `prefit`, else untrained copies."""
        named = check_members(self.estimators)
        self._validate_names([name for name, _ in named])
        weights = normalized_weights(self.weights, len(named))
        kept = [i for i, (_, member) in enumerate(named) if not is_dropped(member)]
        self.weights_ = normalized_weights(weights[kept], len(kept))
        if self.prefit:
            return [named[i] for i in kept]
        seed = None if self.random_state is None else random_state.randint(2**31 - 1)
        return [(named[i][0], seeded(fresh(named[i][1]), seed)) for i in kept]

    def _fit_with_split(
        self,
        members: Members,
        X: Any,
        y: Floats,
        sample_weight: ArrayLike | None,
        random_state: np.random.RandomState,
    ) -> None:
        trained = [name for name, member in members if is_trained(member)]
        if trained:
            raise InvalidInputError(
                f"The members {trained} are trained already, and may have seen what would be held out to calibrate the "
                "ensemble: pass X_val and y_val, rows that no member has seen."
            )
        train, held_out = split(len(y), self.validation_fraction, random_state)
        part = _check_method_params(X, {"sample_weight": sample_weight}, indices=train)["sample_weight"]
        validation = _safe_indexing(X, held_out), y[held_out]
        copies = [(name, fresh(member)) for name, member in members]
        self._take(self._fitted(copies, _safe_indexing(X, train), y[train], part, validation))
        self._learn_calibration(validation, random_state)
        if self.refit:
            self._take(self._fitted(members, X, y, sample_weight, None))

    def _fitted(
        self,
        members: Members,
        X: Any,
        y: Floats,
        sample_weight: ArrayLike | None,
        validation: Rows | None,
    ) -> Members:
        for name, member in members:
            options = with_sample_weight(member, {}, sample_weight)
            if validation is not None and has_fit_parameter(member, "X_val"):
                options |= {"X_val": validation[0], "y_val": validation[1]}
            with Progress(f"fitting {name}", 1, enabled=bool(self.verbose)):
                member.fit(X, y, **options)
        return members

    def _take(self, members: Members) -> None:
        for _, member in members:
            if isinstance(member, BaseEstimator):
                check_is_fitted(member)
        self.estimators_ = [member for _, member in members]
        self.named_estimators_ = Bunch(**dict(members))

    def _uncalibrated(self, X: Any) -> Distribution:
        distributions = [predict_dist(member, X) for member in self.estimators_]
        for (name, member), distribution in zip(self.named_estimators_.items(), distributions, strict=True):
            if not isinstance(distribution, Distribution):
                raise InvalidInputError(
                    f"predict_dist of the member {name!r} ({type(member).__name__}) returned "
                    f"{type(distribution).__name__}; an ibug.distributions.Distribution is expected."
                )
        return resolve_combination(self.combine)(distributions, self.weights_)

    def _learn_calibration(self, validation: Rows | None, random_state: np.random.RandomState) -> None:
        asked: dict[str, Any] = {"scoring": self.scoring, "calibrate": self.calibrate, "conformal": self.conformal}
        self.calibration_ = Calibration.learn(self._uncalibrated, validation, random_state, **asked)


Members = list[tuple[str, Any]]  # names and regressors


def check_members(estimators: Any) -> Members:
    """Return all members; raise unless each has a name and predicts distributions, and one at least is not dropped."""
    pairs = isinstance(estimators, (list, tuple)) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in estimators
    )
    if not pairs or not estimators:
        raise InvalidInputError(
            f"estimators must be a list of (name, regressor), one at least; got {estimators!r}: write "
            '[("ibug", IBUGRegressor(model)), ("cbu", CBURegressor(model))], say.'
        )
    for name, member in estimators:
        if not is_dropped(member) and (isinstance(member, type) or not _predicts_distributions(member)):
            raise InvalidInputError(
                f"The member {name!r} has no predict_dist, as IBUGRegressor and CBURegressor have it; got {member!r}."
            )
    if all(is_dropped(member) for _, member in estimators):
        raise InvalidInputError("All members are dropped: keep one at least.")
    return [(name, member) for name, member in estimators]


def is_dropped(member: Any) -> bool:
    """Return whether a member takes no part, as in scikit-learn's ensembles."""
    return isinstance(member, str) and member == "drop"


def is_trained(member: Any) -> bool:
    """Return whether `fit` leaves the model of a member as it is."""
    inner = getattr(member, "estimator", None)
    frozen = isinstance(member, FrozenEstimator) or isinstance(inner, FrozenEstimator)
    return frozen or bool(getattr(member, "prefit", False))


def seeded(member: Any, seed: int | None) -> Any:
    """Return the member, with the seed if it has none of its own."""
    if seed is not None and hasattr(member, "get_params"):
        parameters = member.get_params(deep=False)
        if "random_state" in parameters and parameters["random_state"] is None:
            member.set_params(random_state=seed)
    return member


def _predicts_distributions(member: Any) -> bool:
    while isinstance(member, Pipeline):
        member = member.steps[-1][1]
    return hasattr(member, "predict_dist")


def average(distributions: Sequence[Distribution], weights: Floats) -> Distribution:
    """Return the distributions of the members' family with the mean of their means and of their standard deviations.

    That is how the paper's IBUG+CBU is made (section 5.2). For one family whose members differ in location and scale
    only, it averages the quantiles of every level.

    Shapes: weights (m,).
    """
    families = {type(distribution) for distribution in distributions}
    family = type(distributions[0])
    if len(families) > 1 or not issubclass(family, LocationScale) or len(family.parameters) > 2:
        names = ", ".join(type(distribution).__name__ for distribution in distributions)
        raise InvalidInputError(
            'combine="average" averages means and standard deviations, so the members must predict one family '
            f"that has no other parameter (normal, laplace, logistic or gumbel); theirs are {names}. Use "
            'combine="mixture", which takes any, or fit each IBUGRegressor with distribution="normal", as the paper '
            "does. Conformal calibration is for the ensemble, not for its members."
        )
    mean = sum(weight * distribution.mean() for weight, distribution in zip(weights, distributions, strict=True))
    std = sum(weight * distribution.std() for weight, distribution in zip(weights, distributions, strict=True))
    return family.from_moments(np.asarray(mean), np.asarray(std))


COMBINATIONS: dict[str, Callable[[Sequence[Distribution], Floats], Distribution]] = {
    "average": average,
    "mixture": Mixture,
}


def resolve_combination(combine: Any) -> Callable[[Sequence[Distribution], Floats], Distribution]:
    """Return the function for a name."""
    if not isinstance(combine, str) or combine not in COMBINATIONS:
        raise InvalidInputError(f"combine must be one of {tuple(COMBINATIONS)}; got {combine!r}.")
    return COMBINATIONS[combine]
