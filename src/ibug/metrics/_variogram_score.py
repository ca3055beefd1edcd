"""The variogram score: whether the dependence between targets is right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibug.distributions.joint import JointStack, variogram
from ibug.metrics._inputs import Reduce, reduced
from ibug.metrics._several_inputs import as_samples, as_several_targets, as_unit


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

    It is a proper score, and tells wrong dependence between targets better than the energy score does; it does not see
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
    values = as_several_targets(y)
    if isinstance(distribution, JointStack):
        return reduced(as_unit(distribution, unit).variogram_score(values, p), reduce, sample_weight)
    samples = as_samples(distribution, values.shape)
    scale = np.ones(values.shape[1]) if unit is None else np.asarray(unit, np.float64)
    points = samples.transpose(1, 0, 2) / scale
    weights = np.full(points.shape[:2], 1 / points.shape[1])
    return reduced(variogram(points, weights, values / scale, p), reduce, sample_weight)
