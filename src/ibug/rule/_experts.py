"""Experts on a row: the model's view, pooled errors, and the neighbours' view; and how near they are to targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibug._compiled import stack as kernel
from ibug._read_only import read_only_property
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_mean, weighted_quantile
from ibug.distributions import DiscreteSupport
from ibug.exceptions import InvalidInputError

_MOST = 100_000

#: Targets that take more values than this count as continuous.
MOST_VALUES = 4096
#: The largest number of pooled errors; more are represented by their quantiles.
MOST_ERRORS = 127
_NARROWEST = 0.05  # of the kernels of pooled errors, in scales
#: The widths of the kernels on atoms that are tried, relative to the scale of a row.
BANDWIDTHS = np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 1.0])


@dataclass(frozen=True)
class Nearest:
    """An expert on the k nearest, each with a weight ∝ exp(sharpness · affinity), a share of the trees."""

    k: int
    sharpness: float = 0.0  # 0 means equal weights

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
    """The experts of a stack: the normal one first, then pooled errors, neighbours' targets, neighbours' residuals."""

    targets: tuple[Nearest, ...] = (Nearest(3), Nearest(9), Nearest(63), Nearest(63, 15.0), Nearest(63, 50.0))
    residuals: tuple[Nearest, ...] = (Nearest(21, 5.0),)  # on the prediction plus residuals
    errors: bool = True  # whether the pooled errors of the validation rows are an expert

    def __len__(self) -> int:
        return self.n_general + len(self.targets) + len(self.residuals)

    @property
    def n_general(self) -> int:
        """The number of experts that look at no neighbours: the first ones."""
        return 1 + self.errors

    def without_residuals(self) -> Experts:
        """Return the experts that need no residuals."""
        return replace(self, residuals=())

    def distinct(self) -> Experts:
        """Return the experts, equal ones once."""
        return replace(self, targets=tuple(dict.fromkeys(self.targets)), residuals=tuple(dict.fromkeys(self.residuals)))

    def scaled(self, factor: float, most: int = _MOST) -> Experts:
        """Return as many experts that ask this many times as many neighbours, `most` at most."""

        def more(experts: tuple[Nearest, ...]) -> tuple[Nearest, ...]:
            return tuple(replace(expert, k=min(scaled_k(expert.k, factor), most)) for expert in experts)

        return replace(self, targets=more(self.targets), residuals=more(self.residuals))

    def active(self, weights: Floats) -> tuple[Experts, Floats, Floats]:
        """Return the experts on neighbours with a weight above zero, and these weights. Shapes: weights (J,)."""
        middle = self.n_general + len(self.targets)
        on_targets, on_residuals = weights[self.n_general : middle], weights[middle:]
        targets, residuals = (
            tuple(one for one, weight in zip(experts, own, strict=True) if weight > 0)
            for experts, own in ((self.targets, on_targets), (self.residuals, on_residuals))
        )
        experts = Experts(targets, residuals, self.errors)
        return experts, on_targets[on_targets > 0], on_residuals[on_residuals > 0]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each expert."""
        own = ("normal", "errors") if self.errors else ("normal",)
        on_targets = tuple(expert.name("targets") for expert in self.targets)
        return own + on_targets + tuple(expert.name("residuals") for expert in self.residuals)

    @property
    def k(self) -> tuple[int, ...]:
        """The number of neighbours that each expert asks; 0 for those that ask the model."""
        return (0,) * self.n_general + tuple(expert.k for expert in self.targets + self.residuals)

    @read_only_property
    def needs(self) -> Mapping[str, int]:
        """The largest number of neighbours of which targets and residuals are needed."""
        found = {"targets": self.targets, "residuals": self.residuals}
        return {name: max((one.k for one in each), default=0) for name, each in found.items()}

    @read_only_property
    def arrays(self) -> tuple[tuple[NDArray[np.int64], Floats], ...]:
        """K and sharpness of the experts on targets, and of those on residuals, as the compiled functions take them."""
        return tuple(
            (np.array([one.k for one in each], np.int64), np.array([one.sharpness for one in each], np.float64))
            for each in (self.targets, self.residuals)
        )

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

        def given(name: str) -> tuple[Nearest, ...]:
            return tuple(Nearest(int(k), float(sharpness)) for k, sharpness in state[name])

        return cls(given("targets"), given("residuals"), bool(state["errors"]))


def scaled_k(k: int, factor: float) -> int:
    """Return the number of neighbours that is nearest to this many times k, at least one."""
    return max(1, int(np.floor(k * factor + 0.5)))


def checked_weights(state: Mapping[str, Any], n: int) -> tuple[Floats, Floats]:
    """Return the weights and scores of n experts from a stored state; impossible ones are refused."""
    weights, scores = (np.asarray(state[name], np.float64) for name in ("weights", "scores"))
    if weights.shape != (n,) or scores.shape != weights.shape:
        raise InvalidInputError(f"A stack of {n} experts needs as many weights and scores.")
    if not (np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6):
        raise InvalidInputError("The weights of a stack must be at least zero and sum to 1.")
    return weights, scores


def resolution(targets: ArrayLike) -> float:
    """Return the median distance from a row's target to the nearest different one; 0 if all are the same.

    Shapes: targets (n,).
    """
    # For whole numbers it is 1 even if a few are far apart; for a continuous target it is too small to matter.
    values, counts = np.unique(np.asarray(targets, np.float64), return_counts=True)
    if len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    nearest = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    order = np.argsort(nearest)
    middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)
    return float(nearest[order][middle])


def values_taken(y: Floats, others: Floats) -> Floats:
    """Return the values of a target that takes few, ascending: grades, counts, readings of a scale; else none.

    Shapes: y (n,).
    """
    # At least half of the rows share their value with another row. Those with the most frequent value do not count:
    # amounts of which many are zero are continuous all the same.
    counts = np.sort(np.unique(y, return_counts=True)[1])[:-1]
    if len(counts) == 0 or 2 * counts[counts > 1].sum() < counts.sum():
        return np.empty(0)
    values = np.unique(np.append(y, others))
    return values if len(values) <= MOST_VALUES else np.empty(0)


@dataclass(frozen=True)
class Pooled:
    """What all rows share, except for weights and bandwidth: pooled errors, and how fine the target is."""

    errors: Floats  # (n_errors,) standardised, ascending
    error_bandwidth: float = 0.25  # the width of their kernels
    resolution: float = 0.0  # the distance of two values of the target
    support: tuple[float, float] = (-np.inf, np.inf)
    values: Floats = field(default_factory=lambda: np.empty(0))  # of the target, ascending, where it takes few

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
        names = ("errors", "error_bandwidth", "resolution", "values")
        return {**{name: getattr(self, name) for name in names}, "support": list(self.support)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Pooled:
        """Return what has this state."""
        lower, upper = (float(bound) for bound in state["support"])
        errors, values = (np.asarray(state[name], np.float64) for name in ("errors", "values"))
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
    """Return the pooled errors (y − mean)/scale of the validation rows, or 127 quantiles of more.

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
    quartiles = weighted_quantile(unsorted, [0.25, 0.75], weights)
    # The width of kernels for a density by Silverman's rule.
    deviation = float(np.sqrt(weighted_mean(np.square(unsorted - weighted_mean(unsorted, weights)), weights)))
    widths = [width for width in (deviation, float(quartiles[1] - quartiles[0]) / 1.349) if width > 0]
    bandwidth = max(0.9 * min(widths, default=0.0) * n**-0.2, _NARROWEST)
    if len(errors) > MOST_ERRORS or weights is not None:
        errors = weighted_quantile(unsorted, (np.arange(MOST_ERRORS) + 0.5) / MOST_ERRORS, weights)
    return Pooled(errors, bandwidth, resolution, support, values)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What experts look at: the model's view of rows, and the neighbours', nearest first."""

    # Joint experts look at all targets: then mean, scale, targets and residuals have one axis more, the last one.
    mean: Floats  # (n,) predictions
    scale: Floats  # (n,) the standard deviations of the normal expert
    targets: Floats  # (n, k) the neighbours' targets
    shares: Floats  # (n, k) their affinities, as shares of the trees
    residuals: Floats | None = None  # (n, k) their out-of-sample residuals, where there are some
    weights: Floats | None = None  # (n, k) what each of them counts for, above zero; None where they count equally

    def arrays(self, experts: Experts, grid: DiscreteSupport) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return predictions, neighbours' targets, predictions plus neighbours' residuals, shares and weights."""
        needs, n = experts.needs, len(self.mean)
        if self.residuals is None and experts.residuals:
            raise InvalidInputError("Experts on residuals need the neighbours' residuals.")
        residuals = np.empty((n, 0)) if self.residuals is None else self.residuals
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
    """What the weights of J experts are found from: their distances to targets and to each other, row by row."""

    to_target: Floats  # (n, J) E|Xⱼ − y| of each expert
    to_each_other: Floats  # (n, J(J + 1)/2) E|Xⱼ − Xₖ| for k ≤ j, row after row of the lower triangle
    log_density: Floats  # (n, n_bandwidths, J) the log densities of the smoothed experts at y
    weights: Floats | None = None  # (n,) of the rows; None where they count equally

    @property
    def n_rows(self) -> float:
        """The number of rows, as far as they count."""
        return effective_rows(self.weights, len(self))

    @property
    def by_bandwidth(self) -> list[Floats]:
        """The log densities of each bandwidth, (n, J)."""
        return [self.log_density[:, number] for number in range(len(BANDWIDTHS))]

    def __len__(self) -> int:
        return len(self.to_target)

    @classmethod
    def of(
        cls, experts: Experts, pooled: Pooled, evidence: Evidence, y: Floats, weights: Floats | None = None
    ) -> ExpertStatistics:
        """Compute the statistics of rows. Shapes: y, weights (n,)."""
        n, j = len(evidence.mean), len(experts)
        y, scale = (np.ascontiguousarray(part, np.float64) for part in (y, evidence.scale))
        if not (np.isfinite(y).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InvalidInputError("A stack needs finite targets and finite scales above zero.")
        errors = pooled.errors if experts.errors else np.empty(0)
        if experts.errors and len(errors) == 0:
            raise InvalidInputError("An expert on errors needs pooled errors.")
        out = np.empty((n, j)), np.empty((n, j * (j + 1) // 2)), np.empty((n, len(BANDWIDTHS), j))
        near, (on_targets, on_residuals) = evidence.arrays(experts, pooled.grid), experts.arrays
        widths = BANDWIDTHS, pooled.error_bandwidth, pooled.least_bandwidth, np.array(pooled.support)
        given: Any = (*near, *on_targets, *on_residuals, scale, y, errors, *widths, 0, n, *out)
        kernel.compare(*given)
        return cls(*out, weights)

    def means(self) -> tuple[Floats, Floats]:
        """Return the mean distances to targets, (J,), and to each other, (J, J)."""
        j = self.to_target.shape[1]
        pairs = np.zeros((j, j))
        rows, columns = np.tril_indices(j)
        pairs[rows, columns] = pairs[columns, rows] = weighted_mean(self.to_each_other, self.weights)
        return np.asarray(weighted_mean(self.to_target, self.weights)), pairs
