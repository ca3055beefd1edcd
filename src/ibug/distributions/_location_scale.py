"""Families μ + σZ, where Z has a standard distribution; those without a shape are here."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exp1, expit, log_ndtr, logit, ndtr, ndtri

from ibug._compiled import likelihood
from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._fitting import (
    center_and_spread,
    checked_moments,
    most_likely_number,
    most_likely_spread,
    per_row,
    rows_of_values,
)
from ibug.distributions._normal_scores import FARTHEST, HALF_LOG_2PI, score_of_tails, standardised
from ibug.exceptions import InvalidInputError

_BEYOND = 3.0  # standard deviations that a mean may be beyond the values, where it is looked for
# Beyond these scores probabilities underflow, or soon will: tails are known by their logarithms.
_FAR_SCORE = 30.0
_LEAST_TAIL = 1e-300
_LARGEST_VALUE = 1e299  # so that a finite score has a finite value


class LocationScale(Distribution):
    """Distributions of μ + σZ. A family gives the standard distribution of Z; what follows from it stands here.

    Parameters
    ----------
    loc : array-like of shape (n,) or scalar
        The location μ; the mean only where the standard distribution has mean 0.
    scale : array-like of shape (n,) or scalar
        The scale σ, above zero; the standard deviation only where the standard distribution has variance 1.
    *shapes, **named : array-like of shape (n,) or scalar
        The shape, where a family has one, by place or by name.
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    #: The name of the distribution in the compiled fit, unless a family has a closed form.
    compiled: ClassVar[str] = ""
    #: Whether Z and −Z have the same distribution; then one tail is the other's mirror image.
    symmetric: ClassVar[bool] = False
    #: Mean and variance of Z, unless they depend on the shape.
    standard_mean: ClassVar[float] = 0.0
    standard_var: ClassVar[float] = 1.0
    loc: Floats
    scale: Floats

    def __init__(self, loc: ArrayLike, scale: ArrayLike, *shapes: ArrayLike, **named: ArrayLike) -> None:
        given = dict(zip(self.parameters[2:], shapes, strict=False)) | named
        if len(shapes) + len(named) != len(given) or set(given) != set(self.parameters[2:]):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.parameters)}, each once.")
        super().__init__(loc=loc, scale=scale, **{name: given[name] for name in self.parameters[2:]})
        if not (np.isfinite(self.loc).all() and (self.scale > 0).all() and np.isfinite(self.scale).all()):
            raise InvalidInputError(
                f"The family {type(self).__name__} needs finite locations and finite scales above zero."
            )

    @classmethod
    def fit(cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None) -> Self:
        """Fit one distribution per row; see :meth:`Distribution.fit`."""
        values = rows_of_values(values)
        mean, std = checked_moments(len(values), loc, scale)
        if mean is None:
            if std is None:
                return cls._fit_all(values)
            mean = cls._likely_mean(values, std)
        elif std is None:
            std = cls._likely_std(values, mean)
        return cls._fit_shape(values, mean, std)

    @classmethod
    def from_moments(cls, mean: Floats, std: Floats, *shape: Floats) -> Self:
        """Return the distributions with these means and standard deviations, and shapes where the family has one.

        Parameters
        ----------
        mean, std : ndarray of shape (n,)
            Means and standard deviations.
        *shape : ndarray of shape (n,)
            The shapes.
        """
        scale = std / np.sqrt(cls._var(*shape))
        return cls(mean - scale * cls._mean(*shape), scale, *shape)

    def logpdf(self, y: ArrayLike) -> Floats:
        x, loc, scale, *shape = self._match(y)
        density = self._logpdf(standardised(x, loc, scale), *shape) - np.log(scale)
        return np.where(np.isinf(x), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Floats:
        x, loc, scale, *shape = self._match(y)
        return np.asarray(self._cdf(standardised(x, loc, scale), *shape))

    def sf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value above y, exact in the upper tail where the family is."""
        x, loc, scale, *shape = self._match(y)
        return np.asarray(self._sf(standardised(x, loc, scale), *shape))

    def ppf(self, q: ArrayLike) -> Floats:
        p, loc, scale, *shape = self._match_probability(q)
        return np.asarray(loc + scale * self._ppf(p, *shape))

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)), by the probability of the nearer tail: that of the farther one is rounded to 1."""
        x, loc, scale, *shape = self._match(y)
        z, *shape = np.broadcast_arrays(standardised(x, loc, scale), *shape)
        score = np.asarray(ndtri(self._cdf(z, *shape)))
        high = score > 0
        score[high] = -ndtri(self._sf(z[high], *(each[high] for each in shape)))
        far = ~(np.abs(score) <= _FAR_SCORE) & np.isfinite(x)
        for at, upper in ((far & high, True), (far & ~high, False)):
            if np.any(at):
                tail = (self._log_sf if upper else self._log_cdf)(z[at], *(each[at] for each in shape))
                score[at] = score_of_tails(*((np.zeros(tail.shape), tail) if upper else (tail, np.zeros(tail.shape))))
        return score

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w, finite where w is."""
        score, loc, scale, *shape = np.broadcast_arrays(*self._match(w))
        z = np.empty(score.shape)
        far = np.isfinite(score) & (np.abs(score) > _FAR_SCORE)
        for at, quantile in ((~far & (score > 0), self._isf), (~far & ~(score > 0), self._ppf)):
            z[at] = quantile(ndtr(-np.abs(score[at])), *(each[at] for each in shape))
        for at, from_log in ((far & (score > 0), self._from_log_sf), (far & (score < 0), self._from_log_cdf)):
            if np.any(at):
                tail = np.asarray(log_ndtr(-np.minimum(np.abs(score[at]), FARTHEST)))
                z[at] = from_log(tail, *(each[at] for each in shape))
        with np.errstate(over="ignore"):
            value = np.asarray(loc + scale * z)
        return np.where(np.isfinite(score), np.clip(value, -_LARGEST_VALUE, _LARGEST_VALUE), value)

    def mean(self) -> Floats:
        return np.asarray(self.loc + self.scale * self._mean(*self._shapes()))

    def var(self) -> Floats:
        return np.asarray(np.square(self.scale) * self._var(*self._shapes()))

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score, in closed form where the standard distribution has one."""
        x, loc, scale, *shape = self._match(y)
        z = standardised(x, loc, scale)
        score = self._crps(z, *shape)
        if score is None:
            return super().crps(y)
        # Beyond the cut the score grows with the distance itself.
        far = np.abs(z) >= FARTHEST
        return np.asarray(scale * score + np.where(far, np.abs(x - loc) - scale * np.abs(z), 0.0))

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

    @classmethod
    def _mirrored(cls, *shape: Floats) -> tuple[Floats, ...] | None:
        """Return the shape with which −Z is of the same family; None where there is none."""
        return shape if cls.symmetric else None

    @classmethod
    def _sf(cls, z: Floats, *shape: Floats) -> Floats:
        """Return the probability of a value above z; exact in the upper tail where a family defines it."""
        mirrored = cls._mirrored(*shape)
        return np.asarray(1 - cls._cdf(z, *shape) if mirrored is None else cls._cdf(-z, *mirrored))

    @classmethod
    def _isf(cls, p: Floats, *shape: Floats) -> Floats:
        """Return the value with probability p above it; exact in the upper tail where a family defines it."""
        mirrored = cls._mirrored(*shape)
        if mirrored is not None:
            return np.asarray(-cls._ppf(p, *mirrored))
        # A probability that is lost next to one must not make the value infinite.
        below = np.where(p > 0, np.minimum(1 - p, np.nextafter(1.0, 0.0)), 1.0)
        return np.asarray(cls._ppf(below, *shape))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        """Return the log-probability of a value of at most z, (n,); exact in the far tail where a family is."""
        return np.asarray(np.log(np.maximum(cls._cdf(z, *shape), _LEAST_TAIL)))

    @classmethod
    def _log_sf(cls, z: Floats, *shape: Floats) -> Floats:
        """Return the log-probability of a value above z, (n,); exact in the far tail where a family is."""
        mirrored = cls._mirrored(*shape)
        if mirrored is not None:
            return cls._log_cdf(-z, *mirrored)
        return np.asarray(np.log(np.maximum(cls._sf(z, *shape), _LEAST_TAIL)))

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        """Return the value with this log-probability of at most it, in the far tail."""
        return cls._ppf(np.maximum(np.exp(log_p), _LEAST_TAIL), *shape)

    @classmethod
    def _from_log_sf(cls, log_p: Floats, *shape: Floats) -> Floats:
        """Return the value with this log-probability above it, in the far tail."""
        mirrored = cls._mirrored(*shape)
        if mirrored is not None:
            return np.asarray(-cls._from_log_cdf(log_p, *mirrored))
        return cls._isf(np.maximum(np.exp(log_p), _LEAST_TAIL), *shape)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats | None:
        """Return the continuous ranked probability score of the standard distribution, None without a closed form."""
        return None

    @classmethod
    def _mean(cls, *shape: Floats) -> Floats | float:
        return cls.standard_mean

    @classmethod
    def _var(cls, *shape: Floats) -> Floats | float:
        return cls.standard_var

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        """Maximise the likelihood over all parameters."""
        center, spread = center_and_spread(values)
        parameters = np.empty((len(values), 3))
        likelihood.most_likely(cls.compiled, values, center, spread, parameters)
        return cls(*parameters.T[: len(cls.parameters)])

    @classmethod
    def _likely_mean(cls, values: Floats, std: Floats) -> Floats:
        """Return the most likely means, (n,), given the standard deviations."""
        center, _ = center_and_spread(values)
        distance = most_likely_number(
            lambda t: cls._fit_shape(values, center + std * t, std),
            values,
            (values.min(axis=1) - center) / std - _BEYOND,
            (values.max(axis=1) - center) / std + _BEYOND,
            np.zeros(len(values)),
        )
        return center + std * distance

    @classmethod
    def _likely_std(cls, values: Floats, mean: Floats) -> Floats:
        """Return the most likely standard deviations, (n,), given the means."""
        # Around the root mean square distance from the mean, which is the most likely one of a normal distribution.
        unit = _distance_from(mean, values)
        return most_likely_spread(lambda s: cls._fit_shape(values, mean, s), values, unit)

    @classmethod
    def _fit_shape(cls, values: Floats, mean: Floats, std: Floats) -> Self:
        """Choose the most likely shape, if the family has one, for given means and standard deviations."""
        if len(cls.parameters) == 2:
            return cls.from_moments(mean, std)
        mean, std = (np.ascontiguousarray(np.broadcast_to(a, (len(values),))) for a in (mean, std))
        shape = np.empty(len(values))
        likelihood.most_likely_shape(cls.compiled, values, mean, std, shape)
        return cls.from_moments(mean, std, shape)


def _distance_from(mean: Floats, values: Floats) -> Floats:
    """Return the root mean square distance of each row's values, (n, k), from the mean, (n,)."""
    center, spread = center_and_spread(values)
    return np.hypot(spread, center - mean)


class Normal(LocationScale):
    """Normal distributions.

    Parameters
    ----------
    loc : array-like of shape (n,) or scalar
        The means.
    scale : array-like of shape (n,) or scalar
        The standard deviations, above zero.

    Examples
    --------
    >>> from ibug.distributions import Normal
    >>> d = Normal(loc=[0.0, 10.0], scale=[1.0, 2.0])
    >>> d.ppf([[0.05, 0.5, 0.95]]).round(2)
    array([[-1.64,  0.  ,  1.64],
           [ 6.71, 10.  , 13.29]])
    >>> d[1]
    Normal(loc=10, scale=2)
    """

    symmetric: ClassVar[bool] = True
    _cdf = staticmethod(ndtr)
    _ppf = staticmethod(ndtri)

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-0.5 * np.square(z) - HALF_LOG_2PI)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return (y − μ)/σ, exact however far from the mean."""
        x, loc, scale = self._match(y)
        with np.errstate(over="ignore"):  # infinitely far in floating point numbers
            return np.asarray((x - loc) / scale)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return μ + σw."""
        score, loc, scale = self._match(w)
        return np.asarray(loc + scale * score)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        # Gneiting and Raftery, 2007, Eq. 21. Calibration minimises it: another order of operations moves its results.
        density = np.exp(Normal._logpdf(z))
        return np.asarray(z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

    @classmethod
    def _likely_mean(cls, values: Floats, std: Floats) -> Floats:
        return center_and_spread(values)[0]

    @classmethod
    def _likely_std(cls, values: Floats, mean: Floats) -> Floats:
        return _distance_from(mean, values)

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        return cls(*center_and_spread(values))


_LOG_2 = np.log(2.0)


class Laplace(LocationScale):
    """Laplace distributions, density exp(−|z|)/2: sharper in the middle and heavier in the tails than normal."""

    symmetric: ClassVar[bool] = True
    standard_var: ClassVar[float] = 2.0

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.abs(z) - _LOG_2)

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # the quantiles of 0 and 1 are infinite
            return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(z - _LOG_2)  # below the middle, as all far tails are

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(log_p + _LOG_2)

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)  # Jordan et al., 2019
        return np.asarray(distance + np.exp(-distance) - 0.75)

    @classmethod
    def _likely_mean(cls, values: Floats, std: Floats) -> Floats:
        return per_row(likelihood.median_deviation, values)[0]

    @classmethod
    def _likely_std(cls, values: Floats, mean: Floats) -> Floats:
        distance = np.abs(values - mean[:, None]).mean(axis=1)
        return np.asarray(np.sqrt(2) * cls._above_zero(distance, values))

    @classmethod
    def _fit_all(cls, values: Floats) -> Self:
        median, deviation = per_row(likelihood.median_deviation, values)
        return cls(median, cls._above_zero(deviation, values))

    @staticmethod
    def _above_zero(deviation: Floats, values: Floats) -> Floats:
        if np.all(deviation > 0):
            return deviation
        return np.where(deviation > 0, deviation, center_and_spread(values)[1])


class Logistic(LocationScale):
    """Logistic distributions: like normal ones with somewhat heavier tails."""

    compiled: ClassVar[str] = "logistic"
    symmetric: ClassVar[bool] = True
    standard_var: ClassVar[float] = float(np.pi**2 / 3)
    _cdf = staticmethod(expit)
    _ppf = staticmethod(logit)

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)
        return np.asarray(-distance - 2 * np.log1p(np.exp(-distance)))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(z - np.log1p(np.exp(z)))  # below the middle, as all far tails are

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(log_p - np.log1p(-np.exp(log_p)))

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        distance = np.abs(z)  # Jordan et al., 2019
        return np.asarray(distance + 2 * np.log1p(np.exp(-distance)) - 1)


# exp(700) is near the largest double: with it log densities stay finite however far below the distribution y is.
_LARGEST_EXPONENT = 700.0


class Gumbel(LocationScale):
    """Gumbel distributions (of maxima), skewed to the right: the distribution function is exp(−exp(−z))."""

    compiled: ClassVar[str] = "gumbel"
    standard_mean: ClassVar[float] = float(np.euler_gamma)
    standard_var: ClassVar[float] = float(np.pi**2 / 6)

    @staticmethod
    def _logpdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-z - _exp(-z))

    @staticmethod
    def _cdf(z: Floats, *shape: Floats) -> Floats:
        return np.asarray(np.exp(-_exp(-z)))

    @staticmethod
    def _ppf(p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # the quantiles of 0 and 1 are infinite
            return np.asarray(-np.log(-np.log(p)))

    @classmethod
    def _sf(cls, z: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.expm1(-_exp(-z)))

    @classmethod
    def _isf(cls, p: Floats, *shape: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(-np.log1p(-p)))

    @classmethod
    def _log_cdf(cls, z: Floats, *shape: Floats) -> Floats:
        return -_exp(-z)

    @classmethod
    def _log_sf(cls, z: Floats, *shape: Floats) -> Floats:
        return -z  # log(1 − exp(−e^{−z})) to rounding, far above

    @classmethod
    def _from_log_cdf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return np.asarray(-np.log(-log_p))

    @classmethod
    def _from_log_sf(cls, log_p: Floats, *shape: Floats) -> Floats:
        return -log_p

    @staticmethod
    def _crps(z: Floats, *shape: Floats) -> Floats:
        # Friederichs and Thorarinsdottir, 2012.
        # Far above the distribution exp1 grows like z − γ, and z itself cancels half of it; from 36 on the rest is
        # rounded away.
        above = z > 36
        inner = np.where(above, 0.0, z)
        near = -inner + np.euler_gamma - np.log(2) + 2 * exp1(_exp(-inner))
        return np.asarray(np.where(above, z - np.euler_gamma - np.log(2), near))


def _exp(x: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(x, _LARGEST_EXPONENT)))
