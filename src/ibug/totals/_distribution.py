"""The distribution of totals: for each group a mixture of normal distributions, one for each draw of the factors."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri

from ibug._typing import Floats
from ibug.distributions import Distribution, mean_distance, solve_increasing

_FAR = 9.0  # standard deviations beyond which nothing is left


class TotalDistribution(Distribution):
    """The distributions of the sums of groups of rows, with all methods of a distribution.

    Parameters
    ----------
    loc, scale : array-like of shape (n_groups, n_draws)
        Mean and standard deviation of each total, given a draw of what rows have in common. All draws count equally.
    lower, upper : array-like of shape (n_groups,)
        The bounds of the totals. What is outside counts as the nearest bound.
    groups : ndarray of shape (n_groups,) or None
        The label of each group.
    n_rows : ndarray of shape (n_groups,) or None
        The number of rows in each group.

    Examples
    --------
    >>> from ibug.totals import TotalDistribution
    >>> d = TotalDistribution([[9.0, 11.0]], [[1.0, 1.0]], [0.0], [np.inf])
    >>> d.mean(), d.var()
    (array([10.]), array([2.]))
    """

    parameters: ClassVar[tuple[str, ...]] = ("lower", "upper")
    lower: Floats
    upper: Floats

    def __init__(
        self,
        loc: ArrayLike,
        scale: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        groups: NDArray[Any] | None = None,
        n_rows: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(lower=lower, upper=upper)
        self.loc, self.scale = np.broadcast_arrays(np.asarray(loc, np.float64), np.asarray(scale, np.float64))
        self.groups, self.n_rows = groups, n_rows

    @classmethod
    def concatenate(cls, distributions: Any) -> Self:
        """Join totals of several batches of groups, of the same number of draws, to one."""
        names = ("loc", "scale", "lower", "upper", "groups", "n_rows")
        columns: dict[str, Any] = {name: [getattr(one, name) for one in distributions] for name in names}
        known = {name: column for name, column in columns.items() if all(one is not None for one in column)}
        return cls(**{name: np.concatenate(column) for name, column in known.items()})

    def __getitem__(self, rows: Any) -> Self:
        parts = (None if one is None else one[rows] for one in (self.groups, self.n_rows))
        return type(self)(self.loc[rows], self.scale[rows], self.lower[rows], self.upper[rows], *parts)

    def __repr__(self) -> str:
        if self.shape:
            return f"<TotalDistribution: {len(self)} groups>"
        low, high = self.interval(0.9)
        return f"TotalDistribution(mean={self.mean():.6g}, median={self.median():.6g}, 90%=[{low:.6g}, {high:.6g}])"

    def cdf(self, y: ArrayLike) -> Floats:
        x, lower, upper = self._match(y, self.lower, self.upper)
        inside = np.mean(ndtr(self._scores(x)), axis=-1)
        return np.asarray(np.where(x < lower, 0.0, np.where(x >= upper, 1.0, inside)))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y: of what is inside the bounds, which is not made larger for what is outside."""
        x, lower, upper = self._match(y, self.lower, self.upper)
        scale = self._aligned(self.scale, x.ndim)
        logs = -0.5 * np.square(self._scores(x)) - np.log(scale) - 0.5 * np.log(2 * np.pi)
        inside = logsumexp(logs, axis=-1) - np.log(self.loc.shape[-1])
        return np.asarray(np.where((x < lower) | (x > upper), -np.inf, inside))

    def ppf(self, q: ArrayLike) -> Floats:
        p = self._match_probability(q)[0]
        low = np.min(self.loc - _FAR * self.scale, axis=-1)
        high = np.max(self.loc + _FAR * self.scale, axis=-1)
        p, low, high, lower, upper = np.broadcast_arrays(*self._match(p, low, high, self.lower, self.upper))
        inner = np.clip(p, 1e-16, 1 - 1e-16)
        found = solve_increasing(
            lambda x: np.asarray(ndtri(np.mean(ndtr(self._scores(x)), axis=-1))), np.asarray(ndtri(inner)), low, high
        )
        found = np.where(p <= 0, lower, np.where(p >= 1, upper, found))
        return np.asarray(np.where(np.isnan(p), np.nan, np.clip(found, lower, upper)))

    def mean(self) -> Floats:
        return np.asarray(np.mean(self.loc, axis=-1))

    def var(self) -> Floats:
        """Return the variances: the mean of the variances and the variance of the means."""
        return np.asarray(np.mean(np.square(self.scale), axis=-1) + np.var(self.loc, axis=-1))

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score ``E|T − y| − E|T − T′|/2`` in closed form."""
        x, lower, upper = self._match(y, self.lower, self.upper)
        x = np.clip(x, lower, upper)
        scale = self._aligned(self.scale, x.ndim)
        to_value = np.mean(scale * mean_distance(self._scores(x)), axis=-1)
        apart = np.array(
            [_mean_apart(*each) for each in zip(np.atleast_2d(self.loc), np.atleast_2d(self.scale), strict=True)]
        )
        (apart,) = self._match(x, apart.reshape(self.shape))[1:]
        return np.asarray(to_value - apart / 2)

    def _scores(self, x: Floats) -> Floats:
        """Return the distances of values to the means of all draws in standard deviations, the draws last."""
        return np.asarray((x[..., None] - self._aligned(self.loc, x.ndim)) / self._aligned(self.scale, x.ndim))

    def _aligned(self, array: Floats, n_dim: int) -> Floats:
        """Return an array of (n_groups, n_draws) for values of (n_groups, m): an axis between the two."""
        return array.reshape(*array.shape[:-1], *(1,) * (n_dim - (array.ndim - 1)), array.shape[-1])


def _mean_apart(loc: Floats, scale: Floats) -> float:
    """Return the mean distance of two values of one mixture. Shapes: loc, scale (n_draws,)."""
    both = np.hypot(scale[:, None], scale)
    return float(np.mean(both * mean_distance((loc[:, None] - loc) / both)))
