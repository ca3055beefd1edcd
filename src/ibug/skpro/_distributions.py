"""Distributions of skpro that equal those of ibug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import skpro.distributions as classes

from ibug import distributions
from ibug.distributions import Distribution, JointStack
from ibug.skpro._batched import BatchedDistribution
from ibug.skpro._joint import JointDistribution

# By family: the class of skpro, and its parameters by ibug's names.
_EQUAL: dict[type[Distribution], tuple[Callable[..., Any], dict[str, str]]] = {
    distributions.Normal: (classes.Normal, {"mu": "loc", "sigma": "scale"}),
    distributions.Laplace: (classes.Laplace, {"mu": "loc", "scale": "scale"}),
    distributions.Logistic: (classes.Logistic, {"mu": "loc", "scale": "scale"}),
    distributions.StudentT: (classes.TDistribution, {"mu": "loc", "sigma": "scale", "df": "df"}),
    distributions.Lognormal: (classes.LogNormal, {"mu": "mu", "sigma": "sigma"}),
    distributions.Weibull: (classes.Weibull, {"scale": "scale", "k": "power"}),
}
# Not every version of skpro has these.
for _family, _name, _parameters in (
    (distributions.Gumbel, "GumbelR", {"mu": "loc", "sigma": "scale"}),
    (distributions.SkewNormal, "SkewNormal", {"mu": "loc", "sigma": "scale", "alpha": "alpha"}),
):
    if hasattr(classes, _name):
        _EQUAL[_family] = (getattr(classes, _name), _parameters)


def to_skpro(distribution: Distribution | JointStack, index: Any = None, columns: Any = None) -> Any:
    """Return a batch of distributions as a distribution of skpro.

    Parameters
    ----------
    distribution : ibug.distributions.Distribution or JointStack
        The distributions of n rows.
    index, columns
        Labels of the n rows, and of the columns: one, or one for each of several targets.

    Returns
    -------
    skpro BaseDistribution of shape (n, 1), or (n, n_targets)
        skpro's own class where it has the same family: ``Normal``, ``Laplace``, ``Logistic``, ``TDistribution``,
        ``GumbelR``, ``SkewNormal``, and ``LogNormal`` and ``Weibull`` where they begin at zero. Others (stacks,
        kde, empirical, with another shift, truncated, conformal, mixtures, families of one's own) are wrapped as they
        are, by ``BatchedDistribution``, and joint distributions of several targets by ``JointDistribution``.
    """
    if isinstance(distribution, JointStack):
        return JointDistribution(distribution, index=index, columns=columns)
    index = range(len(distribution)) if index is None else index
    columns = [0] if columns is None else columns
    if type(distribution) in _EQUAL and not np.any(getattr(distribution, "shift", 0.0)):
        skpro_class, names = _EQUAL[type(distribution)]
        parameters = {name: getattr(distribution, own)[:, None] for name, own in names.items()}
        return skpro_class(**parameters, index=index, columns=columns)
    return BatchedDistribution(distribution, index=index, columns=columns)
