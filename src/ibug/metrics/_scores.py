"""Scores of point predictions, distributions and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug._validation import check_probabilities
from ibug.distributions.joint import JointStack, mean_distances, variogram
from ibug.exceptions import InvalidInputError
from ibug.metrics._inputs import (
    Reduce,
    as_distribution,
    as_interval,
    as_multioutput_targets,
    as_points,
    as_samples,
    as_targets,
    as_unit,
    quantile_blocks,
    reduced,
)


def rmse(y: ArrayLike, prediction: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    """Return the root mean squared error of the point prediction; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    prediction : array-like of shape (n,), batched distribution, or tuple (means, standard deviations)
        What ``predict`` or ``predict_dist`` returned for the same rows; the mean of a distribution counts.
    reduce : {"mean", None}
        The root of the mean, or the squared error of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    mean = reduced(np.square(as_points(prediction, len(values)) - values), reduce, sample_weight)
    return mean if reduce is None else float(np.sqrt(mean))


def mae(y: ArrayLike, prediction: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    """Return the mean absolute error of the point prediction; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    prediction : array-like of shape (n,), batched distribution, or tuple (means, standard deviations)
        What ``predict`` or ``predict_dist`` returned for the same rows; the mean of a distribution counts.
    reduce : {"mean", None}
        The mean, or the absolute error of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    return reduced(np.abs(as_points(prediction, len(values)) - values), reduce, sample_weight)


def nll(y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    """Return the negative log likelihood; lower is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    return reduced(-as_distribution(distribution, len(values)).logpdf(values), reduce, sample_weight)


def crps(y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None) -> Any:
    r"""Return the continuous ranked probability score, in the unit of y; lower is better.

    It is :math:`\int (F(x) - 1[x \ge y])^2 dx`, and for a distribution without spread the absolute error (paper,
    section B).

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Examples
    --------
    >>> from ibug.metrics import crps
    >>> round(crps([1.0, 2.0], ([1.0, 1.5], [0.5, 0.5])), 4)
    0.209
    """
    values = as_targets(y)
    return reduced(as_distribution(distribution, len(values)).crps(values), reduce, sample_weight)


def crps_skill(
    y: ArrayLike, distribution: Any, *, reference: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return 1 − CRPS / CRPS of the unconditional distribution: 1 is perfect, 0 is no better than knowing no features.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reference : array-like of shape (m,)
        Targets whose empirical distribution is the one to beat: the training targets. ``None`` takes y itself, which
        makes the reference a little too good.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    own = float(crps(values, distribution, sample_weight=sample_weight))
    guess = _empirical_crps(values, as_targets(values if reference is None else reference))
    unconditional = float(reduced(guess, "mean", sample_weight))
    if unconditional == 0:
        raise InvalidInputError("All targets are equal, so there is no skill to measure.")
    return 1.0 - own / unconditional


def _empirical_crps(y: Floats, sample: Floats) -> Floats:
    """Return the CRPS of one sample's empirical distribution at each y: mean |x − y| − ½ mean |x − x'|."""
    x = np.sort(sample)
    m = len(x)
    sums = np.concatenate([[0.0], np.cumsum(x)])
    below = np.searchsorted(x, y)
    to_sample = ((2 * below - m) * y + sums[-1] - 2 * sums[below]) / m
    within = 2.0 * np.sum((2 * np.arange(1, m + 1) - m - 1) * x) / m**2
    return np.asarray(to_sample - within / 2)


PERCENTS = np.linspace(0.01, 0.99, 99)


def check_score(
    y: ArrayLike,
    distribution: Any,
    alpha: ArrayLike = PERCENTS,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the check score (pinball loss) of quantiles, averaged over their probabilities; lower is better.

    Over the 99 percents of the default this is the paper's check score, nearly half the CRPS.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, tuple (means, standard deviations), or array of shape (n, n_alpha)
        What ``predict_dist`` or ``predict_quantiles`` returned for the same rows.
    alpha : array-like of shape (n_alpha,)
        The probabilities of the quantiles.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    probabilities = np.atleast_1d(check_probabilities(alpha, "alpha"))
    scores = np.empty(len(values))
    for rows, quantiles in quantile_blocks(distribution, len(values), probabilities):
        excess = quantiles - values[rows, None]
        scores[rows] = np.mean(((excess >= 0) - probabilities) * excess, axis=1)
    return reduced(scores, reduce, sample_weight)


def coverage(
    y: ArrayLike,
    distribution: Any,
    level: float = 0.9,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the share of values inside the central interval of the given level; it should be the level.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows.
    level
        The nominal coverage of the interval; not used for intervals that are given as an array.
    reduce : {"mean", None}
        The share, or for each row 1.0 inside and 0.0 outside.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    lower, upper = as_interval(distribution, len(values), level)
    return reduced(((lower <= values) & (values <= upper)).astype(np.float64), reduce, sample_weight)


def mean_width(
    y: ArrayLike,
    distribution: Any,
    level: float = 0.9,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the width of the central intervals of a level, in the unit of y; at equal coverage, less is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values; only their number counts.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows.
    level
        The nominal coverage of the interval; not used for intervals that are given as an array.
    reduce : {"mean", None}
        The mean, or the width of each row's interval.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    lower, upper = as_interval(distribution, len(as_targets(y)), level)
    return reduced(upper - lower, reduce, sample_weight)


def interval_score(
    y: ArrayLike,
    distribution: Any,
    level: ArrayLike = PERCENTS,
    *,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    r"""Return the interval score, averaged over the levels; lower is better.

    Of the central interval [l, u] of level p it is :math:`u - l + \frac{2}{1 - p} \max(l - y, y - u, 0)`: its width,
    plus a penalty for a value outside (Gneiting and Raftery, 2007, Eq. 43). Over the 99 percents of the default it is
    the paper's interval score.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    distribution : batched distribution, or array of shape (n, 2)
        What ``predict_dist`` or ``predict_interval`` returned for the same rows; an array needs its single `level`.
    level : float or array-like
        The nominal coverage of the interval, or several.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    values = as_targets(y)
    levels = np.atleast_1d(check_probabilities(level, "level"))
    scores = np.zeros(len(values))
    for rows, lower, upper in _ends(distribution, len(values), levels):
        within = values[rows]
        for j, p in enumerate(levels):
            outside = np.maximum(np.maximum(lower[:, j] - within, within - upper[:, j]), 0.0)
            scores[rows] += upper[:, j] - lower[:, j] + 2.0 / (1.0 - p) * outside
    return reduced(scores / len(levels), reduce, sample_weight)


def _ends(distribution: Any, n: int, levels: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield blocks of rows, and the lower and the upper ends of their intervals, (n_block, n_levels) each."""
    if not hasattr(distribution, "cdf"):
        lower, upper = as_interval(distribution, n, float(levels[0]))
        shape = n, len(levels)
        yield slice(0, n), np.broadcast_to(lower[:, None], shape), np.broadcast_to(upper[:, None], shape)
        return
    # By quantiles: the guaranteed intervals of conformal calibration are infinite where held-out rows were few.
    alpha = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
    for rows, quantiles in quantile_blocks(distribution, n, alpha):
        yield rows, quantiles[:, : len(levels)], quantiles[:, len(levels) :]


# Rows whose samples are in use at a time.
_ROWS_PER_CHUNK = 64


def energy_score(
    y: ArrayLike,
    distribution: Any,
    *,
    unit: ArrayLike | None = None,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the energy score E|X − y| − ½ E|X − X'| of joint predictions; lower is better.

    It is a proper score of a joint distribution, and the CRPS where there is one target.

    Parameters
    ----------
    y : array-like of shape (n, d)
        The observed values of d targets.
    distribution : JointStack, or array of shape (m, n, d)
        What ``predict_dist`` returned for the same rows, or m samples of each row of any other method; of samples it is
        the unbiased estimate.
    unit : array-like of shape (d,), optional
        What each target is divided by, so that all have the same weight. By default the deviations of the training
        targets that a JointStack knows, and 1 for samples.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.metrics import energy_score
    >>> samples = np.array([[[0.0, 0.0]], [[3.0, 4.0]]])  # two of one row
    >>> energy_score([[0.0, 0.0]], samples)
    0.0
    """
    values = as_multioutput_targets(y)
    if isinstance(distribution, JointStack):
        return reduced(as_unit(distribution, unit).energy_score(values), reduce, sample_weight)
    scale = 1.0 if unit is None else np.asarray(unit, np.float64)
    samples = as_samples(distribution, values.shape)
    return reduced(_of_samples(samples / scale, values / scale), reduce, sample_weight)


def _of_samples(samples: Floats, y: Floats) -> Floats:
    m, n, _ = samples.shape
    out = np.empty(n)
    for start in range(0, n, _ROWS_PER_CHUNK):
        rows = slice(start, start + _ROWS_PER_CHUNK)
        points = samples[:, rows].transpose(1, 0, 2)
        weights = np.full((points.shape[0], 1, m), 1 / m)
        away, apart = mean_distances(points, weights, y[rows])
        out[rows] = away[:, 0] - 0.5 * apart[:, 0, 0] * m / (m - 1)  # over pairs of different samples
    return out


def variogram_score(
    y: ArrayLike,
    distribution: Any,
    p: float = 0.5,
    *,
    unit: ArrayLike | None = None,
    reduce: Reduce = "mean",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the variogram score ``Σ (|yᵢ − yⱼ|ᵖ − E|Xᵢ − Xⱼ|ᵖ)²`` over pairs of targets; lower is better.

    It is a proper score, and reacts to wrong dependence between targets more than the energy score does; it ignores
    a shift that all targets have in common (Scheuerer and Hamill, 2015).

    Parameters
    ----------
    y : array-like of shape (n, d)
        The observed values of d targets.
    distribution : JointStack, or array of shape (m, n, d)
        What ``predict_dist`` returned for the same rows, or m samples of each row of any other method.
    p : float
        The power, above zero.
    unit : array-like of shape (d,), optional
        What each target is divided by. By default the deviations of the training targets that a JointStack knows, and 1
        for samples.
    reduce : {"mean", None}
        The mean, or the score of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ibug.metrics import variogram_score
    >>> samples = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])  # two of one row
    >>> variogram_score([[3.0, 4.0]], samples)
    0.0
    """
    values = as_multioutput_targets(y)
    if isinstance(distribution, JointStack):
        return reduced(as_unit(distribution, unit).variogram_score(values, p), reduce, sample_weight)
    scale = 1.0 if unit is None else np.asarray(unit, np.float64)
    samples = as_samples(distribution, values.shape)
    points = samples.transpose(1, 0, 2) / scale
    weights = np.full(points.shape[:2], 1 / points.shape[1])
    return reduced(variogram(points, weights, values / scale, p), reduce, sample_weight)


def sharpness(
    y: ArrayLike, distribution: Any, *, reduce: Reduce = "mean", sample_weight: ArrayLike | None = None
) -> Any:
    """Return the root of the mean predicted variance, in the unit of y; among calibrated distributions less is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values; only their number counts.
    distribution : batched distribution, or tuple (means, standard deviations)
        What ``predict_dist`` returned for the same rows.
    reduce : {"mean", None}
        The root of the mean, or the variance of each row.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    """
    mean = reduced(as_distribution(distribution, len(as_targets(y))).var(), reduce, sample_weight)
    return mean if reduce is None else float(np.sqrt(mean))
