"""Spreads: the variance of neighbours, of one quantity at one k, or several of these combined as logarithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from ibug._compiled import spread as kernel
from ibug._typing import Floats
from ibug._weights import effective_rows, weighted_mean, weighted_quantile
from ibug.exceptions import InvalidInputError

#: Values of the neighbours by quantity, nearest first, each of shape (n_rows, k); k may differ.
Neighbors = Mapping[str, Floats]

#: A quantity and a number of neighbours.
Feature = tuple[str, int]

#: The weights of neighbours that count equally.
UNWEIGHTED: Neighbors = MappingProxyType({})

# The quantities, and whether their variance is that around their own mean, as in the paper (section 3.2). That of
# residuals is around zero: a model that errs to one side among all neighbours will err there again, and that is part of
# how far a prediction may be off.
_CENTERED = {"targets": True, "residuals": False}

# Added to each variance, as a share of its mean over the validation rows, so that its logarithm is never far out.
_FLOOR = 1e-3

#: What the penalty is worth, in validation rows: PENALTY/n · Σ bⱼ², in units of the score.
PENALTY = 20.0

# Where all errors are zero no scale is small enough; the search ends so far from their usual size, or the spread's.
_LARGEST_LOG = 30.0


def variance(quantity: str, values: Floats, weights: Floats | None = None) -> Floats:
    """Return the variance of each row's neighbours, (n_rows,). Shapes: values, weights (n_rows, k)."""
    if not _CENTERED[quantity]:
        squares = np.square(values)
        return np.asarray(squares.mean(axis=1) if weights is None else np.average(squares, axis=1, weights=weights))
    d = values - values[:, :1]
    if weights is not None:
        share = weights / np.add.reduce(weights, axis=1, keepdims=True)
        d -= np.add.reduce(share * d, axis=1, keepdims=True)
        return np.asarray(np.add.reduce(share * np.square(d), axis=1))
    d -= np.add.reduce(d, axis=1, keepdims=True) / d.shape[1]
    return np.asarray(np.add.reduce(np.square(d, out=d), axis=1) / d.shape[1])


def prefix_variances(quantity: str, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the variance of each row's first k neighbours for several k, ascending, (n_rows, len(ks)).

    Shapes: values, weights (n_rows, k_max).
    """
    centered = _CENTERED[quantity]
    if weights is None:
        values = np.asarray(values, np.float64)
        if values.strides[1] != values.itemsize or values.strides[0] < 0:
            values = np.ascontiguousarray(values)
        out = np.empty((len(values), len(ks)))
        kernel.prefix_variances(values, _whole(tuple(ks)), centered, out)
        return out
    if not centered:
        return prefix_means(np.square(values), ks, weights)
    d = values - values[:, :1]
    means = prefix_means(d, ks, weights)
    return np.maximum(prefix_means(np.square(d, out=d), ks, weights) - np.square(means), 0.0)


def around(quantity: str, values: Floats, mean: Floats) -> Floats:
    """Return what neighbours say the target may be: their targets, or predictions plus their residuals, (n_rows, k)."""
    return values if quantity == "targets" else np.asarray(mean[:, None] + values)


def prefix_means(values: NDArray[Any], ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the mean of each row's first k values for several k, (n_rows, len(ks)).

    Shapes: values, weights (n_rows, k_max).
    """
    last, counts = _counted(tuple(ks))
    if weights is not None:
        return np.asarray(np.cumsum(weights * values, axis=1)[:, last] / np.cumsum(weights, axis=1)[:, last])
    return np.asarray(values.cumsum(axis=1).take(last, axis=1) / counts)


# Made once, for rows that come alone.
@lru_cache(maxsize=256)
def _whole(ks: tuple[int, ...]) -> NDArray[np.int64]:
    return np.asarray(ks, np.int64)


@lru_cache(maxsize=256)
def _counted(ks: tuple[int, ...]) -> tuple[NDArray[np.intp], Floats]:
    return np.asarray(ks, np.intp) - 1, np.asarray(ks, np.float64)


@dataclass(frozen=True)
class Combination:
    """log σ = log s₀ + a + Σ bⱼ (log sⱼ − mⱼ), with sⱼ the square roots of several variances.

    Without data it is the first spread s₀ alone. The factor exp(a) and the exponents bⱼ are fitted on validation rows;
    a penalty on the exponents keeps them near zero where rows are few. A logarithm is cut to the range that it had on
    the validation rows, so that no row gets a variance by extrapolation.
    """

    floors: Floats  # (n_features,) what is added to each variance
    centers: Floats  # (n_features,) the mean mⱼ of log sⱼ on the validation rows
    lowest: Floats  # (n_features,) and its range
    highest: Floats
    exponents: Floats  # (n_features,) the bⱼ
    intercept: float  # the summand a

    @classmethod
    def fit(
        cls, variances: Floats, error: Floats, *, loss: str, tiny: float, weights: Floats | None = None
    ) -> Combination:
        """Fit intercept and exponents to the errors of validation rows.

        Shapes: variances (n_rows, n_features); error, weights (n_rows,).
        """
        floors = np.maximum(_FLOOR * weighted_mean(variances, weights), tiny)
        logs = 0.5 * np.log(variances + floors)
        centers = weighted_mean(logs, weights)
        intercept, exponents = fit_log_scale(logs[:, 0], logs - centers, error, loss, weights)
        return cls(floors, centers, logs.min(axis=0), logs.max(axis=0), exponents, intercept)

    def combine(self, variances: Floats) -> Floats:
        """Return one variance for each row, (n_rows,). Shapes: variances (n_rows, n_features)."""
        out = np.empty(len(variances))
        fitted = self.floors, self.centers, self.lowest, self.highest, self.exponents, self.intercept
        kernel.combine(np.ascontiguousarray(variances, np.float64), *fitted, out)
        return out

    @classmethod
    def from_state(cls, state: Mapping[str, Any], n_features: int) -> Combination:
        """Return the combination that has this state; impossible values are refused."""
        names = ("floors", "centers", "lowest", "highest", "exponents")
        arrays, intercept = {name: np.array(state[name], np.float64) for name in names}, float(state["intercept"])
        if any(values.shape != (n_features,) for values in arrays.values()):
            raise InvalidInputError(f"A combination of {n_features} spreads needs as many {', '.join(names)}.")
        if not np.isfinite(intercept) or not all(np.all(np.isfinite(values)) for values in arrays.values()):
            raise InvalidInputError("The parameters of a combination of spreads must be finite.")
        if np.any(arrays["floors"] < 0):
            raise InvalidInputError("The floors of a combination of spreads must not be negative.")
        return cls(**arrays, intercept=intercept)


@dataclass(frozen=True)
class Spread:
    """How a variance is made of each row's neighbours: of one quantity at one k, or of several features combined."""

    features: tuple[Feature, ...]
    combination: Combination | None = None  # None: the first feature alone

    @classmethod
    def of(cls, quantity: str, k: int) -> Spread:
        """Return the variance of the k nearest neighbours' targets (the paper's rule) or residuals."""
        return cls(((quantity, k),))

    @property
    def name(self) -> str:
        """What ``IBUGRegressor.spread_`` shows: ``"combination"``, or the quantity."""
        return self.quantity if self.combination is None else "combination"

    @property
    def quantity(self) -> str:
        """The quantity of the first feature, which gives a distribution its shape."""
        return self.features[0][0]

    @property
    def k(self) -> int:
        """The number of neighbours of the first feature, which stands for all where one is to be shown."""
        return self.features[0][1]

    @property
    def needs(self) -> dict[str, int]:
        """How many neighbours are needed, by quantity."""
        return {name: max(k for other, k in self.features if other == name) for name, _ in self.features}

    def variance(self, neighbors: Neighbors, weights: Neighbors = UNWEIGHTED) -> Floats:
        """Return the variances, (n_rows,)."""
        if self.combination is not None:
            return self.combination.combine(prefix_columns(neighbors, self.features, weights))
        own = weights.get(self.quantity)
        return variance(self.quantity, neighbors[self.quantity][:, : self.k], None if own is None else own[:, : self.k])

    def combine(self, variances: Floats) -> Floats:
        """Return the variances, (n_rows,), where those of the features are known already, (n_rows, n_features)."""
        return variances[:, 0] if self.combination is None else self.combination.combine(variances)

    def scaled(self, number: Callable[[str, int], int]) -> Spread:
        """Return the same spread of other numbers of neighbours, each a function of quantity and number before."""
        return replace(self, features=tuple((name, number(name, k)) for name, k in self.features))

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, which `from_state` takes."""
        fitted = None if self.combination is None else dict(vars(self.combination))
        return {"features": [list(feature) for feature in self.features], "combination": fitted}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Spread:
        """Return the spread that has this state."""
        features, fitted = tuple((str(quantity), int(k)) for quantity, k in state["features"]), state["combination"]
        known = all(quantity in _CENTERED and k >= 1 for quantity, k in features)
        if not features or not known or (fitted is None and len(features) > 1):
            raise InvalidInputError(
                f"A spread is one of {sorted(_CENTERED)} with its k, or several combined; got {features!r:.200}."
            )
        return cls(features, None if fitted is None else Combination.from_state(fitted, len(features)))


def prefix_columns(neighbors: Neighbors, features: Sequence[Feature], weights: Neighbors = UNWEIGHTED) -> Floats:
    """Return the variance of each feature, (n_rows, n_features), with one pass over each quantity."""
    ks_by_quantity, columns = _passes(tuple(features))
    found = []
    for quantity, ks in ks_by_quantity:
        own = None if quantity not in weights else weights[quantity][:, : ks[-1]]
        found.append(prefix_variances(quantity, neighbors[quantity][:, : ks[-1]], ks, own))
    variances = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
    return variances.take(columns, axis=1)


@lru_cache(maxsize=256)
def _passes(features: tuple[Feature, ...]) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], NDArray[np.intp]]:
    """Return the quantities with their numbers of neighbours, ascending, and where each feature is among these."""
    quantities = dict.fromkeys(name for name, _ in features)
    passes = tuple((name, tuple(sorted({k for other, k in features if other == name}))) for name in quantities)
    places = {feature: i for i, feature in enumerate((name, k) for name, ks in passes for k in ks)}
    return passes, np.array([places[feature] for feature in features], np.intp)


def fit_log_scale(
    start: Floats, features: Floats, error: Floats, loss: str, weights: Floats | None = None
) -> tuple[float, Floats]:
    """Return the intercept and the coefficients of log σ = start + intercept + features · coefficients.

    They have the best score of the normal distribution, with a penalty on all but the intercept.

    Shapes: start (n_rows,); features (n_rows, n_features); error (n_rows,); weights (n_rows,).
    """
    rows = _LOSSES[loss]
    # In the unit of the errors themselves, so that the result does not depend on the target's unit.
    unit = float(np.sqrt(weighted_mean(np.square(error), weights))) or float(np.exp(np.median(start)))
    shift = float(weighted_quantile(np.log(unit) - start, 0.5, weights))
    base, z = start + shift - np.log(unit), error / unit
    design = np.column_stack([np.ones(len(z)), features])
    scale, n = 1.0, effective_rows(weights, len(error))
    share = 1 / len(error) if weights is None else weights / weights.sum()

    def penalised(b: Floats, columns: Floats) -> tuple[float, Floats]:
        value, slope = rows(z, base + columns @ b)
        penalty = PENALTY / n * b * (np.arange(len(b)) > 0)
        gradient = columns.T @ (slope * share) / scale + 2 * penalty
        return float(weighted_mean(value, weights) / scale + np.sum(penalty * b)), gradient

    alone = _descend(lambda b: penalised(b, design[:, :1]), np.zeros(1))
    if loss == "crps":  # the penalty is in units of the score that the start alone has
        scale = float(weighted_mean(rows(z, base + alone[0])[0], weights)) or 1.0
    b = _descend(lambda b: penalised(b, design), np.append(alone, np.zeros(features.shape[1])))
    return float(b[0] + shift), b[1:]


def _descend(function: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    bounds = [(-_LARGEST_LOG, _LARGEST_LOG)] * len(start)
    options = {"maxiter": 500}
    return np.asarray(minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


def _nll(error: Floats, log_scale: Floats) -> tuple[Floats, Floats]:
    """Return the negative log likelihood of each row but for a constant, and its slope in log σ."""
    square = np.square(error * np.exp(-log_scale))
    return log_scale + 0.5 * square, 1 - square


def _crps(error: Floats, log_scale: Floats) -> tuple[Floats, Floats]:
    """Return the CRPS of each row, and its slope in log σ."""
    scale = np.exp(log_scale)
    z = error / scale
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
    slope = scale * (2 * density - 1 / np.sqrt(np.pi))
    return error * (2 * ndtr(z) - 1) + slope, slope


_LOSSES = {"crps": _crps, "nll": _nll}
