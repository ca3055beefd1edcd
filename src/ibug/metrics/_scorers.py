"""Scores as functions of an estimator, for scikit-learn, and by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from ibug._typing import Floats
from ibug._validation import check_target_names
from ibug.exceptions import InvalidInputError
from ibug.metrics._scores import crps, interval_score, nll


def predict_dist(estimator: Any, X: Any) -> Any:
    """Return what an estimator predicts, or the last step of a pipeline, which hides ``predict_dist``.

    Parameters
    ----------
    estimator : estimator or Pipeline
        With a ``predict_dist``.
    X : array-like or data frame of shape (n_rows, n_features)
        The rows to predict.
    """
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        return predict_dist(estimator[-1], estimator[:-1].transform(X))
    if not hasattr(estimator, "predict_dist"):
        raise InvalidInputError(f"An estimator with predict_dist is expected; got {type(estimator).__name__}.")
    return estimator.predict_dist(X)


class DistributionScorer:
    """Score an estimator by what its ``predict_dist`` returns; higher is better, as scikit-learn has it.

    Parameters
    ----------
    metric : function (y, distribution, ...) -> float
        Lower is better: its negative is the score.
    **options
        Passed on to the metric: ``level=0.9``, say.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.metrics import crps_scorer
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_val_score(IBUGRegressor(random_state=0), X, y, scoring=crps_scorer, cv=3).shape
    (3,)
    """

    def __init__(self, metric: Callable[..., float], **options: Any) -> None:
        self.metric = metric
        self.options = options
        self._asked: bool | str | None = None  # what metadata routing is asked for as sample_weight

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the metric of the estimator's distributions for X, weighted if weights are given."""
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_target_names(getattr(last, "target_names_", None), y, "y")
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return -float(self.metric(y, predict_dist(estimator, X), **self.options, **weights))

    def set_score_request(self, *, sample_weight: bool | str | None = True) -> DistributionScorer:
        """Return a scorer that asks scikit-learn's metadata routing for weights; this one stays as it is.

        ``cross_val_score(u, X, y, scoring=crps_scorer.set_score_request(sample_weight=True), params={"sample_weight":
        w})`` then weighs the scores. Routing must be on: ``sklearn.set_config(enable_metadata_routing=True)``.

        Parameters
        ----------
        sample_weight : bool, str or None
            Whether the metric gets `sample_weight`, or the name that the weights have in ``params``. ``None``: they are
            refused.
        """
        if not get_config()["enable_metadata_routing"]:
            raise InvalidInputError(
                "set_score_request is for scikit-learn's metadata routing, which is off: turn it on by "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        scorer = type(self)(self.metric, **self.options)
        scorer._asked = sample_weight
        return scorer

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer asks for: scikit-learn calls it where metadata are routed."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._asked)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"DistributionScorer({self.metric.__name__}{options})"


crps_scorer = DistributionScorer(crps)
nll_scorer = DistributionScorer(nll)
interval_scorer = DistributionScorer(interval_score)


Scoring = Callable[[ArrayLike, Any], float]

_BY_NAME: dict[str, Scoring] = {"crps": crps, "nll": nll}


def resolve_scoring(scoring: str | Scoring, weights: Floats | None = None) -> Scoring:
    """Return the scoring function of ``(y, distribution)`` for a name, or the user's own; lower is better.

    Parameters
    ----------
    scoring : {"crps", "nll"} or function (y, distribution) -> float
        The name, or the function itself.
    weights : ndarray of shape (n_rows,), optional
        Weights of the rows, which a function is given as ``sample_weight``.
    """
    by_name = isinstance(scoring, str)
    if not (scoring in _BY_NAME if by_name else callable(scoring)):
        raise InvalidInputError(
            f"scoring must be one of {sorted(_BY_NAME)} or a function (y, distribution) -> float; got {scoring!r}."
        )
    function: Any = _BY_NAME[scoring] if isinstance(scoring, str) else scoring
    if weights is None:
        return function if by_name else _checked(function)
    if "sample_weight" not in signature(function).parameters:
        raise InvalidInputError(
            "Validation rows have weights, and the scoring function takes none: give it a parameter sample_weight, or "
            "leave the weights out."
        )
    return _checked(partial(function, sample_weight=weights))


def _checked(scoring: Scoring) -> Scoring:
    def score(y: ArrayLike, distribution: Any) -> float:
        value = scoring(y, distribution)
        if np.ndim(value) != 0:
            raise InvalidInputError(
                f"The scoring function returned an array of shape {np.shape(value)}; it must return one number, "
                "the mean over the rows, say."
            )
        return float(value)

    return score
