"""Experts on a row: the model's view, pooled errors, and the neighbours' view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._compiled import stack as kernel
from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug._weights import effective_rows, mean, quantile
from ibug._weights import mean as average
from ibug.distributions import DiscreteSupport
from ibug.exceptions import InvalidInputError

Table = tuple[NDArray[np.int64], Floats]  # k and sharpness of each expert

_MOST = 100_000


@dataclass(frozen=True)
class Nearest:
    """An expert on neighbours: the k nearest, each with a weight ∝ exp(sharpness · affinity).

    Parameters
    ----------
    k : int
        The number of neighbours.
    sharpness : float
        How fast weights fall with the affinity, which is a share of the trees; 0 means equal weights.
    """

    k: int
    sharpness: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.k <= _MOST or not 0 <= self.sharpness < np.inf:
            raise InvalidInputError(
                f"An expert needs k of at least 1 and a finite sharpness of at least 0; got {self}."
            )

    def name(self, of: str) -> str:
        """Return the expert's name."""
        return f"{of} of {self.k}" + (f", by affinity ({self.sharpness:g})" if self.sharpness else "")


@dataclass(frozen=True)
class Experts:
    """The experts of a stack: the normal one first, then pooled errors, neighbours' targets, neighbours' residuals.

    Parameters
    ----------
    targets : tuple of Nearest
        Experts on the neighbours' targets as they are.
    residuals : tuple of Nearest
        Experts on the prediction plus the neighbours' honest residuals; none where there are no such residuals.
    errors : bool
        Whether the pooled errors of the validation rows are an expert.
    """

    targets: tuple[Nearest, ...] = (Nearest(3), Nearest(9), Nearest(63), Nearest(63, 15.0), Nearest(63, 50.0))
    residuals: tuple[Nearest, ...] = (Nearest(21, 5.0),)
    errors: bool = True

    def __len__(self) -> int:
        return 1 + self.errors + len(self.targets) + len(self.residuals)

    def without_residuals(self) -> Experts:
        """Return the experts that need no residuals."""
        return Experts(self.targets, (), self.errors)

    def up_to(self, most: int) -> Experts:
        """Return the experts that ask at most this many neighbours; those that become equal are one."""
        targets, residuals = (
            tuple(dict.fromkeys(replace(expert, k=min(expert.k, most)) for expert in experts))
            for experts in (self.targets, self.residuals)
        )
        return Experts(targets, residuals, self.errors)

    def scaled(self, factor: float, most: int = _MOST) -> Experts:
        """Return as many experts that ask this many times as many neighbours, `most` at most."""
        targets, residuals = (
            tuple(replace(expert, k=min(scaled_k(expert.k, factor), most)) for expert in experts)
            for experts in (self.targets, self.residuals)
        )
        return Experts(targets, residuals, self.errors)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each expert."""
        own = ("normal", "errors") if self.errors else ("normal",)
        on_targets = tuple(expert.name("targets") for expert in self.targets)
        return own + on_targets + tuple(expert.name("residuals") for expert in self.residuals)

    @property
    def k(self) -> tuple[int, ...]:
        """The number of neighbours that each expert asks; 0 for those that ask the model."""
        return (0,) * (1 + self.errors) + tuple(expert.k for expert in self.targets + self.residuals)

    @read_only_property
    def needs(self) -> Mapping[str, int]:
        """The largest number of neighbours of which targets and residuals are needed."""
        found = {"targets": self.targets, "residuals": self.residuals}
        return {name: max((one.k for one in each), default=0) for name, each in found.items()}

    @read_only_property
    def on_targets(self) -> Table:
        """The experts on targets as arrays."""
        return _table(self.targets)

    @read_only_property
    def on_residuals(self) -> Table:
        """The experts on residuals as arrays."""
        return _table(self.residuals)

    def state(self) -> dict[str, Any]:
        """Return plain values that `from_state` takes."""
        return {
            "targets": [[expert.k, expert.sharpness] for expert in self.targets],
            "residuals": [[expert.k, expert.sharpness] for expert in self.residuals],
            "errors": self.errors,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Experts:
        """Return the experts that have this state."""
        targets, residuals = (
            tuple(Nearest(int(k), float(sharpness)) for k, sharpness in state[name])
            for name in ("targets", "residuals")
        )
        return cls(targets, residuals, bool(state["errors"]))


def scaled_k(k: int, factor: float) -> int:
    """Return the number of neighbours that is nearest to this many times k, at least one."""
    return max(1, int(np.floor(k * factor + 0.5)))


def _table(experts: tuple[Nearest, ...]) -> Table:
    return np.array([expert.k for expert in experts], np.int64), np.array(
        [expert.sharpness for expert in experts], float
    )


#: Targets that take more values than this count as continuous.
MOST_VALUES = 4096


def resolution(targets: ArrayLike) -> float:
    """Return the median distance from a row's target to the nearest different one; 0 if all are the same.

    For whole numbers it is 1 even if a few are far apart; for a continuous target it is about as small as the distances
    of neighbouring values, too small to matter.

    Shapes: targets (n,).
    """
    values, counts = np.unique(np.asarray(targets, np.float64), return_counts=True)
    if len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    nearest = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    order = np.argsort(nearest)
    middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)
    return float(nearest[order][middle])


def values_taken(y: Floats, others: Floats) -> Floats:
    """Return the values of a target that takes few, ascending: grades, counts, readings of a scale. None otherwise.

    A target takes few values if at least half of the rows share theirs with another row. Rows with the most frequent
    value are left out of this: amounts of which many are zero are continuous all the same.

    Shapes: y (n,).
    """
    counts = np.sort(np.unique(y, return_counts=True)[1])[:-1]
    if len(counts) == 0 or 2 * counts[counts > 1].sum() < counts.sum():
        return np.empty(0)
    values = np.unique(np.append(y, others))
    return values if len(values) <= MOST_VALUES else np.empty(0)


#: The largest number of pooled errors; more are represented by their quantiles.
MOST_ERRORS = 127
_NARROWEST = 0.05  # of the kernels of pooled errors, in scales


@dataclass(frozen=True)
class Pooled:
    """What all rows share, except for weights and bandwidth.

    Parameters
    ----------
    errors : ndarray of shape (n_errors,)
        Standardised errors, ascending.
    error_bandwidth : float
        The width of their kernels.
    resolution : float
        The distance of two values of the target; see :func:`resolution`.
    support : pair of float
        The bounds of the target.
    values : ndarray of shape (n_values,)
        The values of the target, ascending, where it takes few.
    """

    errors: Floats
    error_bandwidth: float = 0.25
    resolution: float = 0.0
    support: tuple[float, float] = (-np.inf, np.inf)
    values: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def least_bandwidth(self) -> float:
        """The narrowest width of a kernel, in the unit of the target."""
        return max(self.resolution / float(np.sqrt(2 * np.pi)), float(np.finfo(float).tiny))

    @read_only_property
    def grid(self) -> DiscreteSupport:
        """The values of the target, to which predictions plus residuals are moved."""
        return DiscreteSupport(self.values, self.resolution or 1.0)

    def state(self) -> dict[str, Any]:
        """Return plain values and an array that `from_state` takes."""
        return {
            "errors": self.errors,
            "error_bandwidth": self.error_bandwidth,
            "resolution": self.resolution,
            "support": list(self.support),
            "values": self.values,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Pooled:
        """Return what has this state."""
        lower, upper = (float(bound) for bound in state["support"])
        errors = np.asarray(state["errors"], np.float64)
        values = np.asarray(state.get("values", []), np.float64)  # which older files have not
        if values.ndim != 1 or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise InvalidInputError("The values of a target must be finite numbers that ascend.")
        return cls(errors, float(state["error_bandwidth"]), float(state["resolution"]), (lower, upper), values)


def pool(
    mean: Floats,
    scale: Floats,
    y: Floats,
    weights: Floats | None = None,
    *,
    resolution: float = 0.0,
    support: tuple[float, float] = (-np.inf, np.inf),
    values: Floats | None = None,
) -> Pooled:
    """Return the pooled errors (y − mean)/scale of the validation rows.

    Up to 127 errors are kept as they are, more of them as 127 quantiles at (i + ½)/127. The width of their kernels
    for a density is 0.9 n^(−1/5) times the smaller one of standard deviation and interquartile range/1.349 (Silverman).

    Shapes: mean, scale, y (n,); weights (n,); values (n_values,).
    """
    values = np.empty(0) if values is None else values
    unsorted = (y - mean) / scale
    errors = np.sort(unsorted)
    if not np.isfinite(errors).all():
        raise InvalidInputError("Errors can be pooled only where predictions, scales and targets are finite numbers.")
    if len(errors) == 0:
        return Pooled(errors, resolution=resolution, support=support, values=values)
    n = effective_rows(weights, len(errors))
    quartiles = quantile(unsorted, [0.25, 0.75], weights)
    deviation = float(np.sqrt(average(np.square(unsorted - average(unsorted, weights)), weights)))
    widths = [width for width in (deviation, float(quartiles[1] - quartiles[0]) / 1.349) if width > 0]
    bandwidth = max(0.9 * min(widths, default=0.0) * n**-0.2, _NARROWEST)
    if len(errors) > MOST_ERRORS or weights is not None:
        errors = quantile(unsorted, (np.arange(MOST_ERRORS) + 0.5) / MOST_ERRORS, weights)
    return Pooled(errors, bandwidth, resolution, support, values)


#: The widths of the kernels on atoms that are tried, relative to the scale of a row.
BANDWIDTHS = np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 1.0])


@dataclass(frozen=True)
class Evidence:
    """What experts look at: the model's view of rows, and the neighbours', nearest first.

    Parameters
    ----------
    mean, scale : ndarray of shape (n,)
        Predictions, and the standard deviations of the normal expert.
    targets : ndarray of shape (n, k)
        The neighbours' targets.
    shares : ndarray of shape (n, k)
        Their affinities, as shares of the trees.
    residuals : ndarray of shape (n, k) or None
        Their honest residuals; None where there are none.
    weights : ndarray of shape (n, k) or None
        What each of them counts for, above zero; None where they count alike.
    """

    mean: Floats
    scale: Floats
    targets: Floats
    shares: Floats
    residuals: Floats | None = None
    weights: Floats | None = None

    def arrays(self, experts: Experts, grid: DiscreteSupport) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return what the compiled functions take, no wider than needed.

        These are predictions, neighbours' targets, predictions plus neighbours' residuals, shares and weights.
        """
        needs, n = experts.needs, len(self.mean)
        residuals = self.residuals
        if residuals is None:
            if experts.residuals:
                raise InvalidInputError("Experts on residuals need the neighbours' residuals.")
            residuals = np.empty((n, 0))
        targets, residuals = self.targets[:, : needs["targets"]], residuals[:, : needs["residuals"]]
        k = max(targets.shape[1], residuals.shape[1])
        weights = np.empty((n, 0)) if self.weights is None else self.weights[:, :k]
        moved = grid.nearest(self.mean[:, None] + residuals) if residuals.size else residuals
        given = self.mean, targets, moved, self.shares[:, :k], weights
        parts = tuple(np.ascontiguousarray(part, np.float64) for part in given)
        if not kernel.all_finite(parts[0], *parts[1:]):
            raise InvalidInputError("A stack needs finite predictions, targets, residuals, affinities and weights.")
        return parts[0], parts[1], parts[2], parts[3], parts[4]


@dataclass(frozen=True)
class ExpertStatistics:
    """The statistics of validation rows, which are joined in the order of the rows.

    Parameters
    ----------
    to_target : ndarray of shape (n, J)
        E|Xⱼ − y| of each expert.
    to_each_other : ndarray of shape (n, J(J + 1)/2)
        E|Xⱼ − Xₖ| for k ≤ j, row after row of the lower triangle.
    log_density : ndarray of shape (n, n_bandwidths, J)
        The log densities of the smoothed experts at y.
    weights : ndarray of shape (n,) or None
        Of the rows; None where they count alike.
    """

    to_target: Floats
    to_each_other: Floats
    log_density: Floats
    weights: Floats | None = None

    @property
    def n_rows(self) -> float:
        """The number of rows, as far as they count."""
        return effective_rows(self.weights, len(self))

    def __len__(self) -> int:
        return len(self.to_target)

    @classmethod
    def of(cls, experts: Experts, pooled: Pooled, evidence: Evidence, y: Floats) -> ExpertStatistics:
        """Compute the statistics of rows. Shapes: y (n,)."""
        n, j = len(evidence.mean), len(experts)
        y, scale = (np.ascontiguousarray(part, np.float64) for part in (y, evidence.scale))
        if not (np.isfinite(y).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InvalidInputError("A stack needs finite targets and finite scales above zero.")
        errors = pooled.errors if experts.errors else np.empty(0)
        if experts.errors and len(errors) == 0:
            raise InvalidInputError("An expert on errors needs pooled errors.")
        out = np.empty((n, j)), np.empty((n, j * (j + 1) // 2)), np.empty((n, len(BANDWIDTHS), j))
        kernel.compare(
            *evidence.arrays(experts, pooled.grid),
            *experts.on_targets,
            *experts.on_residuals,
            scale,
            y,
            errors,
            BANDWIDTHS,
            pooled.error_bandwidth,
            pooled.least_bandwidth,
            np.array(pooled.support),
            0,
            n,
            *out,
        )
        return cls(*out)

    @classmethod
    def concatenate(cls, parts: Sequence[ExpertStatistics]) -> ExpertStatistics:
        """Join the statistics of partitions, in the order of their rows."""
        names = ("to_target", "to_each_other", "log_density")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def means(self) -> tuple[Floats, Floats]:
        """Return the mean distances to targets, (J,), and to each other, (J, J)."""
        j = self.to_target.shape[1]
        pairs = np.zeros((j, j))
        rows, columns = np.tril_indices(j)
        pairs[rows, columns] = pairs[columns, rows] = self._mean(self.to_each_other)
        return self._mean(self.to_target), pairs

    def _mean(self, values: Floats) -> Floats:
        if self.weights is None:
            return np.asarray(values.sum(axis=0) / len(self))
        return np.asarray(mean(values, self.weights))
