"""The contract of a batched distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from ibug._frames import check_output, frame, index_of, interval_columns, quantile_columns
from ibug._typing import Floats
from ibug._validation import check_probabilities
from ibug.distributions._normal_scores import Move, log_moved_density, log_slope
from ibug.distributions._numerics import gauss_nodes
from ibug.exceptions import InvalidInputError

_RULE = leggauss(48)
# Squares of scores beyond it have less than four digits behind the point.
_FEW_DIGITS, _STEP = 1e6, 1e-5
_FAR = 7.9  # beyond it a standard normal value is about as rare as probabilities are precise


class Distribution(ABC):
    """One distribution per row: the parameters are arrays of shape ``(n,)``, the methods those of ``scipy.stats``.

    An argument is matched with the rows from the left: a scalar counts for all rows, an array of shape ``(n,)`` has one
    value per row, one of shape ``(n, m)`` has m values per row, and ``(1, m)`` the same m values for all rows. The
    result has shape ``(n,)`` or ``(n, m)``. ``d[i]`` is the distribution of one row, whose methods take and return
    arrays of any shape; ``d[i:j]`` is a batch again.

    Parameters
    ----------
    **parameters : array-like of shape (n,) or scalar
        The family's parameters by name.
    """

    #: The names of the parameters, which are also the arguments of the constructor.
    parameters: ClassVar[tuple[str, ...]]
    #: Whether a quantile costs much more than a probability, while both tails are about as light as normal ones: then
    #: integrals are taken over values, not over quantiles.
    costly_quantiles: ClassVar[bool] = False
    #: Whether distribution functions have jumps, which `jumps` returns, or kinks, at values of their own.
    has_kinks: ClassVar[bool] = False

    def __init__(self, **parameters: ArrayLike) -> None:
        arrays: Sequence[Floats] = [np.asarray(value, np.float64) for value in parameters.values()]
        if any(array.shape != arrays[0].shape for array in arrays):
            arrays = np.broadcast_arrays(*arrays)
        if arrays[0].ndim > 1:
            raise InvalidInputError(f"Parameters must be scalars or of shape (n,); got shape {arrays[0].shape}.")
        for name, array in zip(parameters, arrays, strict=True):
            setattr(self, name, array)
        self._shape: tuple[int, ...] = arrays[0].shape

    @classmethod
    def concatenate(cls, distributions: Sequence[Self]) -> Self:
        """Join batches of the same family to one."""
        if len(distributions) == 1:
            return distributions[0]
        return cls(**{name: np.concatenate([getattr(one, name) for one in distributions]) for name in cls.parameters})

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n,)`` for n rows, ``()`` for the distribution of one row."""
        return self._shape

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("The distribution of a single row has no length.")
        return self._shape[0]

    def __getitem__(self, rows: Any) -> Self:
        if not self._shape:
            raise TypeError("The distribution of a single row cannot be indexed.")
        return type(self)(**{name: getattr(self, name)[rows] for name in self.parameters})

    def __repr__(self) -> str:
        if self._shape:
            return f"<{type(self).__name__}: {len(self)} rows>"
        values = ", ".join(f"{name}={getattr(self, name):.6g}" for name in self.parameters)
        return f"{type(self).__name__}({values})"

    @classmethod
    def prepare(cls, targets: Floats) -> dict[str, Any]:
        """Look at all training targets before distributions are fitted to neighbours.

        Parameters
        ----------
        targets : ndarray of shape (n_train,)
            All training targets.

        Returns
        -------
        dict
            Options that `fit` is to be given, a shift of the support, say.

        Raises
        ------
        InvalidInputError
            If the family cannot take such targets.
        """
        return {}

    @classmethod
    def fit(cls, values: Floats, *, loc: Floats | None = None, scale: Floats | None = None) -> Self:
        """Fit one distribution per row to the row's values (paper, section 3.2, Eq. 3).

        Parameters
        ----------
        values : ndarray of shape (n, k)
            The neighbours' targets.
        loc, scale : ndarray of shape (n,), optional
            Means and standard deviations to keep: the distributions have exactly these, and only the rest of the
            parameters is fitted. What is not given is fitted, too: without both it is the plain maximum likelihood fit.
        """
        raise NotImplementedError(f"{cls.__name__} cannot be fitted.")

    @abstractmethod
    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y."""

    @abstractmethod
    def cdf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value of at most y."""

    @abstractmethod
    def ppf(self, q: ArrayLike) -> Floats:
        """Return the quantile at probability q."""

    @abstractmethod
    def mean(self) -> Floats:
        """Return the means."""

    @abstractmethod
    def var(self) -> Floats:
        """Return the variances."""

    def crps(self, y: ArrayLike) -> Floats:
        r"""Return the continuous ranked probability score :math:`\int (F(x) - 1[x \ge y])^2 dx`, in the unit of y.

        Distributions with a closed form override this. Here it is integrated over the quantiles, with V standard
        normal, as :math:`2 E[(1[V > v_y] - \Phi(V)) (Q(\Phi(V)) - y)]`, by 48 Gauss–Legendre nodes on each side of y;
        for smooth quantile functions the relative error is below 1e-6.
        """
        x = np.asarray(y, np.float64)
        middle = np.clip(self.normal_score(x), -_FAR, _FAR)
        total = np.zeros(middle.shape)
        for start, stop, above in ((-_FAR, middle, 0.0), (middle, _FAR, 1.0)):
            for v, weight in gauss_nodes(start, stop, _RULE):
                density = np.exp(-0.5 * np.square(v)) / np.sqrt(2 * np.pi)
                total += weight * density * (above - ndtr(v)) * (self.from_normal_score(v) - x)
        return 2 * total

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)): the standard normal value of the same rank as y."""
        return np.asarray(ndtri(self.cdf(y)))

    def middle_score(self, y: ArrayLike) -> Floats:
        """Return the normal score of the middle between P(Y < y) and P(Y ≤ y): `normal_score` where F has no jumps.

        A new value has a middle score between v and w only if it is between the values with the normal scores v and w.
        On values that occur often, intervals from these scores are narrower than those from normal scores.
        """
        return self.normal_score(y)

    def moved_logpdf(self, y: ArrayLike, move: Move) -> Floats:
        """Return the log density at y of the distribution whose normal scores are moved by an increasing map.

        Parameters
        ----------
        y : array-like
            The values.
        move : Move
            The map; the score v becomes the score w that this distribution calls v's value.
        """
        density, w = self.logpdf(y), self.normal_score(y)
        moved = np.where(np.isneginf(density), density, density + log_slope(move, w))
        far = (np.abs(w) > _FEW_DIGITS) & np.isfinite(moved) & np.isfinite(w)
        if not np.any(far):
            return moved
        # There log f and w²/2, which cancel, leave no digits: the slope dw/dx is that between two values nearby.
        below, above = (self.from_normal_score(np.where(far, w, 0.0) * factor) for factor in (1 - _STEP, 1 + _STEP))
        apart = np.abs(above - below)
        far &= apart > 0
        log_rise = np.log(np.where(far, 2 * _STEP * np.abs(w), 1.0)) - np.log(np.where(far, apart, 1.0))
        return np.where(far, log_moved_density(move, w) + log_rise, moved)

    def censored(self) -> Distribution:
        """Return the distributions that give a value at a bound a probability; these, unless they are truncated.

        What compares scores of observed values, or follows them, needs it: a truncated distribution calls a value at
        its bound impossible, so that its score is infinite.
        """
        return self

    def jumps(self) -> Floats:
        """Return the values that have a probability of their own, (n, m), in any order; none where F is continuous."""
        return np.empty((*self._shape, 0))

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w."""
        return self.ppf(ndtr(np.asarray(w, np.float64)))

    def pdf(self, y: ArrayLike) -> Floats:
        """Return the density at y."""
        return np.exp(self.logpdf(y))

    def sf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value above y, as exact in the upper tail as `normal_score`."""
        return np.asarray(ndtr(-self.normal_score(y)))

    def median(self) -> Floats:
        """Return the medians."""
        return self.ppf(0.5)

    def std(self) -> Floats:
        """Return the standard deviations."""
        return np.sqrt(self.var())

    def interval(self, confidence: ArrayLike = 0.9) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of the central interval, each of shape ``(n,)``; ``(n, m)`` for m coverages.

        Two arrays, as in ``scipy.stats``: ``lower, upper = d.interval(0.9)``. An estimator's ``predict_interval``
        returns both in one: it is ``np.stack(d.interval(confidence), axis=1)``, for one coverage and for several.

        Parameters
        ----------
        confidence : float or array-like of shape (m,)
            The coverage, between 0 and 1; or several.
        """
        levels = check_probabilities(confidence, "confidence")
        if not levels.ndim:
            return self._central(float(levels))
        ends = [self._central(level) for level in levels.tolist()]
        lower, upper = (np.stack(side, axis=-1) for side in zip(*ends, strict=True))
        return lower, upper

    def _central(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval of one coverage, which has been checked."""
        return self.ppf((1 - confidence) / 2), self.ppf((1 + confidence) / 2)

    def to_frame(
        self,
        *,
        coverage: ArrayLike | None = 0.9,
        quantiles: ArrayLike | None = None,
        index: Any = None,
        output: str = "pandas",
    ) -> Any:
        """Return a data frame with one line per row: ``mean``, ``std``, ``median``, interval and quantiles.

        Parameters
        ----------
        coverage : float, array-like of shape (m,) or None
            The coverage of the central interval, columns ``lower`` and ``upper``; or several, ``lower_50``,
            ``upper_50`` and so on; None for no interval.
        quantiles : float or array-like, optional
            Probabilities of quantiles: columns ``q0.05`` and so on.
        index : pandas index or frame, optional
            The index of the result; that of a frame of rows, for example.
        output : {"pandas", "polars"}
            The library of the frame.

        Examples
        --------
        >>> from ibug.distributions import Normal
        >>> Normal([0.0, 1.0], [1.0, 2.0]).to_frame(coverage=0.5, index=["a", "b"]).round(2)
           mean  std  median  lower  upper
        a   0.0  1.0     0.0  -0.67   0.67
        b   1.0  2.0     1.0  -0.35   2.35
        """
        check_output(output)
        values = {"mean": self.mean(), "std": self.std(), "median": self.median()}
        columns = {name: np.atleast_1d(value) for name, value in values.items()}
        n = len(columns["mean"])  # 1 for the distribution of one row
        if coverage is not None:
            ends = [np.reshape(end, (n, *np.shape(coverage))) for end in self.interval(coverage)]
            columns |= interval_columns(np.stack(ends, axis=1), coverage)
        if quantiles is not None:
            alpha = np.atleast_1d(check_probabilities(quantiles, "quantiles"))
            columns |= quantile_columns(self.ppf(alpha[None, :]), alpha)
        known = index_of(index)
        return frame(columns, output, index if known is None else known)

    def rvs(self, size: int | None = None, random_state: Any = None) -> Floats:
        """Draw samples.

        Parameters
        ----------
        size
            Samples per row: ``None`` gives shape ``(n,)``, a number m gives ``(n, m)``.
        random_state
            A seed, a ``RandomState``, a ``Generator``, or ``None``. Each sample takes one random number, row after row.
        """
        shape = self._shape if size is None else (*self._shape, size)
        draw = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
        return self.from_uniform(np.asarray(draw.random(shape)))

    def from_uniform(self, uniform: Floats) -> Floats:
        """Return one sample for each random number between 0 and 1: here its quantile.

        Rows of a batch that is divided have the same samples as in one piece (``ibug.dask``).

        Parameters
        ----------
        uniform : ndarray of shape (n,) or (n, m)
            Independent numbers, uniform on [0, 1).
        """
        # Exactly 0 has an infinite quantile in distributions without a lower end.
        return self.ppf(np.maximum(uniform, np.finfo(float).tiny))

    def _match(self, argument: ArrayLike, *arrays: Floats) -> tuple[Floats, ...]:
        """Return the argument and arrays, (n,), by default the parameters, ready to be broadcast against each other."""
        x = np.asarray(argument, np.float64)
        own = arrays or tuple(getattr(self, name) for name in self.parameters)
        self._check_argument(x)
        if self._shape and x.ndim == 2:
            return (x, *(p[:, None] for p in own))
        return (x, *own)

    def _check_argument(self, x: Floats) -> None:
        if not self._shape or x.ndim == 0 or (x.ndim == 1 and len(x) == len(self)):
            return
        if x.ndim == 2 and x.shape[0] in (1, len(self)):
            return
        n, m = len(self), x.size
        line = f"; [[{', '.join(f'{value:g}' for value in x[:2])}{', …' if m > 2 else ''}]], say" if x.ndim == 1 else ""
        raise InvalidInputError(
            f"An argument of shape {x.shape} does not fit {n} rows: give a scalar, one value per row ({n},), m values "
            f"per row ({n}, m), or the same m values for every row (1, m){line}."
        )

    def _match_probability(self, argument: ArrayLike) -> tuple[Floats, ...]:
        matched = self._match(argument)
        if np.any((matched[0] < 0) | (matched[0] > 1)):
            raise InvalidInputError("A probability must be from 0 to 1.")
        return matched
