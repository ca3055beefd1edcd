"""Any batch of ibug's distributions as a distribution of skpro."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr
from skpro.distributions.base import BaseDistribution

from ibug._typing import Floats
from ibug.distributions import Distribution, Normal

_FAR = 8.2  # beyond it a standard normal value is about as rare as probabilities are precise
_NODES, _WEIGHTS = leggauss(96)


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

    _tags = {  # noqa: RUF012 - skpro has it so
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
    }

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
