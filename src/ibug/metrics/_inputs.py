"""What every metric accepts: observed values, and predictions as a batched distribution or as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug._validation import check_probability, check_weights
from ibug.distributions import JointStack, Normal
from ibug.exceptions import InvalidInputError

Reduce = Literal["mean"] | None
_QUANTILES_AT_ONCE = 2**18  # 2 MB
_FOR_SEVERAL = (
    " This is for one target. Of several, take one: y[:, j] of an array, and d.marginal(j) of the joint distribution. "
    "ibug.metrics.evaluate(u, X, y) scores all of them, ibug.plotting.JointDisplay draws two."
)


def as_targets(y: ArrayLike) -> Floats:
    """Return the observed values, (n,), all finite, at least one.

    Parameters
    ----------
    y : array-like of shape (n,), or (n, 1)
        The observed values: an array, a list, a series, or a frame of one column.
    """
    _refuse_distribution(y)
    values = np.asarray(y, np.float64)
    if values.ndim == 2 and values.shape[1] == 1:  # which `fit` takes as well
        values = values[:, 0]
    if values.ndim != 1 or not values.size:
        hint = _FOR_SEVERAL if values.ndim == 2 and values.shape[1] > 1 else ""
        raise InvalidInputError(f"y must have shape (n,), n of at least 1; got shape {values.shape}.{hint}")
    return _finite(values)


def as_distribution(given: Any, n: int) -> Any:
    """Return a batched distribution of n rows, from one or from a pair (means, standard deviations).

    Parameters
    ----------
    given : batched distribution or tuple
        What was predicted.
    n : int
        The number of rows.
    """
    distribution = Normal(*given) if isinstance(given, tuple) and len(given) == 2 else given
    if not hasattr(distribution, "cdf") or not hasattr(distribution, "shape"):
        hint = _FOR_SEVERAL if isinstance(given, JointStack) else ""
        raise InvalidInputError(
            "A distribution as predict_dist returns it, or a tuple (means, standard deviations), is expected; got "
            f"{type(given).__name__}.{hint}"
        )
    if distribution.shape != (n,):
        raise InvalidInputError(f"y has {n} rows, the distribution has shape {distribution.shape}.")
    return distribution


def as_points(prediction: Any, n: int) -> Floats:
    """Return point predictions, (n,): an array as it is, or the means of a distribution.

    Parameters
    ----------
    prediction : array of shape (n,), batched distribution or tuple
        What was predicted.
    n : int
        The number of rows.
    """
    if isinstance(prediction, tuple) or hasattr(prediction, "cdf"):
        return np.asarray(as_distribution(prediction, n).mean())
    return _as_array(prediction, (n,))


def as_interval(distribution: Any, n: int, level: float) -> tuple[Floats, Floats]:
    """Return lower and upper ends, (n,) each: the columns of an array (n, 2), or a distribution's central interval.

    Parameters
    ----------
    distribution : array of shape (n, 2) or batched distribution
        What was predicted.
    n : int
        The number of rows.
    level : float
        The nominal coverage of the interval.
    """
    if isinstance(distribution, tuple):
        raise InvalidInputError(
            "A tuple could be (lower, upper) or (means, standard deviations). Give intervals as an array of shape "
            "(n, 2), np.stack(d.interval(0.9), axis=1) say, and distributions as ibug.distributions.Normal(means, "
            "deviations)."
        )
    if hasattr(distribution, "cdf"):
        lower, upper = as_distribution(distribution, n).interval(check_probability(level, "level"))
        return lower, upper
    lower, upper = _as_array(distribution, (n, 2)).T
    if np.any(lower > upper):
        raise InvalidInputError(f"The lower end is above the upper end in {np.sum(lower > upper)} of {n} intervals.")
    return lower, upper


def as_quantiles(distribution: Any, n: int, alpha: Floats) -> Floats:
    """Return quantiles, (n, n_alpha): an array as it is, or those of a distribution at alpha.

    Parameters
    ----------
    distribution : array of shape (n, n_alpha), batched distribution or tuple
        What was predicted.
    n : int
        The number of rows.
    alpha : ndarray of shape (n_alpha,)
        The probabilities.
    """
    if isinstance(distribution, tuple) or hasattr(distribution, "cdf"):
        return np.asarray(as_distribution(distribution, n).ppf(alpha[None, :]))
    return _as_array(distribution, (n, len(alpha)))


def quantile_blocks(distribution: Any, n: int, alpha: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows and their quantiles, (n_block, n_alpha): of an array, or of a distribution at alpha.

    A distribution prepares a row once for all its quantiles, which are few rows' at a time to bound the memory.

    Shapes: distribution (n, n_alpha); alpha (n_alpha,).
    """
    size = n
    if isinstance(distribution, tuple) or hasattr(distribution, "cdf"):
        distribution, size = as_distribution(distribution, n), max(1, _QUANTILES_AT_ONCE // len(alpha))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        part = distribution if n <= size else distribution[rows]
        yield rows, as_quantiles(part, rows.stop - rows.start, alpha)


def reduced(values: Floats, reduce: Reduce, sample_weight: ArrayLike | None = None) -> Any:
    """Return the mean of per-row values, or with ``reduce=None`` the values.

    Parameters
    ----------
    values : ndarray of shape (n,)
        One score per row.
    reduce : {"mean", None}
        What to return.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the mean.
    """
    if reduce not in ("mean", None):
        raise InvalidInputError(f'reduce must be "mean" or None; got {reduce!r}.')
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(values))
        return values if reduce is None else float(np.average(values[weights > 0], weights=weights[weights > 0]))
    return values if reduce is None else float(np.mean(values))


def _as_array(values: Any, shape: tuple[int, ...]) -> Floats:
    if isinstance(values, JointStack):
        raise InvalidInputError(f"Predictions of one target are expected; got {type(values).__name__}.{_FOR_SEVERAL}")
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"Predictions of shape {shape} are expected, or a distribution; got {array.shape}.")
    if np.any(np.isnan(array)):
        raise InvalidInputError(f"The predictions contain {np.sum(np.isnan(array))} NaN.")
    return array


def as_multioutput_targets(y: ArrayLike) -> Floats:
    """Return the observed values of several targets, (n, d), all finite. Shapes: y (n, d)."""
    _refuse_distribution(y)
    values = np.asarray(y, np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise InvalidInputError(f"y must have shape (n, d), with two targets at least; got shape {values.shape}.")
    return _finite(values)


def _refuse_distribution(y: Any) -> None:
    if hasattr(y, "cdf") or isinstance(y, JointStack):
        raise InvalidInputError("The observed values come first, then the distribution: metric(y, distribution).")


def _finite(values: Floats) -> Floats:
    if not np.all(np.isfinite(values)):
        raise InvalidInputError(f"y contains {np.sum(~np.isfinite(values))} NaN or infinite values.")
    return values


def as_samples(given: Any, shape: tuple[int, ...]) -> Floats:
    """Return samples of joint predictions, (m, n, d), two at least. Shapes: given (m, n, d)."""
    samples = np.asarray(given, np.float64)
    if samples.ndim != 3 or samples.shape[1:] != shape or len(samples) < 2:
        raise InvalidInputError(
            f"A JointStack as predict_dist returns it, or samples of shape (m, {shape[0]}, {shape[1]}) with m of at "
            f"least 2, are expected; got {type(given).__name__} of shape {samples.shape}."
        )
    return samples


def as_unit(distribution: JointStack, unit: ArrayLike | None) -> JointStack:
    """Return a distribution that measures distances in another unit, if one is given. Shapes: unit (d,)."""
    if unit is None:
        return distribution
    given, mixture = distribution, replace(distribution.mixture, unit=np.asarray(unit, np.float64))
    return JointStack(given.loc, given.scale, given.neighbors, given.own, mixture, given.copulas)
