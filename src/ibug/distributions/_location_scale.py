"""Families of laws μ + σZ, where Z has a standard law, with or without a shape."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug.distributions._base import Distribution, Floats
from ibug.distributions._maximize import maximize, maximize_scalar
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

# Equal values have no spread: they get this share of their own size, or a number whose square can still be divided by.
_LEAST_RELATIVE_SPREAD = 1e-8
_LEAST_SPREAD = 1e-100
# So many values are fitted at a time that they and what is computed from them stay in the second-level cache.
_VALUES_AT_A_TIME = 2**14


def center_and_spread(values: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations of each row, (n,) each; the latter always above zero."""
    # Differences from the first value keep what is left of the precision of values far from zero.
    first = values[:, :1]
    d = values - first
    center = first[:, 0] + d.mean(axis=1)
    spread = np.std(d, axis=1)
    least = np.maximum(_LEAST_RELATIVE_SPREAD * np.abs(center), _LEAST_SPREAD)
    return center, np.maximum(spread, least)


class LocationScale(Distribution):
    """Laws of μ + σZ. A family gives the standard law of Z; what follows from it stands here.

    Parameters
    ----------
    loc : array-like of shape (n,) or scalar
        The location μ; the mean only where the standard law has mean 0.
    scale : array-like of shape (n,) or scalar
        The scale σ, above zero; the standard deviation only where the standard law has variance 1.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    #: Where a family has a shape: its lowest and highest value, and those between which it may be with given moments.
    shape_bounds: ClassVar[tuple[float, float]] = (0.0, 0.0)
    shape_grid: ClassVar[Floats]
    loc: Floats
    scale: Floats

    def __init__(self, loc: ArrayLike, scale: ArrayLike, *shapes: ArrayLike, **named: ArrayLike) -> None:
        values = {**dict(zip(self.parameters, (loc, scale, *shapes), strict=False)), **named}
        super().__init__(**{name: values[name] for name in self.parameters})
        if not (np.isfinite(self.loc).all() and (self.scale > 0).all() and np.isfinite(self.scale).all()):
            raise InvalidInputError(
                f"A law of the family {type(self).__name__} needs finite locations and finite scales above zero."
            )

    @classmethod
    def fit(cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None) -> Self:
        """Fit one law per row; see :meth:`Distribution.fit`."""
        values = np.asarray(values, np.float64)
        n_rows = max(1, _VALUES_AT_A_TIME // max(1, values.shape[1]))
        blocks = [slice(start, start + n_rows) for start in range(0, max(1, len(values)), n_rows)]
        laws = [
            cls._fit_block(values[b], None if loc is None else loc[b], None if scale is None else scale[b])
            for b in blocks
        ]
        return cls.concatenate(laws)

    @classmethod
    def _fit_block(cls, values: Floats, loc: Floats | None, scale: Floats | None) -> Self:
        if loc is None and scale is None:
            return cls._fit_all(values)
        center, spread = center_and_spread(values)
        mean = center if loc is None else np.asarray(loc, np.float64)
        if scale is None:
            scale = np.hypot(spread, center - mean)  # the root mean square around the given mean
        return cls._fit_shape(values, mean, np.asarray(scale, np.float64))

    @classmethod
    def from_moments(cls, mean: Floats, std: Floats, *shape: Floats) -> Self:
        """Return the laws with these means and standard deviations, and shapes where the family has one."""
        scale = std / np.sqrt(cls._var(*shape))
        return cls(mean - scale * cls._mean(*shape), scale, *shape)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y."""
        x, loc, scale, *shape = self._match(y)
        return np.asarray(self._logpdf((x - loc) / scale, *shape) - np.log(scale))

    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""
        x, loc, scale, *shape = self._match(y)
        return np.asarray(self._cdf((x - loc) / scale, *shape))

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""
        p, loc, scale, *shape = self._match_probability(q)
        return np.asarray(loc + scale * self._ppf(p, *shape))

    def mean(self) -> Floats:
        """Return the means."""
        return np.asarray(self.loc + self.scale * self._mean(*self._shapes()))

    def var(self) -> Floats:
        """Return the variances."""
        return np.asarray(np.square(self.scale) * self._var(*self._shapes()))

    def _shapes(self) -> tuple[Floats, ...]:
        return tuple(getattr(self, name) for name in self.parameters[2:])

    @staticmethod
    @abstractmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats: ...

    @staticmethod
    @abstractmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats: ...

    @staticmethod
    @abstractmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats: ...

    @staticmethod
    @abstractmethod
    def _mean(*shape: Floats) -> Floats | float: ...

    @staticmethod
    @abstractmethod
    def _var(*shape: Floats) -> Floats | float: ...

    @staticmethod
    def _derivatives(z: Floats, *shape: Floats) -> tuple[Floats, ...]:
        """Return g = log density, g', g'' in z; and for a (transformed) shape t also ∂g/∂t, ∂g'/∂t and ∂²g/∂t²."""
        raise NotImplementedError("A family without a fit in closed form gives its derivatives here.")

    @classmethod
    def _start(cls, u: Floats) -> Floats:
        """Return location, log scale and transformed shape to begin with, for rows of mean 0 and variance 1."""
        zeros = np.zeros(len(u))
        scale = np.full(len(u), 1 / np.sqrt(float(np.asarray(cls._var()))))
        return np.stack([zeros - scale * cls._mean(), np.log(scale)], axis=1)

    @staticmethod
    def _to_shape(t: Floats) -> Floats:
        """Return the shape for its transformed value."""
        return t

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        """Maximise the likelihood over all parameters."""
        center, spread = center_and_spread(values)
        u = (values - center[:, None]) / spread[:, None]
        theta = cls._most_likely(u, cls._start(u))
        return cls._from_standardized(theta, center, spread)

    @classmethod
    def _from_standardized(cls, theta: Floats, center: Floats, spread: Floats) -> Self:
        shape = [cls._to_shape(t) for t in theta[:, 2:].T]
        return cls(center + spread * theta[:, 0], spread * np.exp(theta[:, 1]), *shape)

    @classmethod
    def _most_likely(cls, u: Floats, start: Floats) -> Floats:
        """Return location, log scale and transformed shape, (n, p), for rows of mean 0 and variance 1."""

        def objective(rows: NDArray[np.intp], theta: Floats) -> tuple[Floats, Floats, Floats]:
            m, a = theta[:, :1], theta[:, 1:2]
            s = np.exp(a)
            z = (u[rows] - m) / s
            g, g1, g2, *with_shape = cls._derivatives(z, *(cls._to_shape(t) for t in theta[:, 2:, None].swapaxes(0, 1)))
            n_parameters = theta.shape[1]
            gradient = np.empty((len(rows), n_parameters))
            hessian = np.empty((len(rows), n_parameters, n_parameters))
            gradient[:, 0] = np.mean(-g1 / s, axis=1)
            gradient[:, 1] = np.mean(-1 - z * g1, axis=1)
            hessian[:, 0, 0] = np.mean(g2 / s**2, axis=1)
            hessian[:, 0, 1] = np.mean((g1 + z * g2) / s, axis=1)
            hessian[:, 1, 1] = np.mean(z * g1 + z**2 * g2, axis=1)
            if with_shape:
                gt, g1t, gtt = with_shape
                gradient[:, 2] = np.mean(gt, axis=1)
                hessian[:, 0, 2] = np.mean(-g1t / s, axis=1)
                hessian[:, 1, 2] = np.mean(-z * g1t, axis=1)
                hessian[:, 2, 2] = np.mean(gtt, axis=1)
            for i in range(n_parameters):
                for j in range(i):
                    hessian[:, i, j] = hessian[:, j, i]
            return np.mean(g, axis=1) - a[:, 0], gradient, hessian

        shapes = cls._transformed_bounds()
        lower = np.array([-np.inf, np.log(1e-6), *shapes[:1]])
        upper = np.array([np.inf, np.log(1e3), *shapes[1:]])
        return maximize(objective, start, lower, upper)

    @classmethod
    def _transformed_bounds(cls) -> tuple[float, ...]:
        return ()

    @classmethod
    def _fit_shape(cls, values: Floats, mean: Floats, std: Floats) -> Self:
        """Choose the most likely shape, if the family has one, for given means and standard deviations."""
        if len(cls.parameters) == 2:
            return cls.from_moments(mean, std)
        u = (values - mean[:, None]) / std[:, None]
        zero, one = np.zeros(len(u)), np.ones(len(u))

        def likelihood(t: Floats) -> Floats:
            shape = cls._to_shape(np.broadcast_to(t, (len(u),)))
            return np.asarray(np.mean(cls.from_moments(zero, one, shape).logpdf(u), axis=1))

        t = maximize_scalar(likelihood, cls.shape_grid)
        return cls.from_moments(mean, std, cls._to_shape(t))
