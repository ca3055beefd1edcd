"""All scores of one model on one set of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._inputs import check_weights
from ibug._typing import Floats
from ibug._warnings import tell_infinite, warn_user
from ibug.exceptions import InvalidInputError, SeenRowsWarning
from ibug.metrics._check_score import check_score
from ibug.metrics._coverage import coverage
from ibug.metrics._crps import crps
from ibug.metrics._crps_skill import crps_skill
from ibug.metrics._evaluate_several import evaluate_several
from ibug.metrics._groups import group_table
from ibug.metrics._inputs import as_distribution, as_targets, check_levels
from ibug.metrics._interval_score import interval_score
from ibug.metrics._mace import mace
from ibug.metrics._mae import mae
from ibug.metrics._mean_width import mean_width
from ibug.metrics._miscalibration_area import miscalibration_area
from ibug.metrics._nll import nll
from ibug.metrics._rms_calibration_error import rms_calibration_error
from ibug.metrics._rmse import rmse
from ibug.metrics._scorers import predict_dist
from ibug.metrics._scores import Scores
from ibug.metrics._sharpness import sharpness

_METRICS: dict[str, tuple[Callable[..., Any], str]] = {
    "rmse": (rmse, "root mean squared error of the point prediction"),
    "mae": (mae, "mean absolute error of the point prediction"),
    "crps": (crps, "continuous ranked probability score"),
    "nll": (nll, "negative log likelihood"),
    "check_score": (check_score, "pinball loss over 99 quantiles"),
    "interval_score": (interval_score, "width and misses over 99 intervals"),
    "mace": (mace, "mean absolute calibration error"),
    "rms_calibration_error": (rms_calibration_error, "root mean squared calibration error"),
    "miscalibration_area": (miscalibration_area, "area between calibration curve and diagonal"),
    "sharpness": (sharpness, "root mean predicted variance"),
}


def _skill(y: Floats, distribution: Any, reference: ArrayLike | None, weights: ArrayLike | None) -> float:
    """Return the skill, against the training targets if the estimator keeps them; NaN where targets do not vary."""
    try:
        return crps_skill(y, distribution, reference=reference, sample_weight=weights)
    except InvalidInputError:
        return float("nan")


def _guard(estimator: Any, y: Floats) -> None:
    """Tell of training rows, whose scores are too good; equal targets in the same order are no chance."""
    targets = getattr(estimator, "training_targets_", None)
    if targets is not None and len(y) > 1 and np.array_equal(y, targets):
        warn_user(
            "evaluate: these are the training rows. The model knows them, and each is its own nearest neighbour, so "
            "that the scores are too good. Give rows that it was not trained on.",
            SeenRowsWarning,
        )


def evaluate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95),
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Scores:
    """Return all scores of an estimator on rows that it has not seen.

    Parameters
    ----------
    estimator
        Anything with ``predict_dist``.
    X, y
        The rows and their observed values, in any form that `fit` takes. Of several targets, (n_rows, n_targets), the
        energy score, the variogram score and the coverage of joint boxes come first, then scores of each target.
    levels
        Nominal coverages of the intervals whose observed coverage and mean width are reported.
    groups : array-like of shape (n_rows,), str, or function, optional
        Coverage and width are reported for each group of rows, too: ``scores.groups`` has them as columns, ready for a
        DataFrame. One entry per row, the name of a column of X, or a function of X that returns such an array. More
        than 20 different numbers or dates are divided into five ranges with about as many rows each.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows in all scores but those of groups.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.metrics import evaluate
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> u = IBUGRegressor(random_state=0).fit(X[:300], y[:300])
    >>> scores = evaluate(u, X[300:], y[300:], levels=[0.9])
    >>> scores["coverage_90"] > 0.8
    True
    >>> by_sex = evaluate(u, X[300:], y[300:], levels=[0.9], groups=lambda X: X[:, 1] > 0)
    >>> by_sex.groups["group"].tolist(), by_sex.groups["rows"].tolist()
    (['False', 'True'], [74, 68])
    """
    if getattr(estimator, "target_names_", None) is not None:
        if groups is not None:
            raise InvalidInputError("groups are for one target: evaluate several targets without.")
        return evaluate_several(estimator, X, y, levels, sample_weight)
    values = as_targets(y)
    _guard(estimator, values)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, len(values))
    distribution = as_distribution(predict_dist(estimator, X), len(values))
    # The point prediction is the model's own; a conformal distribution may have another mean.
    points = estimator.predict(X) if hasattr(estimator, "predict") else distribution
    scores: dict[str, float] = {}
    meanings: dict[str, str] = {}
    for name, (metric, meaning) in _METRICS.items():
        scores[name] = metric(values, points if metric in (rmse, mae) else distribution, sample_weight=sample_weight)
        meanings[name] = meaning
    scores["crps_skill"] = _skill(values, distribution, getattr(estimator, "training_targets_", None), sample_weight)
    meanings["crps_skill"] = "1 is perfect, 0 as good as no model"
    coverages = check_levels(levels, "levels")
    for level in coverages:
        percent = f"{100 * level:g}"
        for kind, level_metric, meaning in (
            ("coverage", coverage, f"share of values inside the {percent} % interval"),
            ("width", mean_width, f"mean width of the {percent} % interval"),
        ):
            scores[f"{kind}_{percent}"] = level_metric(values, distribution, float(level), sample_weight=sample_weight)
            meanings[f"{kind}_{percent}"] = meaning
    infinite = [level for level in check_levels(levels, "levels") if scores[f"width_{100 * level:g}"] == np.inf]
    if infinite:
        tell_infinite(np.inf, float(min(infinite)), "evaluate", conformal=getattr(estimator, "conformal_", None))
    by_group = None if groups is None else group_table(values, distribution, coverages, groups, X)
    return Scores(scores, meanings, len(values), by_group)
