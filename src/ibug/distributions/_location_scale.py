"""Families of laws μ + σZ, where Z has a standard law, with or without a shape."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ibug.distributions._base import Distribution, Floats
from ibug.distributions._load import likelihood, per_row, rows_of_values
from ibug.exceptions import InvalidInputError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

# Equal values have no spread: they get this share of their own size, or a number whose square can still be divided by.
_LEAST_RELATIVE_SPREAD = 1e-8
_LEAST_SPREAD = 1e-100


def center_and_spread(values: Floats) -> tuple[Floats, Floats]:
    """Return means and standard deviations of each row, (n,) each; the latter always above zero."""
    center, spread = per_row(likelihood.moments, values)
    return center, np.maximum(spread, np.maximum(_LEAST_RELATIVE_SPREAD * np.abs(center), _LEAST_SPREAD))


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
    #: The name of the law in the compiled fit, unless a family has a closed form.
    compiled: ClassVar[str] = ""
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
        values = rows_of_values(values)
        if loc is None and scale is None:
            return cls._fit_all(values)
        if loc is None or scale is None:
            center, spread = center_and_spread(values)
            loc = center if loc is None else loc
            # Without a given scale it is the root mean square around the given mean.
            scale = np.hypot(spread, center - loc) if scale is None else scale
        return cls._fit_shape(values, np.asarray(loc, np.float64), np.asarray(scale, np.float64))

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

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        """Maximise the likelihood over all parameters."""
        center, spread = center_and_spread(values)
        parameters = np.empty((len(values), 3))
        likelihood.most_likely(cls.compiled, values, center, spread, parameters)
        return cls(*parameters.T[: len(cls.parameters)])

    @classmethod
    def _fit_shape(cls, values: Floats, mean: Floats, std: Floats) -> Self:
        """Choose the most likely shape, if the family has one, for given means and standard deviations."""
        if len(cls.parameters) == 2:
            return cls.from_moments(mean, std)
        mean, std = (np.ascontiguousarray(np.broadcast_to(a, (len(values),))) for a in (mean, std))
        shape = np.empty(len(values))
        likelihood.most_likely_shape(cls.compiled, values, mean, std, shape)
        return cls.from_moments(mean, std, shape)
