"""Joint stacks: mixtures of a model's view of all targets of a row and of the values of the row's neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ibug._compiled import stack as kernel
from ibug._typing import Floats
from ibug.distributions._stack import MixtureParams, Stack
from ibug.distributions.joint._conditional import conditional_stack, kernel_factor
from ibug.distributions.joint._neighborhood import Neighborhood
from ibug.distributions.joint._params import JointMixtureParams, copula_points, matrix_roots
from ibug.exceptions import InvalidInputError


def mean_distances(points: Floats, weights: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return E|X − y| of each measure on a row's points, and E|X − X'| of each two of them.

    Shapes: points (n, m, d); weights (n, J, m); y (n, d); to_target (n, J); to_each_other (n, J, J).
    """
    n, j = weights.shape[:2]
    to_target, to_each_other = np.empty((n, j)), np.empty((n, j, j))
    places, masses, values = (np.ascontiguousarray(part, np.float64) for part in (points, weights, y))
    kernel.mean_distances(places, masses, values, 0, n, to_target, to_each_other)
    return to_target, to_each_other


def variogram(points: Floats, weights: Floats, y: Floats, p: float) -> Floats:
    """Return Σᵢ<ⱼ (|yᵢ − yⱼ|ᵖ − E|Xᵢ − Xⱼ|ᵖ)² over pairs of targets, (n,).

    Shapes: points (n, m, d); weights (n, m); y (n, d).
    """
    total = np.zeros(len(points))
    d = y.shape[1]
    for i in range(d):
        for j in range(i + 1, d):
            expected = np.sum(weights * np.abs(points[:, :, i] - points[:, :, j]) ** p, axis=1)
            total += np.square(np.abs(y[:, i] - y[:, j]) ** p - expected)
    return total


# Rows whose points are made at a time: 128 points, 127 errors and 84 neighbours of 6 targets are 16 KB.
_ROWS_PER_CHUNK = 512


class JointStack:
    r"""Joint distributions of d targets: mixtures of a model's view of them and of the values of the row's neighbours.

    The distribution of row i is

    .. math:: w_0 C(F_{i1}, …, F_{id}) + w_1 \mathcal N(\mu_i, D_i R D_i)
              + \frac{w_2}{J} \sum_j \delta_{\mu_i + D_i e_j} + w_3 \sum_r m_{ir} \delta_{x_{ir}}:

    each target's own distribution F, coupled by a Gaussian copula C; a normal one; pooled error vectors e; and the
    neighbours' vectors x, with D_i the diagonal matrix of the scales. A neighbour's vector is the targets of one
    training row, all together, or the prediction plus its out-of-sample residuals: dependence is that of the
    neighbours. ``marginal(j)`` is the :class:`~ibug.distributions.Stack` of a target. ``mean``, ``var``, ``interval``,
    ``ppf`` and samples are exact. For distances, and for covariances within the copula, 128 fixed points stand for a
    continuous part.

    A row takes what the one-target distributions take, 8 bytes for each neighbour, which are kept by their numbers, and
    8 d² bytes where rows have copulas of their own.

    Parameters
    ----------
    loc, scale : ndarray of shape (n, d)
        Predictions μ, and scales above zero.
    neighbors : Neighborhood
        The neighbours, and the values that training rows have.
    own : tuple of Stack
        The targets' own distributions, d of them.
    mixture : JointMixtureParams
        What all rows share: weights, errors, correlations.
    copulas : ndarray of shape (n, d, d), optional
        The correlations of each row's copula, in place of that of the mixture.
    """

    def __init__(
        self,
        loc: Floats,
        scale: Floats,
        neighbors: Neighborhood,
        own: tuple[Stack, ...],
        mixture: JointMixtureParams,
        copulas: Floats | None = None,
    ) -> None:
        self.loc, self.scale, self.neighbors, self.own, self.mixture = loc, scale, neighbors, own, mixture
        self.copulas = copulas
        self._single = False  # whether it is the distribution of one row

    @classmethod
    def concatenate(cls, distributions: Sequence[Self]) -> Self:
        """Join stacks of one rule to one."""
        first = distributions[0]
        if len(distributions) == 1:
            return first
        near = [one.neighbors for one in distributions]
        same = all(one.targets is near[0].targets and one.residuals is near[0].residuals for one in near)
        same = same and len({one.copulas is None for one in distributions}) == 1
        if not same or any(not first.mixture.equals(one.mixture) for one in distributions):
            raise InvalidInputError("Joint stacks of different models or rules cannot be joined.")
        loc, scale = (np.concatenate([getattr(one, name) for one in distributions]) for name in ("loc", "scale"))
        rows, masses = (np.concatenate([getattr(one, name) for one in near]) for name in ("rows", "masses"))
        joined = replace(near[0], rows=rows, masses=masses)
        own = tuple(Stack.concatenate(parts) for parts in zip(*(one.own for one in distributions), strict=True))
        copulas = [one.copulas for one in distributions if one.copulas is not None]
        return cls(loc, scale, joined, own, first.mixture, np.concatenate(copulas) if copulas else None)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, d)`` for n rows, ``(d,)`` for the distribution of one row."""
        return self.loc.shape[1:] if self._single else self.loc.shape

    @property
    def n_targets(self) -> int:
        """The number of targets, d."""
        return int(self.loc.shape[1])

    def __len__(self) -> int:
        if self._single:
            raise TypeError("The distribution of a single row has no length.")
        return len(self.loc)

    def __getitem__(self, rows: Any) -> Self:
        if self._single:
            raise TypeError("The distribution of a single row cannot be indexed.")
        single = isinstance(rows, (int, np.integer))
        if single:
            if not -len(self) <= rows < len(self):
                raise IndexError(f"There are {len(self)} rows; got the number {rows}.")
            rows = np.array([rows])
        some = self._some(rows)
        some._single = single
        return some

    def _some(self, rows: Any) -> Self:
        own = tuple(one[rows] for one in self.own)
        copulas = None if self.copulas is None else self.copulas[rows]
        return type(self)(self.loc[rows], self.scale[rows], self.neighbors[rows], own, self.mixture, copulas)

    def __repr__(self) -> str:
        rows = "one row" if self._single else f"{len(self)} rows"
        weights = self.mixture.weights
        names = ("own", "normal", "errors", "neighbours")
        shares = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(names, weights, strict=True))
        return f"<JointStack: {rows}, {self.n_targets} targets; {shares}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # so that hasattr(d, "cdf") is False
            raise no_attribute(name)

    def __getstate__(self) -> dict[str, Any]:
        # A pickle of some rows needs their neighbours' values, not those of all training rows.
        return {**self.__dict__, "neighbors": self.neighbors.own()}

    def marginal(self, target: int) -> Stack:
        """Return the distributions of one target, with all that a one-target distribution offers.

        Parameters
        ----------
        target : int
            The number of the target, from 0.
        """
        j = self._target(target)
        own, mixture = self.own[j], self.mixture
        apart = mixture.weights[0] * mixture.own[j].weights[2]
        parts = [(own.atoms, _shared(own.masses, apart))] if apart > 0 else []
        if mixture.weights[3] > 0:
            parts.append((self.neighbors.atoms(self.loc, j), _shared(self.neighbors.masses, mixture.weights[3])))
        atoms = np.concatenate([part[0] for part in parts], axis=1) if parts else np.empty((len(self.loc), 0))
        masses = np.concatenate([part[1] for part in parts], axis=1) if parts else np.empty((len(self.loc), 0))
        stack = Stack(self.loc[:, j], self.scale[:, j], atoms, masses, mixture.marginals[j])
        return stack[0] if self._single else stack

    def marginals(self) -> list[Stack]:
        """Return the distributions of all targets, one after the other."""
        return [self.marginal(j) for j in range(self.n_targets)]

    def conditional(self, target: int, given: Mapping[int, ArrayLike]) -> Stack:
        """Return the distributions of one target once the values of others are known.

        By Bayes: each component has a density at the given values, which changes its share, and a distribution of the
        target given them. The copula moves the normal scores of the target's own distribution; the normal part stays
        normal; error vectors and neighbours' vectors count by kernels around the given values, whose width has the best
        CRPS of errors that predict each other. Where a given value is far from everything, vectors count by their
        masses, and the copula takes it as 4 normal scores.

        All but a hundredth are points, 128 of them for a continuous part; that hundredth is the normal part and the
        errors, so that tails have no end. A row takes up to 5 KB. If the normal part has all the weight, the result is
        normal and exact.

        Parameters
        ----------
        target : int
            The number of the target, from 0.
        given : mapping of int to array-like of shape (n,) or scalar
            The known values by the number of their target. Without any, the result is `marginal`.
        """
        if not isinstance(given, Mapping):
            raise InvalidInputError(f"Known values are given by their target, as {{0: values}}; got {given!r:.100}.")
        j = self._target(target)
        known = {self._target(number): values for number, values in given.items()}
        if len(known) < len(given) or j in known:
            raise InvalidInputError(f"Other targets than {j} can be given, each once; got {list(given)}.")
        if not known:
            return self.marginal(j)
        shape, n = self.shape[:-1], len(self.loc)
        columns = []
        for number, values in known.items():
            column = np.asarray(values, np.float64)
            if column.shape not in ((), shape):
                raise InvalidInputError(
                    f"The values of target {number} must be one number or an array of shape {shape}; got the shape "
                    f"{column.shape}."
                )
            if not np.isfinite(column).all():
                raise InvalidInputError(
                    f"The values of target {number} must be finite; NaN or infinite: {np.sum(~np.isfinite(column))}. "
                    "Ask for the rows whose values are known, as d[rows]."
                )
            columns.append(np.broadcast_to(column, (n,)))
        y = np.stack(columns, axis=1)
        factor = kernel_factor(self.mixture, j, list(known))
        parts = [conditional_stack(self._some(rows), j, list(known), y[rows], factor) for rows in self._chunks()]
        stack = Stack.concatenate(parts) if parts else self.marginal(j)
        return stack[0] if self._single else stack

    def mean(self) -> Floats:
        """Return the means, (n, d)."""
        return self._each(lambda one: one.mean())

    def var(self) -> Floats:
        """Return the variances, (n, d): the diagonals of `cov`."""
        return self._each(lambda one: one.var())

    def std(self) -> Floats:
        """Return the standard deviations, (n, d)."""
        return self._each(lambda one: one.std())

    def median(self) -> Floats:
        """Return the medians of the targets, each by itself, (n, d)."""
        return self._each(lambda one: one.median())

    def cov(self) -> Floats:
        """Return the covariances of the targets, (n, d, d)."""
        n, d = self.loc.shape
        out, mixture = np.empty((n, d, d)), self.mixture
        apart, normal, errors, atoms = mixture.weights
        middle = mixture.errors.mean(axis=0) if len(mixture.errors) else np.zeros(d)
        away = mixture.errors - middle
        spread = away.T @ away / max(1, len(mixture.errors))
        for rows in self._chunks():
            loc, scale, near = self.loc[rows], self.scale[rows], self.neighbors[rows]
            sizes = scale[:, :, None] * scale[:, None, :]
            if mixture.bounds is None:
                parts = [(normal, loc, sizes * mixture.correlation), (errors, loc + scale * middle, sizes * spread)]
            else:
                parts = [(normal, *self._normal_moments(rows))]
            if mixture.bounds is not None and len(mixture.errors):
                points = mixture.inside(loc[:, None] + scale[:, None] * mixture.errors)
                parts.append((errors, *_moments(points, np.full(points.shape[:2], 1 / len(mixture.errors)))))
            if atoms > 0:
                parts.append((atoms, *_moments(mixture.inside(near.atoms(loc)), _shared(near.masses, 1.0))))
            if apart > 0:
                parts.append((apart, *_coupled([one[rows] for one in self.own], self._own_points(rows))))
            mean = sum(weight * center for weight, center, _ in parts)
            found = np.zeros((len(loc), d, d))
            for weight, center, within in parts:
                step = center - mean
                found += weight * (within + step[:, :, None] * step[:, None, :])
            out[rows] = found
        return out[0] if self._single else out

    def _normal_moments(self, rows: slice) -> tuple[Floats, Floats]:
        """Return means and covariances of the normal part inside the bounds; correlations are those of its points."""
        loc, scale, nothing = self.loc[rows], self.scale[rows], np.empty((len(self.loc[rows]), 0))
        bounded = [MixtureParams(np.array([1.0, 0.0, 0.0]), support=one.support) for one in self.mixture.own]
        parts = [Stack(loc[:, j], scale[:, j], nothing, nothing, one) for j, one in enumerate(bounded)]
        return _coupled(parts, self.mixture.inside(loc[:, None] + scale[:, None] * self.mixture.normal_points))

    def _own_points(self, rows: slice) -> Floats:
        """Return the points that stand for the targets' own distributions under the copula, (n, n_points, d)."""
        local = None if self.copulas is None else copula_points(self.copulas[rows])
        probabilities = self.mixture.copula_points[None] if local is None else local
        return np.stack([one[rows].ppf(probabilities[:, :, j]) for j, one in enumerate(self.own)], axis=2)

    def correlation(self) -> Floats:
        """Return the correlations of the targets, (n, d, d); 0 with a target that does not vary."""
        return _correlations(self.cov())

    def ppf(self, q: ArrayLike) -> Floats:
        """Return quantiles of the targets, each by itself: (n, d), or (n, d, m) for m probabilities.

        Parameters
        ----------
        q : float or array-like of shape (m,)
            Probabilities from 0 to 1.
        """
        p = np.asarray(q, np.float64)
        if p.ndim > 1:
            raise InvalidInputError(f"One probability is expected, or several in a list; got the shape {p.shape}.")
        return self._each(lambda one: one.ppf(p if p.ndim == 0 or self._single else p[None, :]))

    def interval(self, confidence: ArrayLike = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the central intervals of each target by itself, (n, d) each; (n, d, m) for m coverages.

        Parameters
        ----------
        confidence : float or array-like of shape (m,)
            The coverage of each interval, between 0 and 1; or several.
        """
        ends = [one.interval(confidence) for one in self.marginals()]
        axis = 0 if self._single else 1
        lower, upper = (np.stack(side, axis=axis) for side in zip(*ends, strict=True))
        return lower, upper

    def crps(self, y: ArrayLike) -> Floats:
        """Return the continuous ranked probability score of each target by itself, (n, d).

        Parameters
        ----------
        y : array-like of shape (n, d)
            The observed values.
        """
        values = self._observed(y)
        found = [one.crps(values[0, j] if self._single else values[:, j]) for j, one in enumerate(self.marginals())]
        return np.stack(found, axis=-1)

    def rvs(self, size: int | None = None, random_state: Any = None) -> Floats:
        """Draw samples of all targets together.

        Parameters
        ----------
        size : int or None
            Samples per row: ``None`` gives shape ``(n, d)``, a number m gives ``(m, n, d)``.
        random_state
            A seed, a ``RandomState``, a ``Generator``, or ``None``.
        """
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0):
            raise InvalidInputError(
                f"size must be None or one number m, for samples of shape (m, n, d); got {size!r}. Reshape what one "
                "number gives."
            )
        rng = random_state
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
        m, (n, d), mixture = 1 if size is None else size, self.loc.shape, self.mixture
        part = rng.choice(4, size=(m, n), p=mixture.weights)
        z = rng.standard_normal((m, n, d))
        out = self.loc + self.scale * (z @ mixture.roots[0].T)
        if mixture.weights[0] > 0:
            if self.copulas is None:
                scores = z @ mixture.roots[1].T
            else:
                scores = np.einsum("nij,mnj->mni", matrix_roots(self.copulas), z)
            for j, one in enumerate(self.own):
                drawn = one.from_normal_score(scores[:, :, j].T).T
                out[:, :, j] = np.where(part == 0, drawn, out[:, :, j])
        if len(mixture.errors):
            drawn = self.loc + self.scale * mixture.errors[rng.integers(len(mixture.errors), size=(m, n))]
            out[part == 2] = drawn[part == 2]
        if mixture.weights[3] > 0:
            draw, row = np.nonzero(part == 3)
            out[draw, row] = self._drawn_atoms(row, rng.random(len(row)))
        out = mixture.inside(out[:, 0] if self._single else out)
        return np.asarray(out[0] if size is None else out)

    def energy_score(self, y: ArrayLike) -> Floats:
        """Return the energy score ``E|X − y| − ½ E|X − X'|``, (n,), of targets in units of their training deviation.

        It generalises the CRPS to several targets: lower is better, and a proper score of the whole joint distribution.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The observed values.
        """
        values = self._observed(y) / self.mixture.unit
        out = np.empty(len(values))
        for rows, points, weights in self._points():
            to_target, to_itself = mean_distances(points, weights[:, None, :], values[rows])
            out[rows] = to_target[:, 0] - 0.5 * to_itself[:, 0, 0]
        return out[0] if self._single else out

    def variogram_score(self, y: ArrayLike, p: float = 0.5) -> Floats:
        """Return the variogram score ``Σ (|yᵢ − yⱼ|ᵖ − E|Xᵢ − Xⱼ|ᵖ)²`` over pairs of targets, (n,); lower is better.

        It reacts to wrong dependence between targets more than the energy score, and ignores a common shift. Targets
        are in units of their training deviation.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The observed values.
        p : float
            The power, above zero.
        """
        if not p > 0:
            raise InvalidInputError(f"The power of a variogram score must be above zero; got {p!r}.")
        values = self._observed(y) / self.mixture.unit
        out = np.empty(len(values))
        for rows, points, weights in self._points():
            out[rows] = variogram(points, weights, values[rows], p)
        return out[0] if self._single else out

    def _points(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield chunk after chunk: its rows, the points that stand for them in units, and their probabilities."""
        mixture, unit = self.mixture, self.mixture.unit
        apart, normal, errors, atoms = mixture.weights
        fixed = [(normal, mixture.normal_points), (errors, mixture.errors)]
        fixed = [(weight, points) for weight, points in fixed if weight > 0]
        for rows in self._chunks():
            loc, scale, near = self.loc[rows], self.scale[rows], self.neighbors[rows]
            parts = [(weight, mixture.inside(loc[:, None] + scale[:, None] * points)) for weight, points in fixed]
            if apart > 0:
                parts.append((apart, self._own_points(rows)))
            weights = [np.full(points.shape[:2], weight / points.shape[1]) for weight, points in parts]
            if atoms > 0:
                parts.append((atoms, mixture.inside(near.atoms(loc))))
                weights.append(_shared(near.masses, atoms))
            yield rows, np.concatenate([points for _, points in parts], axis=1) / unit, np.concatenate(weights, axis=1)

    def _chunks(self) -> Iterator[slice]:
        for start in range(0, len(self.loc), _ROWS_PER_CHUNK):
            yield slice(start, min(start + _ROWS_PER_CHUNK, len(self.loc)))

    def _drawn_atoms(self, rows: NDArray[np.intp], uniform: Floats) -> Floats:
        """Return one neighbour's vector for each of these rows, drawn by its mass, (n_drawn, d)."""
        out = np.empty((len(rows), self.n_targets))
        for start in range(0, len(rows), _ROWS_PER_CHUNK):
            some = rows[start : start + _ROWS_PER_CHUNK]
            near = self.neighbors[some]
            below = np.cumsum(near.masses, axis=1, dtype=np.float64)
            wanted = uniform[start : start + _ROWS_PER_CHUNK, None] * below[:, -1:]
            place = np.minimum((below <= wanted).sum(axis=1), below.shape[1] - 1)
            out[start : start + _ROWS_PER_CHUNK] = near.atoms(self.loc[some])[np.arange(len(some)), place]
        return out

    def _each(self, function: Any) -> Floats:
        found = [function(self.marginal(j)) for j in range(self.n_targets)]
        return np.stack(found, axis=0 if self._single else 1)

    def _observed(self, y: ArrayLike) -> Floats:
        values = np.asarray(y, np.float64)
        if values.shape != self.shape:
            raise InvalidInputError(
                f"Observed values of {self.n_targets} targets must have the shape {self.shape}; got {values.shape}."
            )
        return values[None] if self._single else values

    def _target(self, target: Any) -> int:
        d = self.n_targets
        if isinstance(target, bool) or not isinstance(target, (int, np.integer)) or not -d <= target < d:
            raise InvalidInputError(f"A target is named by its number, from 0 to {d - 1}; got {target!r}.")
        return int(target) % d


def _shared(masses: NDArray[np.float32], weight: float) -> Floats:
    """Return the masses of each row, (n, k), with this sum."""
    found = masses.astype(np.float64)
    return np.asarray(found * (weight / found.sum(axis=1, keepdims=True)))


def _coupled(parts: Sequence[Stack], points: Floats) -> tuple[Floats, Floats]:
    """Return means and covariances, (n, d, d), of d distributions with the correlations of points, (n, m, d)."""
    mean, deviation = (np.stack([getattr(one, name)() for one in parts], axis=1) for name in ("mean", "std"))
    away = points - points.mean(axis=1, keepdims=True)
    correlations = _correlations(away.transpose(0, 2, 1) @ away)
    return mean, correlations * deviation[:, :, None] * deviation[:, None, :]


def _correlations(cov: Floats) -> Floats:
    """Return the correlations that covariances have, (…, d, d); 0 with a target that does not vary."""
    deviation = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    size = deviation[..., :, None] * deviation[..., None, :]
    found: Floats = np.divide(cov, size, out=np.zeros_like(cov), where=size > 0)
    places = np.arange(cov.shape[-1])
    found[..., places, places] = 1.0
    return found


def _moments(points: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Return means, (n, d), and covariances, (n, d, d), of weighted points, (n, m, d), whose masses sum to 1."""
    mean = (masses[:, None, :] @ points)[:, 0]
    away = points - mean[:, None, :]
    return mean, (away * masses[:, :, None]).transpose(0, 2, 1) @ away


_OF_ONE_TARGET = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "isf")


def no_attribute(name: str) -> AttributeError:
    """Return the error of an attribute that a JointStack does not have: densities, say, which one target has."""
    if name not in _OF_ONE_TARGET:
        return AttributeError(f"'JointStack' object has no attribute {name!r}")
    return AttributeError(
        f"A JointStack has no {name}: density and distribution function of all targets together are not offered. Use "
        f"marginal(j).{name} for one target, conditional(j, given) for one once others are known, and energy_score(y) "
        "to score all together."
    )
