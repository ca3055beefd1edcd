"""Spreads: what variance neighbours have, of one quantity or combined on a logarithmic scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from ibug._compiled import spread as kernel
from ibug._typing import Floats
from ibug._weights import effective_rows, mean, quantile
from ibug.exceptions import InvalidInputError


class Quantity(ABC):
    """One number per training row, whose values at the neighbours tell how far a prediction may be off."""

    #: Its name, by which it is registered.
    name: ClassVar[str]

    @abstractmethod
    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the variance of each row's neighbours, (n_rows,). Shapes: values (n_rows, k); weights (n_rows, k)."""

    @abstractmethod
    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the variance of each row's first k neighbours for several k, (n_rows, len(ks)).

        Shapes: values (n_rows, k_max); weights (n_rows, k_max).
        """

    @abstractmethod
    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return what the neighbours say the target may be, (n_rows, k): the values that a family is fitted to.

        Shapes: values (n_rows, k); mean (n_rows,).
        """


class Targets(Quantity):
    """The neighbours' targets: their variance around their own mean."""

    name: ClassVar[str] = "targets"

    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the population variance, (n_rows,)."""
        return variance(values, weights)

    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the population variance of the first k, (n_rows, len(ks))."""
        return prefix_variances(values, ks, weights)

    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return the targets as they are."""
        return values


def variance(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the population variance (ddof 0) of each row's neighbours.

    Shapes: values (n_rows, k); weights (n_rows, k).
    """
    d = values - values[:, :1]
    if weights is not None:
        share = weights / np.add.reduce(weights, axis=1, keepdims=True)
        d -= np.add.reduce(share * d, axis=1, keepdims=True)
        return np.asarray(np.add.reduce(share * np.square(d), axis=1))
    d -= np.add.reduce(d, axis=1, keepdims=True) / d.shape[1]
    return np.asarray(np.add.reduce(np.square(d, out=d), axis=1) / d.shape[1])


def prefix_variances(values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the variance of each row's first k neighbours for several k, from one pass of prefix sums.

    Shapes: values (n_rows, k_max); weights (n_rows, k_max).
    """
    if weights is None:
        return compiled_variances(values, ks, centered=True)
    d = values - values[:, :1]
    means = prefix_means(d, ks, weights)
    return np.maximum(prefix_means(np.square(d, out=d), ks, weights) - np.square(means), 0.0)


def compiled_variances(values: Floats, ks: Sequence[int], *, centered: bool) -> Floats:
    """Return the variance of each row's first k values, which count alike, for several k, (n_rows, len(ks)).

    Shapes: values (n_rows, k_max).
    """
    values = np.asarray(values, np.float64)
    if values.strides[1] != values.itemsize or values.strides[0] < 0:
        values = np.ascontiguousarray(values)
    out = np.empty((len(values), len(ks)))
    kernel.prefix_variances(values, _whole(tuple(ks)), centered, out)
    return out


def prefix_means(values: NDArray[Any], ks: Sequence[int], weights: Floats | None = None) -> Floats:
    """Return the mean of each row's first k values for several k, (n_rows, len(ks)).

    Shapes: values (n_rows, k_max); weights (n_rows, k_max).
    """
    last, counts = _counted(tuple(ks))
    if weights is not None:
        return np.asarray(np.cumsum(weights * values, axis=1)[:, last] / np.cumsum(weights, axis=1)[:, last])
    return np.asarray(values.cumsum(axis=1).take(last, axis=1) / counts)


@lru_cache(maxsize=256)
def _whole(ks: tuple[int, ...]) -> NDArray[np.int64]:
    return np.asarray(ks, np.int64)


@lru_cache(maxsize=256)
def _counted(ks: tuple[int, ...]) -> tuple[NDArray[np.intp], Floats]:
    """Return where the sums of the first k are, and what they are divided by: made once, for rows that come alone."""
    return np.asarray(ks, np.intp) - 1, np.asarray(ks, np.float64)


class Residuals(Quantity):
    """The neighbours' residuals: target minus the prediction of a model that was not trained on the neighbour.

    The spread is their mean square around zero, not around their mean: a model that errs to one side among all
    neighbours will err there again, and that is part of how far a prediction may be off.
    """

    name: ClassVar[str] = "residuals"

    def variance(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the mean square, (n_rows,)."""
        if weights is not None:
            return np.asarray(np.average(np.square(values), axis=1, weights=weights))
        return np.asarray(np.mean(np.square(values), axis=1))

    def prefix_variances(self, values: Floats, ks: Sequence[int], weights: Floats | None = None) -> Floats:
        """Return the mean square of the first k, (n_rows, len(ks))."""
        if weights is None:
            return compiled_variances(values, ks, centered=False)
        return prefix_means(np.square(values), ks, weights)

    def around(self, values: Floats, mean: Floats) -> Floats:
        """Return the model's prediction plus each neighbour's residual."""
        return np.asarray(mean[:, None] + values)


QUANTITIES: dict[str, Quantity] = {quantity.name: quantity for quantity in (Targets(), Residuals())}


#: Values of the neighbours by quantity, nearest first, each of shape (n_rows, k); k may differ.
Neighbors = Mapping[str, Floats]

#: The weights of neighbours that count alike.
ALIKE: Neighbors = MappingProxyType({})


class Spread(ABC):
    """A rule that makes a variance of each row's neighbours. Its state is plain numbers and arrays."""

    #: The class's name in a stored state.
    kind: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """What ``IBUGRegressor.spread_`` shows."""

    @property
    @abstractmethod
    def usual_k(self) -> int:
        """The number of neighbours that stands for the rule where one is to be shown."""

    @property
    @abstractmethod
    def n_neighbors(self) -> dict[str, int]:
        """How many neighbours are needed, by quantity."""

    @property
    @abstractmethod
    def shape(self) -> str:
        """The quantity that tells the shape of a distribution."""

    @abstractmethod
    def variance(self, neighbors: Neighbors, weights: Neighbors = ALIKE) -> Floats:
        """Return the variances, (n_rows,)."""

    @abstractmethod
    def at_most(self, limits: Mapping[str, int]) -> Spread:
        """Return the same rule for rows that have fewer neighbours: at most these numbers, by quantity."""

    @abstractmethod
    def scaled(self, number: Callable[[int], int]) -> Spread:
        """Return the same rule for other numbers of neighbours, each a function of the number before."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return what `from_state` needs: strings, numbers, lists of them, and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Spread:
        """Return the spread that has this state."""


@dataclass(frozen=True)
class SingleSpread(Spread):
    """The variance of the k nearest neighbours' targets (the paper's rule) or residuals.

    Parameters
    ----------
    quantity : {"targets", "residuals"}
        What it is the variance of.
    k : int
        The number of neighbours.
    """

    kind: ClassVar[str] = "single"
    quantity: str
    k: int

    @property
    def name(self) -> str:
        """The quantity."""
        return self.quantity

    @property
    def usual_k(self) -> int:
        """Return k."""
        return self.k

    @property
    def n_neighbors(self) -> dict[str, int]:
        """K of the quantity."""
        return {self.quantity: self.k}

    @property
    def shape(self) -> str:
        """The quantity."""
        return self.quantity

    def variance(self, neighbors: Neighbors, weights: Neighbors = ALIKE) -> Floats:
        """Return the variances of the first k, (n_rows,)."""
        own = weights.get(self.quantity)
        values = neighbors[self.quantity][:, : self.k]
        return QUANTITIES[self.quantity].variance(values, None if own is None else own[:, : self.k])

    def at_most(self, limits: Mapping[str, int]) -> SingleSpread:
        """Return the spread of fewer neighbours, where `limits` has a smaller number for the quantity."""
        return replace(self, k=min(self.k, limits.get(self.quantity, self.k)))

    def scaled(self, number: Callable[[int], int]) -> SingleSpread:
        """Return the spread of another number of neighbours."""
        return replace(self, k=number(self.k))

    def state(self) -> dict[str, Any]:
        """Return quantity and k."""
        return {"kind": self.kind, "quantity": self.quantity, "k": self.k}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> SingleSpread:
        """Return the spread that has this state."""
        return cls(str(state["quantity"]), int(state["k"]))


#: What the penalty is worth, in validation rows: PENALTY/n · Σ bⱼ², in units of the score.
PENALTY = 20.0

# Where all errors are zero no scale is small enough; the search ends so far from their usual size, or the spread's.
_LARGEST_LOG = 30.0


def fit_log_scale(
    start: Floats, features: Floats, error: Floats, loss: str, weights: Floats | None = None
) -> tuple[float, Floats]:
    """Return the intercept and the coefficients of log σ = start + intercept + features · coefficients.

    Shapes: start (n_rows,); features (n_rows, n_features); error (n_rows,); weights (n_rows,).
    """
    rows = _LOSSES[loss]
    # In the unit of the errors themselves, so that the result does not depend on the target's unit.
    unit = float(np.sqrt(mean(np.square(error), weights))) or float(np.exp(np.median(start)))
    shift = float(quantile(np.log(unit) - start, 0.5, weights))
    base, z = start + shift - np.log(unit), error / unit
    design = np.column_stack([np.ones(len(z)), features])
    scale, n = 1.0, effective_rows(weights, len(error))
    share = 1 / len(error) if weights is None else weights / weights.sum()

    def penalised(b: Floats, columns: Floats) -> tuple[float, Floats]:
        value, slope = rows(z, base + columns @ b)
        penalty = PENALTY / n * b * (np.arange(len(b)) > 0)
        gradient = columns.T @ (slope * share) / scale + 2 * penalty
        return float(mean(value, weights) / scale + np.sum(penalty * b)), gradient

    alone = _descend(lambda b: penalised(b, design[:, :1]), np.zeros(1))
    if loss == "crps":  # the penalty is in units of the score that the start alone has
        scale = float(mean(rows(z, base + alone[0])[0], weights)) or 1.0
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


#: Added to each variance, as a share of its mean over the validation rows, so that its logarithm is never far out.
_FLOOR = 1e-3

_ARRAYS = ("floors", "centers", "lowest", "highest", "exponents")

#: A quantity and a number of neighbours.
Feature = tuple[str, int]


@dataclass(frozen=True)
class CombinedSpread(Spread):
    """log σ = log s₀ + a + Σ bⱼ (log sⱼ − mⱼ), with sⱼ the spread of one quantity at one number of neighbours.

    Without data it is the first spread s₀ alone. The factor exp(a) and the exponents bⱼ are fitted on validation rows;
    a penalty on the exponents keeps them near zero where rows are few. A logarithm is cut to the range that it had on
    the validation rows, so that no row gets a variance by extrapolation.

    Parameters
    ----------
    features
        Quantity and k of each spread; that of the first one is s₀.
    floors : ndarray of shape (n_features,)
        What is added to each variance.
    centers, lowest, highest : ndarray of shape (n_features,)
        Mean mⱼ and range of each log sⱼ on the validation rows.
    intercept : float
        The summand a.
    exponents : ndarray of shape (n_features,)
        The bⱼ.
    """

    kind: ClassVar[str] = "combined"
    features: tuple[Feature, ...]
    floors: Floats
    centers: Floats
    lowest: Floats
    highest: Floats
    intercept: float
    exponents: Floats

    @classmethod
    def fit(
        cls,
        features: Sequence[Feature],
        variances: Floats,
        error: Floats,
        *,
        loss: str,
        tiny: float,
        weights: Floats | None = None,
    ) -> CombinedSpread:
        """Fit intercept and exponents to the errors of validation rows.

        Shapes: variances (n_rows, n_features); error (n_rows,); weights (n_rows,).
        """
        floors = np.maximum(_FLOOR * mean(variances, weights), tiny)
        logs = 0.5 * np.log(variances + floors)
        centers = mean(logs, weights)
        intercept, exponents = fit_log_scale(logs[:, 0], logs - centers, error, loss, weights)
        return cls(tuple(features), floors, centers, logs.min(axis=0), logs.max(axis=0), intercept, exponents)

    @property
    def name(self) -> str:
        """``"combination"``."""
        return "combination"

    @property
    def usual_k(self) -> int:
        """Return k of the first spread."""
        return self.features[0][1]

    @property
    def n_neighbors(self) -> dict[str, int]:
        """The largest k of each quantity."""
        return {name: max(k for other, k in self.features if other == name) for name, _ in self.features}

    @property
    def shape(self) -> str:
        """The quantity of the first spread."""
        return self.features[0][0]

    def variance(self, neighbors: Neighbors, weights: Neighbors = ALIKE) -> Floats:
        """Return the variances, (n_rows,)."""
        return self.combine(prefix_columns(neighbors, self.features, weights))

    def at_most(self, limits: Mapping[str, int]) -> CombinedSpread:
        """Return the combination of fewer neighbours, where `limits` has a smaller number for the quantity."""
        return replace(self, features=tuple((name, min(k, limits.get(name, k))) for name, k in self.features))

    def scaled(self, number: Callable[[int], int]) -> CombinedSpread:
        """Return the combination of other numbers of neighbours."""
        return replace(self, features=tuple((name, number(k)) for name, k in self.features))

    def combine(self, variances: Floats) -> Floats:
        """Return the variances, (n_rows,), for those of the features, (n_rows, n_features)."""
        out = np.empty(len(variances))
        kernel.combine(
            np.ascontiguousarray(variances, np.float64),
            self.floors,
            self.centers,
            self.lowest,
            self.highest,
            self.exponents,
            self.intercept,
            out,
        )
        return out

    def state(self) -> dict[str, Any]:
        """Return all parameters."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        return {
            "kind": self.kind,
            "quantities": [quantity for quantity, _ in self.features],
            "ks": [k for _, k in self.features],
            "intercept": self.intercept,
            **arrays,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> CombinedSpread:
        """Return the spread that has this state."""
        features = tuple((str(q), int(k)) for q, k in zip(state["quantities"], state["ks"], strict=True))
        arrays = {name: np.array(state[name], np.float64) for name in _ARRAYS}
        intercept = float(state["intercept"])
        if not features or any(values.shape != (len(features),) for values in arrays.values()):
            raise InvalidInputError(f"A combination of {len(features)} spreads needs as many {', '.join(_ARRAYS)}.")
        if not np.isfinite(intercept) or not all(np.all(np.isfinite(values)) for values in arrays.values()):
            raise InvalidInputError("The parameters of a combination of spreads must be finite.")
        if np.any(arrays["floors"] < 0):
            raise InvalidInputError("The floors of a combination of spreads must not be negative.")
        return cls(features, intercept=intercept, **arrays)


def prefix_columns(neighbors: Neighbors, features: Sequence[Feature], weights: Neighbors = ALIKE) -> Floats:
    """Return the variance of each feature, (n_rows, n_features), with one pass over each quantity."""
    ks_by_quantity, columns = _passes(tuple(features))
    found = []
    for quantity, ks in ks_by_quantity:
        own = None if quantity not in weights else weights[quantity][:, : ks[-1]]
        found.append(QUANTITIES[quantity].prefix_variances(neighbors[quantity][:, : ks[-1]], ks, own))
    variances = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
    return variances.take(columns, axis=1)


@lru_cache(maxsize=256)
def _passes(features: tuple[Feature, ...]) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], NDArray[np.intp]]:
    """Return the quantities with their numbers of neighbours, ascending, and where each feature is among these."""
    quantities = dict.fromkeys(name for name, _ in features)
    passes = tuple((name, tuple(sorted({k for other, k in features if other == name}))) for name in quantities)
    places = {feature: i for i, feature in enumerate((name, k) for name, ks in passes for k in ks)}
    return passes, np.array([places[feature] for feature in features], np.intp)


_KINDS: dict[str, type[Spread]] = {kind.kind: kind for kind in (SingleSpread, CombinedSpread)}


def spread_from_state(state: Mapping[str, Any]) -> Spread:
    """Return the spread whose `state` this is."""
    if state.get("kind") not in _KINDS:
        raise InvalidInputError(f"A spread of kind {state.get('kind')!r} is not known; known are {sorted(_KINDS)}.")
    return _KINDS[state["kind"]].from_state(state)
