"""ibug's families and the classes of skpro that are equal to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import skpro.distributions as classes

from ibug import distributions as laws
from ibug.distributions import Distribution
from ibug.skpro._batched import BatchedLaw

# By family: the class of skpro, and its parameters by ibug's names.
_EQUAL: dict[type[Distribution], tuple[Callable[..., Any], dict[str, str]]] = {
    laws.Normal: (classes.Normal, {"mu": "loc", "sigma": "scale"}),
    laws.Laplace: (classes.Laplace, {"mu": "loc", "scale": "scale"}),
    laws.Logistic: (classes.Logistic, {"mu": "loc", "scale": "scale"}),
    laws.StudentT: (classes.TDistribution, {"mu": "loc", "sigma": "scale", "df": "df"}),
    laws.Lognormal: (classes.LogNormal, {"mu": "mu", "sigma": "sigma"}),
    laws.Weibull: (classes.Weibull, {"scale": "scale", "k": "power"}),
}
# Not every version of skpro has these.
for _family, _name, _parameters in (
    (laws.Gumbel, "GumbelR", {"mu": "loc", "sigma": "scale"}),
    (laws.SkewNormal, "SkewNormal", {"mu": "loc", "sigma": "scale", "alpha": "alpha"}),
):
    if hasattr(classes, _name):
        _EQUAL[_family] = (getattr(classes, _name), _parameters)


def to_skpro(law: Distribution, index: Any = None, columns: Any = None) -> Any:
    """Return a batch of laws as a distribution of skpro.

    Parameters
    ----------
    law : ibug.distributions.Distribution
        The laws of n rows.
    index, columns
        Labels of the n rows, and of the one column.

    Returns
    -------
    skpro BaseDistribution of shape (n, 1)
        skpro's own class where it has the same law: ``Normal``, ``Laplace``, ``Logistic``, ``TDistribution``,
        ``GumbelR``, ``SkewNormal``, and ``LogNormal`` and ``Weibull`` for laws that begin at zero. Others (kde,
        empirical, above another shift, truncated, conformal, mixtures, laws of one's own) are wrapped as they are, by
        ``BatchedLaw``.
    """
    index = range(len(law)) if index is None else index
    columns = [0] if columns is None else columns
    if type(law) in _EQUAL and not np.any(getattr(law, "shift", 0.0)):
        skpro_class, names = _EQUAL[type(law)]
        parameters = {name: getattr(law, own)[:, None] for name, own in names.items()}
        return skpro_class(**parameters, index=index, columns=columns)
    return BatchedLaw(law, index=index, columns=columns)
