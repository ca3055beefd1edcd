"""What the displays share: matplotlib, imported when it is needed, and checks of what shall be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from ibug.exceptions import InvalidInputError, MissingDependencyError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``; displays call it before they compute anything, so that it fails early."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            'ibug.plotting needs matplotlib, which cannot be imported. Install it: pip install "ibug[plot]".'
        ) from error
    return plt


def axes(ax: Any, *, figsize: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the given axes, or new ones in a figure of their own."""
    plt = pyplot()
    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def require(estimator: Any, *methods: str) -> Any:
    """Return the estimator if it has all these methods or attributes."""
    missing = [method for method in methods if not hasattr(estimator, method)]
    if missing:
        raise InvalidInputError(
            f"A fitted estimator with {' and '.join(methods)} is expected (IBUGRegressor, say); this "
            f"{type(estimator).__name__} has no {' and no '.join(missing)}."
        )
    return estimator


def named(values: Any, name: str | None, default: str) -> dict[str, Any]:
    """Return several things by their names: a mapping as it is, a single one under `name`."""
    if not isinstance(values, Mapping):
        return {default if name is None else name: values}
    if name is not None:
        raise InvalidInputError(f"name={name!r} is for a single curve; the keys of a mapping are the names already.")
    if not values:
        raise InvalidInputError("The mapping of names is empty: there is nothing to draw.")
    return {str(key): value for key, value in values.items()}


def finite(values: ArrayLike, name: str, *, size: int | None = None) -> Floats:
    """Return numbers of shape (n,), all finite, at least one, and just `size` where that is given."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not array.size or (size is not None and array.size != size):
        expected = "(n,), n of at least 1" if size is None else f"({size},)"
        raise InvalidInputError(f"{name} must have shape {expected}; got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise InvalidInputError(f"{name} contains {np.sum(~np.isfinite(array))} NaN or infinite values.")
    return array


def at_least_one(value: Any, name: str) -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInputError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the choices."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {choices}; got {value!r}.")
    return str(value)


def evenly(n: int, count: int) -> Integers:
    """Return at most `count` of the numbers 0 to n - 1, evenly spaced, first and last among them; ascending."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64))


def chance_band(n: int, probability: ArrayLike) -> tuple[Any, Any]:
    """Return the shares between which 95 % of all shares of n draws of this probability lie."""
    return binom.ppf(0.025, n, probability) / n, binom.ppf(0.975, n, probability) / n


def percent(share: float, digits: int | None = None) -> str:
    """Return a share as text: 0.9 as "90 %"."""
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


def with_unit(label: str, unit: str | None) -> str:
    """Return the label of an axis, with the unit in brackets where there is one."""
    return label if unit is None else f"{label} ({unit})"


def scoring_label(scoring: Any, unit: str | None) -> str:
    """Return how a score is called on an axis. CRPS is in the target's unit; of the user's own nothing is known."""
    if not isinstance(scoring, str):
        return str(getattr(scoring, "__name__", type(scoring).__name__))
    return {"crps": with_unit("CRPS", unit), "nll": "NLL"}.get(scoring, scoring)
