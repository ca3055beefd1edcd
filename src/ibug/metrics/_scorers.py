"""scikit-learn scorers, for ``cross_val_score`` and ``GridSearchCV``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from ibug._inputs import check_target_names
from ibug.exceptions import InvalidInputError
from ibug.metrics._crps import crps
from ibug.metrics._interval_score import interval_score
from ibug.metrics._nll import nll


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

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """Return minus the metric of the estimator's distributions for X."""
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_target_names(getattr(last, "target_names_", None), y, "y")
        return -float(self.metric(y, predict_dist(estimator, X), **self.options))

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"DistributionScorer({self.metric.__name__}{options})"


crps_scorer = DistributionScorer(crps)
nll_scorer = DistributionScorer(nll)
interval_scorer = DistributionScorer(interval_score)
