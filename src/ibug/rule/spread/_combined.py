"""A log-linear combination of spreads at several numbers of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibug._typing import Floats
from ibug._weights import mean
from ibug.exceptions import InvalidInputError
from ibug.rule.spread._base import ALIKE, Neighbors, Spread
from ibug.rule.spread._load import kernel
from ibug.rule.spread._log_scale import fit_log_scale
from ibug.rule.spread._registry import QUANTITIES

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
