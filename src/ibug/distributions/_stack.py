"""Stacks: mixtures of a model's view of a row and of the values of the row's neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from ibug._compiled import stack as kernel
from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug.distributions._base import Distribution
from ibug.distributions._normal_scores import (
    FARTHEST,
    HALF_LOG_2PI,
    Move,
    log_slope,
    score_of_log_tail,
    score_of_tails,
    standardised,
)
from ibug.exceptions import InvalidInputError

Masses = NDArray[np.float32]

# Below it a probability is too small to be divided by a weight without loss, and the logarithms take over.
_LEAST_TAIL = 1e-280


@dataclass(frozen=True)
class MixtureParams:
    """What all rows of a stack have in common.

    Parameters
    ----------
    weights : ndarray of shape (3,)
        The shares of the normal part, the pooled errors and the atoms; they sum to 1.
    errors : ndarray of shape (n_errors,)
        Standardised errors (y − μ)/σ of validation rows, ascending.
    bandwidth, error_bandwidth : float
        The widths of the kernels that smooth atoms and errors to a density, relative to the scale of the row.
    resolution : float
        The distance between neighbouring values that the target can take, 0 for a continuous one. No kernel is narrower
        than resolution/√(2π): with this width, the density at a value is its probability divided by the resolution.
    support : pair of float
        The bounds of the target.
    """

    weights: Floats
    errors: Floats = field(default_factory=lambda: np.empty(0))
    bandwidth: float = 0.25
    error_bandwidth: float = 0.25
    resolution: float = 0.0
    support: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        weights, errors = np.array(self.weights, np.float64), np.sort(np.array(self.errors, np.float64).reshape(-1))
        if weights.shape != (3,) or not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
            raise InvalidInputError(
                "A stack needs three weights of at least zero, for the normal part, the errors and the atoms; "
                f"got {self.weights!r}."
            )
        if not np.isfinite(errors).all() or (weights[1] > 0 and errors.size == 0):
            raise InvalidInputError("A stack with a weight for errors needs errors, which must be finite.")
        widths = np.array([self.bandwidth, self.error_bandwidth])
        if not (np.all((widths > 0) & np.isfinite(widths)) and 0 <= self.resolution < np.inf):
            raise InvalidInputError("The bandwidths of a stack must be above zero, and the resolution at least zero.")
        lower, upper = (float(bound) for bound in self.support)
        if not lower < upper:
            raise InvalidInputError(f"The lower bound of the support must be below the upper one; got {self.support}.")
        object.__setattr__(self, "weights", weights / weights.sum())
        object.__setattr__(self, "errors", errors)
        object.__setattr__(self, "support", (lower, upper))

    @read_only_property
    def bounds(self) -> Floats:
        """The support as an array, (2,)."""
        return np.array(self.support)

    @property
    def least_bandwidth(self) -> float:
        """The narrowest width of a kernel, in the unit of the target."""
        return max(self.resolution / float(np.sqrt(2 * np.pi)), float(np.finfo(float).tiny))

    def equals(self, other: MixtureParams) -> bool:
        """Return whether both have the same values."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return all(np.array_equal(own, theirs) for own, theirs in pairs)


class Stack(Distribution):
    r"""Mixtures of a normal distribution, pooled errors of the model, and weighted values of neighbours.

    The distribution function of row i is

    .. math:: F_i(y) = w_0 \Phi\Big(\frac{y - \mu_i}{\sigma_i}\Big) + \frac{w_1}{J} \sum_j 1[\mu_i + \sigma_i e_j \le y]
              + w_2 \sum_r m_{ir} 1[x_{ir} \le y],

    and a value outside the support counts as its nearest end. ``cdf``, ``sf``, ``ppf``, ``mean``, ``var`` and ``crps``
    are those of F, in closed form. Where a quantile or a sample comes from the atoms, it is one of them, so that it
    is a value that occurs.

    F has jumps, and no density. ``pdf`` and ``logpdf`` are those of a smoothed F: each atom becomes a normal kernel,
    each error a Student's t with two degrees of freedom, and what a kernel has outside the support is cut off and given
    to the rest of it. The tails of the t are for the log score of values far from all errors; ``var`` is that of F, the
    smoothed F has none. On whole numbers or grades a kernel is at least ``resolution/√(2π)`` wide: then the density at
    a value is about its probability, divided by the distance of two values, and twice that at an end of the support.

    A row takes 16 bytes and 12 for each atom: 1 KB for 84 atoms.

    Parameters
    ----------
    loc, scale : array-like of shape (n,) or scalar
        The location μ and the scale σ of the model's view; the scale is above zero.
    atoms : array-like of shape (n, k) or (k,)
        The values x of the neighbours' view; they are kept sorted.
    masses : array-like of shape (n, k) or (k,)
        Their probabilities m, up to a factor for each row; kept in single precision.
    mixture : MixtureParams
        The weights of the three parts, the errors, bandwidths and the support, which all rows share.

    Examples
    --------
    >>> from ibug.distributions import MixtureParams, Stack
    >>> shared = MixtureParams([0.2, 0.0, 0.8])
    >>> d = Stack([5.0, 6.0], [0.5, 1.0], [[5, 5, 6], [6, 7, 8]], [[1, 1, 2], [1, 1, 1]], shared)
    >>> d.ppf([[0.05, 0.5, 0.95]]).round(3)
    array([[4.663, 5.   , 6.   ],
           [5.326, 7.   , 8.   ]])
    >>> d.cdf(6).round(3)
    array([0.995, 0.367])
    """

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale", "atoms", "masses")
    has_kinks: ClassVar[bool] = True
    loc: Floats
    scale: Floats
    atoms: Floats
    masses: Masses

    def __init__(
        self, loc: ArrayLike, scale: ArrayLike, atoms: ArrayLike, masses: ArrayLike, mixture: MixtureParams
    ) -> None:
        place, width = np.broadcast_arrays(np.asarray(loc, np.float64), np.asarray(scale, np.float64))
        if place.ndim > 1:
            raise InvalidInputError(f"Locations and scales must be scalars or of shape (n,); got {place.shape}.")
        if not (np.isfinite(place).all() and np.isfinite(width).all() and (width > 0).all()):
            raise InvalidInputError("A stack needs finite locations and finite scales above zero.")
        values, weights = np.asarray(atoms, np.float64), np.asarray(masses, np.float32)
        if values.shape[:-1] != place.shape or values.ndim == 0 or weights.shape != values.shape:
            raise InvalidInputError(
                f"Atoms and masses must be of shape (n, k) for {place.shape} rows; got {values.shape} and "
                f"{weights.shape}."
            )
        if not np.isfinite(values).all():
            raise InvalidInputError("The atoms of a stack must be finite.")
        positive = bool((weights >= 0).all()) and bool(np.isfinite(weights).all())
        if not positive or (mixture.weights[2] > 0 and not (weights.sum(axis=-1) > 0).all()):
            raise InvalidInputError("The masses of a stack must be at least zero, and one of each row above zero.")
        if values.shape[-1] > 1 and not (values[..., 1:] >= values[..., :-1]).all():
            order = np.argsort(values, axis=-1, kind="stable")
            values, weights = np.take_along_axis(values, order, -1), np.take_along_axis(weights, order, -1)
        self._set(place, width, values, weights, mixture)

    @classmethod
    def of_sorted(cls, loc: Floats, scale: Floats, atoms: Floats, masses: Masses, mixture: MixtureParams) -> Self:
        """Return the stacks of arrays that are known to be as they should be, atoms ascending.

        Parameters
        ----------
        loc, scale : ndarray of shape (n,)
            Locations and scales.
        atoms : ndarray of shape (n, k)
            The atoms, ascending in each row.
        masses : ndarray of float32, shape (n, k)
            Their masses.
        mixture : MixtureParams
            What all rows share.
        """
        stack = cls.__new__(cls)
        stack._set(loc, scale, atoms, masses, mixture)
        return stack

    def _set(self, loc: Floats, scale: Floats, atoms: Floats, masses: Masses, mixture: MixtureParams) -> None:
        self.loc, self.scale, self.atoms, self.masses, self.mixture = loc, scale, atoms, masses, mixture
        self._shape = loc.shape

    @classmethod
    def concatenate(cls, distributions: Sequence[Self]) -> Self:
        """Join stacks with the same weights, errors and bandwidths to one."""
        if len(distributions) == 1:
            return distributions[0]
        mixture = distributions[0].mixture
        if any(not mixture.equals(one.mixture) for one in distributions):
            raise InvalidInputError("Stacks with different weights, errors or bandwidths cannot be joined.")
        if len({one.atoms.shape[-1] for one in distributions}) > 1:
            raise InvalidInputError("Stacks with different numbers of atoms cannot be joined.")
        loc, scale, atoms = (
            np.concatenate([getattr(one, name) for one in distributions]) for name in cls.parameters[:3]
        )
        return cls.of_sorted(loc, scale, atoms, np.concatenate([one.masses for one in distributions]), mixture)

    @classmethod
    def gather(cls, distributions: Iterator[Self], n_rows: int) -> Self:
        """Join stacks to one while they are made: each is copied to its place, and can be forgotten.

        Parameters
        ----------
        distributions
            Stacks with the same weights, errors, bandwidths and number of atoms, one batch after the other.
        n_rows
            The number of rows of all of them.
        """
        whole, start = None, 0
        for part in distributions:
            if whole is None:
                atoms, masses = (np.empty((n_rows, part.atoms.shape[1]), kind) for kind in (np.float64, np.float32))
                whole = cls.of_sorted(np.empty(n_rows), np.empty(n_rows), atoms, masses, part.mixture)
            stop = start + len(part)
            if not whole.mixture.equals(part.mixture) or part.atoms.shape[1] != whole.atoms.shape[1] or stop > n_rows:
                raise InvalidInputError(f"Stacks of other weights, atoms or rows ({n_rows} in all) cannot be joined.")
            for name in cls.parameters:
                getattr(whole, name)[start:stop] = getattr(part, name)
            start = stop
        if whole is None or start != n_rows:
            raise InvalidInputError(f"There are {start} rows, and {n_rows} are expected.")
        return whole

    def __getitem__(self, rows: Any) -> Self:
        if not self._shape:
            raise TypeError("The distribution of a single row cannot be indexed.")
        loc, scale = np.asarray(self.loc[rows]), np.asarray(self.scale[rows])
        return type(self).of_sorted(loc, scale, self.atoms[rows], self.masses[rows], self.mixture)

    def __repr__(self) -> str:
        rows = f"{len(self)} rows" if self._shape else "one row"
        weights = self.mixture.weights
        shares = f"normal {weights[0]:.3g}, errors {weights[1]:.3g}, atoms {weights[2]:.3g}"
        return f"<Stack: {rows}, {self.atoms.shape[-1]} atoms; {shares}>"

    def logpdf(self, y: ArrayLike) -> Floats:
        """Return the log density at y, of the smoothed mixture; −∞ outside the support."""
        x, shape = self._elements(y)
        return self._log_densities(x).reshape(shape)

    def cdf(self, y: ArrayLike) -> Floats:
        x, shape = self._elements(y)
        return self._tail_arrays(x)[0].reshape(shape)

    def sf(self, y: ArrayLike) -> Floats:
        """Return the probability of a value above y, exact in the upper tail."""
        x, shape = self._elements(y)
        return self._tail_arrays(x)[1].reshape(shape)

    def ppf(self, q: ArrayLike) -> Floats:
        """Return the smallest value y with a probability of at least q for values up to y."""
        p, shape = self._elements(q)
        if ((p < 0) | (p > 1)).any():
            raise InvalidInputError("A probability must be from 0 to 1.")
        return self._quantile(p, 1 - p).reshape(shape)

    def _central(self, confidence: float) -> tuple[Floats, Floats]:
        below = np.empty((self.loc.size, 2))
        below[:] = (1 - confidence) / 2, (1 + confidence) / 2
        ends = self._quantile(below, 1 - below)
        return ends[:, 0].reshape(self._shape), ends[:, 1].reshape(self._shape)

    def normal_score(self, y: ArrayLike) -> Floats:
        """Return Φ⁻¹(F(y)), finite for every finite y inside the support as long as the normal part has a weight."""
        x, shape = self._elements(y)
        lower, upper = self.mixture.support
        return self._score(x, *self._tail_arrays(x), (x >= lower) & (x < upper)).reshape(shape)

    def moved_logpdf(self, y: ArrayLike, move: Move) -> Floats:
        x, shape = self._elements(y)
        batch = self if self._shape else type(self).of_sorted(*self._rows(), self.mixture)
        return _moved_log_density(batch, x, move).reshape(shape)

    def kernel_logpdf(self, places: Floats, masses: Floats, bandwidth: float, x: Floats, *, tailed: bool) -> Floats:
        """Return the log densities of kernels in place of the stacks, (n, m).

        Parameters
        ----------
        places, masses : ndarray of shape (n, j)
            Where the kernels are, ascending in each row, and their relative masses.
        bandwidth : float
            Their width, relative to the scale of the row.
        x : ndarray of shape (n, m)
            The values.
        tailed : bool
            Whether they are the kernels of errors, or those of atoms.
        """
        mixture = replace(self.mixture, weights=np.array([0.0, 0.0, 1.0]), bandwidth=bandwidth)
        kernels = type(self).of_sorted(self.loc, self.scale, places, masses.astype(np.float32), mixture)
        return kernels._log_densities(np.ascontiguousarray(x), tailed=tailed)

    def middle_score(self, y: ArrayLike) -> Floats:
        """Return the normal score of the middle of the jump at y, Φ⁻¹((F(y−) + F(y))/2)."""
        x, shape = self._elements(y)
        at, before = self._tail_arrays(x), self._tail_arrays(np.nextafter(x, -np.inf))
        below, above = ((one + other) / 2 for one, other in zip(at, before, strict=True))
        lower, upper = self.mixture.support
        return self._score(x, below, above, (x >= lower) & (x <= upper), halved=True).reshape(shape)

    def from_normal_score(self, w: ArrayLike) -> Floats:
        """Return the value whose normal score is w, finite where w is as long as the normal part has a weight."""
        score, shape = self._elements(w)
        out = self._quantile(np.asarray(ndtr(score)), np.asarray(ndtr(-score)))
        deep = (ndtr(-np.abs(score)) < _LEAST_TAIL) & np.isfinite(score)
        if deep.any() and self.mixture.weights[0] > 0:
            out = np.where(deep, self._far(score), out)
        return out.reshape(shape)

    def jumps(self) -> Floats:
        """Return the values that have a probability of their own, (n, m): errors and atoms inside the support."""
        places = [self.atoms] if self.mixture.weights[2] > 0 else []
        if self.mixture.weights[1] > 0:
            places.append(self.loc[..., None] + self.scale[..., None] * self.mixture.errors)
        found = np.concatenate(places, axis=-1) if places else np.empty((*self._shape, 0))
        return np.asarray(np.clip(found, *self.mixture.support))

    def mean(self) -> Floats:
        """Return the means. They are another point prediction than the model's, and often a better one."""
        return self._moments()[0]

    def var(self) -> Floats:
        return np.square(self._moments()[1])

    def std(self) -> Floats:
        return self._moments()[1]

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score, ``E|X − y| − E|X − X'|/2``, in closed form."""
        x, shape = self._elements(y)
        out = np.empty(x.shape)
        self._batch().crps(x, 0, len(x), out)
        return out.reshape(shape)

    def _log_densities(self, x: Floats, *, tailed: bool = False) -> Floats:
        """Return the log densities at x, (n, m); with `tailed`, atoms have the kernels of errors."""
        out, mixture = np.empty(x.shape), self.mixture
        widths = mixture.error_bandwidth, mixture.bandwidth, mixture.least_bandwidth
        self._batch().log_densities(*widths, tailed, x, 0, len(x), out)
        return out

    def _batch(self) -> kernel.Mixtures:
        return kernel.Mixtures(*self._rows(), self.mixture.errors, self.mixture.weights, self.mixture.bounds)

    def _rows(self) -> tuple[Floats, Floats, Floats, Masses]:
        """Return the parameters as contiguous arrays of a batch, also for one row."""
        n, k, contiguous = self.loc.size, self.atoms.shape[-1], np.ascontiguousarray
        place, width = contiguous(self.loc.reshape(n)), contiguous(self.scale.reshape(n))
        return place, width, contiguous(self.atoms.reshape(n, k)), contiguous(self.masses.reshape(n, k))

    def _elements(self, argument: ArrayLike) -> tuple[Floats, tuple[int, ...]]:
        """Return an argument as (n, m), with n = 1 for the distribution of one row, and the shape of the result."""
        x = np.asarray(argument, np.float64)
        if not self._shape:
            return np.ascontiguousarray(x.reshape(1, -1)), x.shape
        self._check_argument(x)
        n = len(self)
        if n == 1:  # a row alone is to be fast
            return np.ascontiguousarray(x.reshape(1, -1)), (1,) if x.ndim < 2 else x.shape
        if x.ndim == 2:
            return np.ascontiguousarray(np.broadcast_to(x, (n, x.shape[1]))), (n, x.shape[1])
        return np.ascontiguousarray(np.broadcast_to(x, (n,)).reshape(n, 1)), (n,)

    def _tail_arrays(self, x: Floats) -> tuple[Floats, Floats]:
        below, above = np.empty(x.shape), np.empty(x.shape)
        self._batch().tails(x, 0, len(x), below, above)
        return below, above

    def _score(
        self, x: Floats, below: Floats, above: Floats, inside: NDArray[np.bool_], *, halved: bool = False
    ) -> Floats:
        """Return the normal scores at x, where these are the probabilities on both sides.

        Shapes: x, below, above (n, m); inside (n, m).
        """
        with np.errstate(divide="ignore"):
            log_below, log_above = np.log(below), np.log(above)
            log_weight = np.log(self.mixture.weights[0])
        deep = (np.minimum(below, above) < _LEAST_TAIL) & inside
        if deep.any():  # there only the normal part is left
            z = standardised(x, self.loc.reshape(-1, 1), self.scale.reshape(-1, 1))
            if halved:
                log_weight = log_weight - np.where(np.isin(x, self.mixture.support), np.log(2), 0.0)
            log_below = np.where(deep & (below < above), log_weight + log_ndtr(z), log_below)
            log_above = np.where(deep & (above < below), log_weight + log_ndtr(-z), log_above)
        return np.where(np.isinf(x), x, score_of_tails(log_below, log_above))

    def _quantile(self, below: Floats, above: Floats) -> Floats:
        out = np.empty(below.shape)
        self._batch().quantiles(below, above, 0, len(below), out)
        return out

    def _far(self, score: Floats) -> Floats:
        """Return the values with scores so far out that all jumps are nearer, or that the last of them is reached."""
        loc, scale = self.loc.reshape(-1, 1), self.scale.reshape(-1, 1)
        tail = score_of_log_tail(log_ndtr(-np.abs(score)) - np.log(self.mixture.weights[0]))
        low, high = self._ends()
        value = np.where(score < 0, np.minimum(loc + scale * tail, low), np.maximum(loc - scale * tail, high))
        return np.asarray(np.clip(value, *self.mixture.support))

    def _ends(self) -> tuple[Floats, Floats]:
        """Return the smallest and the largest jump of each row, (n, 1); ∞ and −∞ where there is none."""
        loc, scale, mixture = self.loc.reshape(-1, 1), self.scale.reshape(-1, 1), self.mixture
        low, high = np.full(loc.shape, np.inf), np.full(loc.shape, -np.inf)
        if mixture.weights[2] > 0:
            atoms, masses = self.atoms.reshape(len(loc), -1), self.masses.reshape(len(loc), -1)
            low = np.where(masses > 0, atoms, np.inf).min(axis=1, keepdims=True)
            high = np.where(masses > 0, atoms, -np.inf).max(axis=1, keepdims=True)
        if mixture.weights[1] > 0:
            low = np.minimum(low, loc + scale * mixture.errors[0])
            high = np.maximum(high, loc + scale * mixture.errors[-1])
        return low, high

    def _moments(self) -> tuple[Floats, Floats]:
        n = self.loc.size
        mean, deviation = np.empty(n), np.empty(n)
        self._batch().moments(0, n, mean, deviation)
        return mean.reshape(self._shape), deviation.reshape(self._shape)


def _moved_log_density(stack: Stack, x: Floats, move: Move) -> Floats:
    """Return the log density of stacks after a move, (n, m).

    F has jumps. Each of them gets the probability that it has after the move, and becomes a kernel as in ``Stack.pdf``;
    between them, the density of the normal part is changed by the move.

    Shapes: x (n, m).
    """
    mixture, (low, high) = stack.mixture, stack.mixture.support
    loc, scale = stack.loc[:, None], stack.scale[:, None]
    impossible = (x < low) | (x > high) | np.isinf(x)
    x = np.where(impossible, np.clip(loc, low, high), x)
    jumps = _jumps_of(stack)
    z = (jumps.places - loc) / scale
    normal = mixture.weights[0]
    masses = _moved_masses(jumps, normal * ndtr(z), normal * ndtr(-z), move, (low > -np.inf, high < np.inf))
    with np.errstate(divide="ignore"):
        log_normal = np.log(normal)
    z = np.clip((x - loc) / scale, -FARTHEST, FARTHEST)
    total = log_normal - 0.5 * np.square(z) - np.log(scale) - HALF_LOG_2PI
    total = np.where(np.isneginf(total), total, total + log_slope(move, stack.middle_score(x)))
    for errors, bandwidth in ((True, mixture.error_bandwidth), (False, mixture.bandwidth)):
        part = np.where(jumps.is_error == errors, masses, 0.0)
        share = part.sum(axis=1, keepdims=True)
        if (share > 0).any():
            part[share[:, 0] == 0] = 1.0  # of a row without such jumps: any, as their share is none
            found = stack.kernel_logpdf(jumps.places, part, bandwidth, x, tailed=errors)
            with np.errstate(divide="ignore"):
                total = np.logaddexp(total, np.log(share) + found)
    return np.where(impossible, -np.inf, total)


class _Jumps(NamedTuple):
    """The jumps of distribution functions, (n, j) each, ascending in each row."""

    places: Floats
    masses: Floats  # probabilities, without those of the normal part beyond the ends of the support
    is_error: NDArray[np.bool_]  # from pooled errors; the others are atoms, or ends of the support


def _jumps_of(stack: Stack) -> _Jumps:
    mixture, n = stack.mixture, len(stack)
    ends = [end for end in mixture.support if np.isfinite(end)]
    errors = stack.loc[:, None] + stack.scale[:, None] * mixture.errors
    share = stack.masses.astype(np.float64)
    share *= mixture.weights[2] / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    places = np.concatenate([np.tile(ends, (n, 1)), errors, stack.atoms], axis=1)
    each = mixture.weights[1] / max(errors.shape[1], 1)
    masses = np.concatenate([np.zeros((n, len(ends))), np.full(errors.shape, each), share], axis=1)
    is_error = np.zeros(places.shape, np.bool_)
    is_error[:, len(ends) : len(ends) + errors.shape[1]] = True
    places = np.clip(places, *mixture.support)
    order = np.argsort(places, axis=1, kind="stable")
    return _Jumps(*(np.take_along_axis(part, order, 1) for part in (places, masses, is_error)))


def _moved_masses(jumps: _Jumps, below: Floats, above: Floats, move: Move, bounded: tuple[bool, bool]) -> Floats:
    """Return the probabilities of the jumps after the move, (n, j). Shapes: below, above (n, j)."""
    up, down = np.cumsum(jumps.masses, axis=1), np.cumsum(jumps.masses[:, ::-1], axis=1)[:, ::-1]
    before = _scores(below + up - jumps.masses, above + down)
    after = _scores(below + up, above + down - jumps.masses)
    if bounded[0]:
        before[:, 0] = -np.inf
    if bounded[1]:
        after[:, -1] = np.inf
    first, last = move.inverse(before), move.inverse(after)
    moved = np.where(last < 0, ndtr(last) - ndtr(first), ndtr(-first) - ndtr(-last))
    return np.asarray(np.maximum(moved, 0.0))


def _scores(below: Floats, above: Floats) -> Floats:
    """Return the normal scores from the smaller one of both tails; rounding may have made it negative."""
    tail = ndtri(np.clip(np.minimum(below, above), 0.0, 0.5))
    return np.asarray(np.where(below < above, tail, -tail))
