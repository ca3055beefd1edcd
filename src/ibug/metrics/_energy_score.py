"""The energy score: the CRPS of several targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug._typing import Floats
from ibug.distributions.joint import JointStack, mean_distances
from ibug.metrics._inputs import Reduce, reduced
from ibug.metrics._several_inputs import as_samples, as_several_targets, as_unit

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
        What each target is divided by, so that all count alike. By default the deviations of the training targets that
        a JointStack knows, and 1 for samples.
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
    values = as_several_targets(y)
    if isinstance(distribution, JointStack):
        return reduced(as_unit(distribution, unit).energy_score(values), reduce, sample_weight)
    samples = as_samples(distribution, values.shape)
    scale = np.ones(values.shape[1]) if unit is None else np.asarray(unit, np.float64)
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
