"""Distributions of skpro that equal those of ibug: its own classes where it has them, else wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import skpro.distributions as classes
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr
from skpro.distributions.base import BaseDistribution

from ibug import distributions
from ibug._typing import Floats
from ibug.distributions import Distribution, JointMixtureParams, JointStack, MixtureParams, Neighborhood, Normal, Stack

_FAR = 8.2  # beyond it a standard normal value is about as rare as probabilities are precise
_NODES, _WEIGHTS = leggauss(96)
_TAGS = {
    "capabilities:approx": ["pdfnorm"],
    "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
    "distr:measuretype": "continuous",
    "distr:paramtype": "nonparametric",
}


class BatchedDistribution(BaseDistribution):
    """A distribution of skpro around a batch of ibug's, for families that skpro has no equal class for.

    Densities, probabilities, quantiles, moments and the CRPS are those of the batch itself.

    Parameters
    ----------
    distribution : ibug.distributions.Distribution
        One distribution per row, or that of a single row.
    index : pd.Index, optional
        Labels of the rows; 0, 1, … if there are none.
    columns : pd.Index, optional
        The name of the target, one column.

    Examples
    --------
    >>> from ibug.distributions import KDE
    >>> from ibug.skpro import BatchedDistribution
    >>> d = BatchedDistribution(KDE([[0.0, 1.0, 2.0], [3.0, 3.0, 9.0]], [1.0, 1.0]), index=["a", "b"], columns=["y"])
    >>> d.mean()
         y
    a  1.0
    b  5.0
    """

    _tags = _TAGS

    def __init__(self, distribution: Distribution, index: Any = None, columns: Any = None) -> None:
        self.distribution = distribution
        if distribution.shape:
            index = range(len(distribution)) if index is None else index
            columns = [0] if columns is None else columns
        super().__init__(index=index, columns=columns)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> BatchedDistribution:
        if self.ndim == 0:
            return self
        if np.isscalar(rowidx) and np.isscalar(colidx):
            return self._iat(rowidx, colidx)
        columns = self.columns if colidx is None else self.columns[np.atleast_1d(colidx)]
        if rowidx is None:
            return BatchedDistribution(self.distribution, self.index, columns)
        rows = rowidx if isinstance(rowidx, slice) else np.atleast_1d(np.asarray(rowidx))
        return BatchedDistribution(self.distribution[rows], self.index[rows], columns)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> BatchedDistribution:
        if rowidx is None or colidx is None:
            raise ValueError("iat needs both a row and a column.")
        return BatchedDistribution(self.distribution[rowidx])

    def _mean(self) -> Any:
        return self._shaped(self.distribution.mean())

    def _var(self) -> Any:
        return self._shaped(self.distribution.var())

    def _pdf(self, x: Any) -> Any:
        return self.distribution.pdf(x)

    def _log_pdf(self, x: Any) -> Any:
        return self.distribution.logpdf(x)

    def _cdf(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _ppf(self, p: Any) -> Any:
        return self.distribution.ppf(p)

    def _energy_self(self) -> Any:
        """Return E|Y − Y'| = 4 ∫ (p − ½) Q(p) dp, shape (n,), by quadrature over normal scores."""
        v = _FAR * _NODES
        weights = _FAR * _WEIGHTS * np.exp(-0.5 * np.square(v)) / np.sqrt(2 * np.pi) * (ndtr(v) - 0.5)
        scores = v[None, :] if self.distribution.shape else v
        return 4 * (self.distribution.from_normal_score(scores) @ weights)

    def _energy_x(self, x: Any) -> Any:
        """Return E|Y − x|, shape (n,): so that energy(x) − energy()/2 is exactly ibug's own CRPS."""
        score = np.asarray(self.distribution.crps(x))
        return (score[:, 0] if self.ndim else score) + self._energy_self() / 2

    def _shaped(self, values: Floats) -> Any:
        return values[:, None] if self.ndim else values

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's own tests."""
        batch = {"distribution": Normal([0.0, 1.0, 5.0], [1.0, 2.0, 0.5]), "index": [1, 2, 5], "columns": ["a"]}
        return [batch, {"distribution": Normal(0.0, 1.0)}]


class JointDistribution(BaseDistribution):
    """A distribution of skpro around joint distributions of several targets, one column for each.

    As skpro has it, densities, probabilities and quantiles are those of each entry by itself, and the energy of a row
    is the sum over its columns. Samples are joint: their columns go together as the targets do.

    Parameters
    ----------
    joint : ibug.distributions.JointStack
        Joint distributions of n rows.
    targets : sequence of int, optional
        The numbers of the targets that are columns; all by default.
    index : pd.Index, optional
        Labels of the rows; 0, 1, … if there are none.
    columns : pd.Index, optional
        The names of the targets; likewise.

    Examples
    --------
    >>> from ibug import IBUGRegressor
    >>> from ibug.skpro import to_skpro
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, Y = make_regression(300, 4, n_targets=2, noise=20.0, random_state=0)
    >>> u = IBUGRegressor(RandomForestRegressor(20, random_state=0), random_state=0).fit(X[:250], Y[:250])
    >>> d = to_skpro(u.predict_dist(X[250:]), columns=["a", "b"])
    >>> d.shape, d.sample(10).shape
    ((50, 2), (500, 2))
    """

    _tags = _TAGS

    def __init__(
        self, joint: JointStack, targets: Sequence[int] | None = None, index: Any = None, columns: Any = None
    ) -> None:
        self.joint, self.targets = joint, targets
        self._numbers = list(range(joint.n_targets) if targets is None else targets)
        index = range(len(joint)) if index is None else index
        super().__init__(index=index, columns=self._numbers if columns is None else columns)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> BaseDistribution:
        if np.isscalar(rowidx) and np.isscalar(colidx):
            return self._iat(rowidx, colidx)
        places = np.arange(len(self._numbers))
        places = places if colidx is None else np.atleast_1d(places[colidx])
        targets, columns = [self._numbers[place] for place in places], self.columns[places]
        if rowidx is None:
            return JointDistribution(self.joint, targets, self.index, columns)
        rows = rowidx if isinstance(rowidx, slice) else np.atleast_1d(np.asarray(rowidx))
        return JointDistribution(self.joint[rows], targets, self.index[rows], columns)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> BatchedDistribution:
        if rowidx is None or colidx is None:
            raise ValueError("iat needs both a row and a column.")
        return BatchedDistribution(self.joint[int(rowidx)].marginal(self._numbers[colidx]))

    def _mean(self) -> Any:
        return self.joint.mean()[:, self._numbers]

    def _var(self) -> Any:
        return self.joint.var()[:, self._numbers]

    def _pdf(self, x: Any) -> Any:
        return self._each("pdf", x)

    def _log_pdf(self, x: Any) -> Any:
        return self._each("logpdf", x)

    def _cdf(self, x: Any) -> Any:
        return self._each("cdf", x)

    def _ppf(self, p: Any) -> Any:
        return self._each("ppf", p)

    def _energy_self(self) -> Any:
        """Return Σⱼ E|Yⱼ − Yⱼ'|, shape (n,)."""
        return sum(one._energy_self() for one in self._batched())

    def _energy_x(self, x: Any) -> Any:
        """Return Σⱼ E|Yⱼ − xⱼ|, shape (n,)."""
        return sum(one._energy_x(x[:, [j]]) for j, one in enumerate(self._batched()))

    def _sample(self, n_samples: int | None = None) -> pd.DataFrame:
        drawn = self.joint.rvs(1 if n_samples is None else n_samples)[:, :, self._numbers]
        frames = [pd.DataFrame(one, index=self.index, columns=self.columns) for one in drawn]
        return frames[0] if n_samples is None else pd.concat(frames, keys=range(n_samples))

    def _batched(self) -> list[BatchedDistribution]:
        return [BatchedDistribution(self.joint.marginal(target)) for target in self._numbers]

    def _each(self, method: str, x: Floats) -> Floats:
        found = [getattr(self.joint.marginal(t), method)(x[:, j]) for j, t in enumerate(self._numbers)]
        return np.stack(found, axis=1)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for skpro's own tests."""
        errors = np.array([[-1.0, -1.0], [1.0, 0.5]])
        own = tuple(MixtureParams(np.array([0.5, 0.5, 0.0]), errors[:, j]) for j in range(2))
        half = np.array([[1.0, 0.5], [0.5, 1.0]])
        mixture = JointMixtureParams(np.array([0.4, 0.3, 0.3, 0.0]), own, errors, half, half, np.ones(2))
        loc, scale = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 0.0]]), np.full((3, 2), 0.5)
        nothing = np.empty((3, 0))
        near = Neighborhood(nothing.astype(np.int32), nothing.astype(np.float32), np.empty((0, 2)), None, 0)
        alone = tuple(Stack(loc[:, j], scale[:, j], nothing, nothing, own[j]) for j in range(2))
        joint = JointStack(loc, scale, near, alone, mixture)
        return [{"joint": joint, "index": [1, 2, 5], "columns": ["a", "b"]}, {"joint": joint, "targets": [1]}]


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
